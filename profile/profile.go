package profile

import (
	"io"
	"sync"

	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// Profile is a log with what is found out of it once, when a query first needs it.
// It may be used by any number of goroutines.
type Profile struct {
	*columns.Log

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
	fileModules struct {
		once sync.Once
		of   []columns.BindingID
	}
}

// New gives the profile of a log.
func New(l *columns.Log) *Profile { return &Profile{Log: l} }

// Open is New of the log in a file: see [columns.Open].
func Open(path string, progress func(done, total int64)) (*Profile, error) {
	l, err := columns.Open(path, progress)
	if err != nil {
		return nil, err
	}
	return New(l), nil
}

// OpenTotals is New of [columns.OpenTotals]. It can be asked for all that it has
// fields for and for selections of events and stacks; it panics where a query needs
// to look at samples, such as a timeline's.
func OpenTotals(path string, progress func(done, total int64)) (*Profile, error) {
	l, err := columns.OpenTotals(path, progress)
	if err != nil {
		return nil, err
	}
	return New(l), nil
}

// Load is New of a whole log: see [columns.Load].
func Load(r io.Reader) (*Profile, error) {
	l, err := columns.Load(r)
	if err != nil {
		return nil, err
	}
	return New(l), nil
}

// Order is the tree of the log's stacks depth first.
func (p *Profile) Order() *columns.Order {
	p.tree.once.Do(func() { p.tree.order = p.Nodes.DepthFirst() })
	return p.tree.order
}
