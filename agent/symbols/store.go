// Package symbols holds the names of code that several logs have: each address is looked up once,
// whatever number of processes runs the code and of logs names it.
package symbols

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"sort"

	"golang.org/x/sys/unix"

	"ccagent/agent/process"
	"ccagent/eventlog"
	"ccagent/internal/credentials"
	"ccagent/symbolize"
	"ccagent/symbolize/binary"
	"ccagent/symbolize/debuginfod"
	"ccagent/symbolize/worker"
)

// Store is the names of all code that was asked for, by build. It is used by one goroutine. Its
// memory is bounded: when it is full, all is forgotten and looked up again.
type Store struct {
	config Config
	builds map[string]*build
	last   symbolize.IDs
	held   int // addresses
	named  worker.Permitted

	files    map[uint32]*eventlog.File
	bindings map[uint32]*eventlog.Binding
	spans    map[uint32]*eventlog.Span
	blocks   map[uint32]*eventlog.Block
}

// Config says how names are looked up.
type Config struct {
	Who      credentials.Credentials // whose CacheDir it is
	CacheDir string
	Servers  *debuginfod.Client // of debug files; may be nil
	Memory   uint64             // that looking up may take, in bytes
	// Addresses bounds how many are held; 0 means 2¹⁸, which is some 100 MB.
	Addresses int
}

// build is the code of one file, or of several that are known to be copies of it.
type build struct {
	number    uint32 // as a module in the events of the store
	module    *eventlog.ModuleSymbols
	locations map[uint64]eventlog.Location
	// stretches are where a location holds for more than its own address, by where they begin.
	stretches []symbolize.Stretch
}

// at gives the location of an address; false if it was not looked up.
func (b *build) at(a symbolize.Address) (eventlog.Location, bool) {
	if l, known := b.locations[a.Addr]; known {
		return l, true
	}
	addr := a.Lookup()
	i := sort.Search(len(b.stretches), func(i int) bool { return b.stretches[i].Lo > addr }) - 1
	if i < 0 || addr >= b.stretches[i].Hi {
		return eventlog.Location{}, false
	}
	s := &b.stretches[i]
	l := b.locations[s.Addr]
	if s.Start != 0 {
		l.Offset = addr - s.Start
	}
	l.Addr = a.Addr
	return l, true
}

// add adds stretches. Where one begins as another that is known does, the longer one counts.
func (b *build) add(more []symbolize.Stretch) {
	b.stretches = append(b.stretches, more...)
	slices.SortFunc(b.stretches, func(x, y symbolize.Stretch) int { return cmp.Or(cmp.Compare(x.Lo, y.Lo), cmp.Compare(y.Hi, x.Hi)) })
	b.stretches = slices.CompactFunc(b.stretches, func(x, y symbolize.Stretch) bool { return x.Lo == y.Lo })
}

// Seen is the addresses of a module that a log has.
type Seen struct {
	Module    *process.Module
	Addresses []symbolize.Address
	Reader    credentials.Credentials // the program's own user
}

// New makes a store.
func New(c Config) *Store {
	if c.Addresses == 0 {
		c.Addresses = 1 << 18
	}
	s := &Store{config: c}
	s.forget()
	return s
}

func (s *Store) forget() {
	s.builds, s.last, s.held = map[string]*build{}, symbolize.IDs{}, 0
	s.files, s.bindings = map[uint32]*eventlog.File{}, map[uint32]*eventlog.Binding{}
	s.spans, s.blocks = map[uint32]*eventlog.Span{}, map[uint32]*eventlog.Block{}
}

// of returns the build of a module.
func (s *Store) of(mod *process.Module) *build {
	key, ok := buildOf(mod.File, mod.Binary.BuildID)
	if !ok {
		key = fmt.Sprintf("module %d", mod.ID)
	}
	b := s.builds[key]
	if b == nil {
		b = &build{number: uint32(len(s.builds) + 1), locations: map[uint64]eventlog.Location{}}
		s.builds[key] = b
	}
	return b
}

// buildOf is what files have in common whose code has the same names. A build id by itself is none: a program may have another one's, and
// other names. Files are the same if file system, number, size and time of the last change are, which their owners
// cannot set. Layers of containers are mounted anew for each container, with the numbers and times of the files below: there the file
// system does not count, if root owns the file. Users can make file systems of their own, in which a file's number and times are
// what they say, but none with files of root's.
func buildOf(f *os.File, id []byte) (key string, ok bool) {
	if f == nil || len(id) == 0 {
		return "", false
	}
	var st unix.Stat_t
	var fs unix.Statfs_t
	if unix.Fstat(int(f.Fd()), &st) != nil || unix.Fstatfs(int(f.Fd()), &fs) != nil {
		return "", false
	}
	device := st.Dev
	if fs.Type == unix.OVERLAYFS_SUPER_MAGIC && st.Uid == 0 {
		device = 0
	}
	return fmt.Sprintf("%x %d %d %d %d.%d", id, device, st.Ino, st.Size, st.Ctim.Sec, st.Ctim.Nsec), true
}

// Resolve looks up what is not known yet, of modules of one user.
func (s *Store) Resolve(ctx context.Context, seen []Seen) error {
	if s.held > s.config.Addresses {
		s.forget()
	}
	at := map[*build]int{} // in job.Modules
	job := worker.Job{UID: s.config.Who.UID, GID: s.config.Who.GID, CacheDir: s.config.CacheDir, MemoryLimit: s.config.Memory, After: s.last, Permitted: &s.named, Stretches: true, Frugal: true}
	byNumber := map[uint32]*build{}
	for _, one := range seen {
		b := s.of(one.Module)
		var fresh []symbolize.Address
		for _, a := range one.Addresses {
			if _, known := b.at(a); !known {
				b.locations[a.Addr] = eventlog.Location{Addr: a.Addr} // not asked for again if it has no name
				s.held++
				fresh = append(fresh, a)
			}
		}
		if len(fresh) == 0 {
			continue
		}
		if i, asked := at[b]; asked {
			job.Modules[i].Addresses = append(job.Modules[i].Addresses, fresh...)
			continue
		}
		byNumber[b.number], at[b] = b, len(job.Modules)
		m := worker.ModuleFile{ID: b.number, Path: one.Module.Path, File: one.Module.File, Addresses: fresh, Root: one.Module.Root}
		if one.Module.Problem != nil {
			m.Problem = one.Module.Problem.Error()
		} else {
			m.Info = &one.Module.Binary
			if debug := DebugFile(ctx, one.Module, one.Reader, s.config.Servers); debug != nil {
				defer debug.Close()
				m.Debug = debug
			}
		}
		job.Modules, job.Reader = append(job.Modules, m), &one.Reader
	}
	if len(job.Modules) == 0 {
		return nil
	}
	for _, m := range job.Modules {
		slices.SortFunc(m.Addresses, func(a, b symbolize.Address) int { return cmp.Compare(a.Addr, b.Addr) })
	}
	sum, err := worker.Run(ctx, job, func(e eventlog.Event) error {
		s.take(e, byNumber)
		return nil
	})
	if sum.After != (symbolize.IDs{}) {
		s.last = sum.After
	}
	found := map[*build][]symbolize.Stretch{}
	for _, x := range sum.Stretches {
		if b := byNumber[x.Module]; b != nil {
			found[b] = append(found[b], x)
		}
	}
	for b, stretches := range found {
		s.held += len(stretches)
		b.add(stretches)
	}
	return err
}

// take keeps an event of the symbol tables, which is valid during the call.
func (s *Store) take(e eventlog.Event, builds map[uint32]*build) {
	switch e := eventlog.CloneSymbol(e).(type) {
	case *eventlog.ModuleSymbols:
		if b := builds[e.Module]; b != nil {
			b.module = e
		}
	case *eventlog.File:
		s.files[e.ID] = e
	case *eventlog.Binding:
		s.bindings[e.ID] = e
	case *eventlog.Span:
		s.spans[e.ID] = e
	case *eventlog.Block:
		s.blocks[e.ID] = e
	case *eventlog.Locations:
		if b := builds[e.Module]; b != nil {
			for _, l := range e.Locations {
				b.locations[l.Addr] = l
			}
		}
	}
}

// Write writes the tables that a log needs for what it has seen, definitions before their uses.
func (s *Store) Write(seen []Seen, emit func(eventlog.Event) error) error {
	w := writing{store: s, emit: emit, modules: map[uint32]uint32{}, done: map[any]bool{}}
	for _, one := range seen {
		w.modules[s.of(one.Module).number] = one.Module.ID
	}
	for _, one := range seen {
		b := s.of(one.Module)
		if b.module != nil {
			m := *b.module
			m.Module = one.Module.ID
			w.write(&m)
		}
		out := eventlog.Locations{Module: one.Module.ID}
		for _, a := range one.Addresses {
			l, known := b.at(a)
			if !known {
				continue
			}
			w.location(&l)
			if out.Locations = append(out.Locations, l); len(out.Locations) == locationsPerEvent {
				w.write(&out)
				out.Locations = nil
			}
		}
		if len(out.Locations) > 0 {
			w.write(&out)
		}
	}
	return w.err
}

// locationsPerEvent keeps a Locations event well below the format's limit.
const locationsPerEvent = 128

// writing is the tables of one log while they are written.
type writing struct {
	store   *Store
	emit    func(eventlog.Event) error
	modules map[uint32]uint32 // of the log, by the store's number
	done    map[any]bool
	err     error
}

func (w *writing) write(e eventlog.Event) {
	if w.err == nil {
		w.err = w.emit(e)
	}
}

// first reports whether it is asked for a definition the first time.
func first[T any](w *writing, table map[uint32]*T, id uint32) (*T, bool) {
	e := table[id]
	if id == 0 || e == nil || w.done[e] {
		return nil, false
	}
	w.done[e] = true
	return e, true
}

func (w *writing) location(l *eventlog.Location) {
	w.binding(l.Binding)
	for _, line := range l.Lines {
		w.file(line.File)
		w.binding(line.Binding)
	}
	b, ok := first(w, w.store.blocks, l.Block)
	if !ok {
		return
	}
	w.binding(b.Binding)
	for _, id := range b.Enclosing {
		w.binding(id)
	}
	for _, c := range b.Causes {
		if span, ok := first(w, w.store.spans, c.Span); ok {
			w.file(span.File)
			w.binding(span.Binding)
			w.write(span)
		}
	}
	block := *b
	block.Module = w.modules[b.Module]
	w.write(&block)
}

func (w *writing) file(id uint32) {
	if f, ok := first(w, w.store.files, id); ok {
		w.write(f)
	}
}

func (w *writing) binding(id uint32) {
	b, ok := first(w, w.store.bindings, id)
	if !ok {
		return
	}
	w.binding(b.Parent)
	binding := *b
	binding.Program = w.modules[b.Program]
	w.write(&binding)
}

// Problems are the reasons why debug files were not fetched, since the last call.
func (s *Store) Problems() []string { return s.config.Servers.Problems() }

// DebugFile finds the separate debug file of a module that holds no debug information itself,
// among what the program's user may read, or has it fetched; nil if there is none. servers may be nil.
func DebugFile(ctx context.Context, mod *process.Module, reader credentials.Credentials, servers *debuginfod.Client) (f *os.File) {
	if mod.Binary.HasDWARF {
		return nil
	}
	_ = reader.Run(func() error {
		f = binary.OpenDebugFile(mod.Root, mod.Path, &mod.Binary)
		return nil
	})
	if f == nil {
		f = servers.File(ctx, &mod.Binary)
	}
	return f
}
