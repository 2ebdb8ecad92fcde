package profile

import (
	"io"
	"sync"

	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// Profile is a log together with indexes that are built once, when a query first needs
// them. It may be used by any number of goroutines.
type Profile struct {
	*columns.Log

	search     searchCode
	scanned    scanned
	categories struct {
		once sync.Once
		of   []eventlog.Category // by site
	}

	levels [levels]struct {
		once  sync.Once
		index *levelIndex
	}
	tree struct {
		once  sync.Once
		order *columns.Order
	}
	names struct {
		once   sync.Once
		frames *Frames
	}
	programs struct {
		once sync.Once
		of   map[uint32]string // by the log's module
	}
	fileModules struct {
		once sync.Once
		of   []columns.BindingID
	}
}

// New returns the profile of a log.
func New(l *columns.Log) *Profile {
	named, search := withCurryNames(l)
	return &Profile{Log: named, search: search}
}

// Open opens the profile of a log file: see [columns.Open].
func Open(path string, progress func(done, total int64)) (*Profile, error) {
	l, err := columns.Open(path, progress)
	if err != nil {
		return nil, err
	}
	return New(l), nil
}

// OpenTotals opens a profile of totals: see [columns.OpenTotals]. It answers the queries
// that need only totals, for selections of events and stacks. It panics in a query that
// needs to look at samples, such as a timeline.
func OpenTotals(path string, progress func(done, total int64)) (*Profile, error) {
	l, err := columns.OpenTotals(path, progress)
	if err != nil {
		return nil, err
	}
	return New(l), nil
}

// Load loads the profile of a whole log: see [columns.Load].
func Load(r io.Reader) (*Profile, error) {
	l, err := columns.Load(r)
	if err != nil {
		return nil, err
	}
	return New(l), nil
}

// LoadSamples is Load for those who ask about samples alone: see [columns.LoadSamples].
func LoadSamples(r io.Reader) (*Profile, error) {
	l, err := columns.LoadSamples(r)
	if err != nil {
		return nil, err
	}
	return New(l), nil
}

// Order returns the log's stack tree in depth-first order.
func (p *Profile) Order() *columns.Order {
	p.tree.once.Do(func() { p.tree.order = p.Nodes.DepthFirst() })
	return p.tree.order
}
