package process

import (
	"errors"
	"slices"

	"ccagent/agent/invoker"
	"ccagent/agent/procfs"
	"ccagent/agent/sink"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// A Watcher is notified when a process image is set up in the stack walker, changes, and ends.
// Sources that have probes or counters in processes need that.
type Watcher interface {
	// Prepare adds to the layout that the walker will be given of an image.
	Prepare(im *Image)
	// Attach is called after the walker was given an image's layout, and again whenever that
	// has changed.
	Attach(im *Image) error
	// Unwindable is called when the walker has the call frame information of an image's
	// run-time system, or when it is certain that there is none.
	Unwindable(im *Image)
	// Detach is called when an image's program has ended.
	Detach(im *Image, time uint64) error
}

// Table holds every profiled process, follows what it maps, executes and forks, and reports that
// to the process's log and the walker. What a process forks has its log.
type Table struct {
	sampler  *bpf.Sampler // nil in a table of NewUnwalked; so is tables
	modules  *modules
	tables   *tables
	logs     *sink.Set
	watchers []Watcher
	Images   map[uint32]*Image
	// Haskell is set when any process has run a program that GHC compiled.
	Haskell     bool
	incarnation uint32
}

// Exited reports whether a process has ended.
func (ps *Table) Exited(pid uint32) bool {
	im := ps.Images[pid]
	return im == nil || im.Exited
}

// New makes a table without processes.
func New(s *bpf.Sampler, logs *sink.Set, who *invoker.User, watchers ...Watcher) *Table {
	return &Table{sampler: s, modules: newModules(), tables: newTables(who), logs: logs, watchers: watchers, Images: map[uint32]*Image{}}
}

// NewUnwalked makes a table whose processes the walker does not know: what they map is followed,
// and their memory can be read.
func NewUnwalked(logs *sink.Set) *Table {
	return &Table{modules: newModules(), logs: logs, Images: map[uint32]*Image{}}
}

// Modules are all files of code seen so far, by their ID − 1.
func (ps *Table) Modules() []*Module { return ps.modules.byID }

// Close closes all processes and files. StopCompiling comes before it.
func (ps *Table) Close() error {
	for _, im := range ps.Images {
		im.Memory.close()
	}
	return ps.modules.Close()
}

// Discover adds a process that runs already, to be recorded in a log.
func (ps *Table) Discover(log *sink.Sink, pid uint32, comm, path string, fromStart bool) (*Image, error) {
	im := ps.newImage(pid, log)
	im.FromStart = fromStart
	if ps.sampler == nil {
		im.Memory.hold() // before its mappings are read: both are of one program, or the memory is gone
	}
	if err := log.Emit(sink.Now, &eventlog.Process{Change: eventlog.ProcessSeen, PID: pid, Comm: comm, Path: path}); err != nil {
		return nil, err
	}
	return im, ps.readMappings(sink.Now, im)
}

// Expect reads what Discover needs of the files that a process maps now, and begins to compile their
// call frame information, so that it is done beside what comes before Discover. Nothing else may use
// the table meanwhile. What fails here fails in Discover, which says so.
func (ps *Table) Expect(pid uint32) {
	maps, err := procfs.Maps(int(pid))
	if err != nil {
		return
	}
	for _, m := range maps {
		if !isFile(m) {
			continue
		}
		mod, isNew := ps.modules.of(pid, m)
		if isNew && ps.tables != nil {
			ps.tables.compile(mod)
		}
		if mod.Binary.RTS { // both are kept
			_, _ = mod.RTSSymbols()
			_, _ = mod.executable()
		}
	}
}

func (ps *Table) newImage(pid uint32, log *sink.Sink) *Image {
	ps.incarnation++
	im := NewImage(pid, ps.incarnation)
	im.Log = log
	ps.Images[pid] = im
	return im
}

// readMappings adds the mappings of a process from /proc. A process that has ended has none.
func (ps *Table) readMappings(time uint64, im *Image) error {
	maps, err := procfs.Maps(int(im.PID))
	if err != nil {
		return nil
	}
	if len(im.Mappings) >= maxMappings {
		im.Mappings = nil // most of them are no more: nothing tells of what is unmapped
	}
	added := false
	for _, m := range maps {
		isNew, err := ps.enter(time, im, m)
		if err != nil {
			return err
		}
		added = added || isNew
	}
	if !added {
		return nil
	}
	return ps.updateWalker(im)
}

// mapped adds one executable mapping.
func (ps *Table) mapped(time uint64, im *Image, m procfs.Mapping) error {
	if added, err := ps.enter(time, im, m); !added || err != nil {
		return err
	}
	return ps.updateWalker(im)
}

// enter adds one executable mapping without telling the walker; false if it is known, or of no file, or one too many.
func (ps *Table) enter(time uint64, im *Image, m procfs.Mapping) (added bool, err error) {
	if !isFile(m) || im.has(m.Start, m.End) || len(im.Mappings) >= maxMappings {
		return false, nil
	}
	mod, isNew := ps.modules.of(im.PID, m)
	if isNew && ps.tables != nil {
		ps.tables.compile(mod)
	}
	if err := mod.define(time, im.Log); err != nil {
		return false, err
	}
	bias := im.mapModule(mod, m).Bias
	ps.Haskell = ps.Haskell || mod.Binary.RTS || mod.Binary.GHC && mod == im.Exe
	return true, im.Log.Emit(time, &eventlog.Mapping{PID: im.PID, Module: mod.ID, Start: m.Start, End: m.End, Bias: bias})
}

// isFile reports whether a mapping is of a file: not of anonymous memory or the vDSO.
func isFile(m procfs.Mapping) bool { return m.Inode != 0 && m.Path != "" && m.Path[0] == '/' }

// mapModule enters a mapping of a module.
func (im *Image) mapModule(mod *Module, m procfs.Mapping) Mapping {
	to := Mapping{m.Start, m.End, mod.bias(m), mod}
	im.add(to)
	if im.Exe == nil {
		im.Exe = mod // the kernel maps the program before any library
	}
	if mod.Binary.RTS {
		im.RTS = mod
	}
	return to
}

// updateWalker sets an image's layout and code regions in the walker.
func (ps *Table) updateWalker(im *Image) error {
	if im.Exited {
		return nil
	}
	if ps.sampler == nil {
		if im.deriveLayout() {
			im.Memory.hold()
		}
		return nil
	}
	if err := ps.sampler.SetRegions(im.PID, im.regions()); err != nil {
		return err
	}
	old := im.Layout
	if !im.deriveLayout() {
		return nil
	}
	for _, w := range ps.watchers {
		w.Prepare(im)
	}
	if im.walked && old == im.Layout {
		return nil
	}
	im.walked = true
	im.Memory.hold()
	if err := ps.sampler.SetLayout(im.PID, im.Layout); err != nil {
		return err
	}
	for _, w := range ps.watchers {
		if err := w.Attach(im); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes a process.
func (ps *Table) Remove(im *Image, time uint64) error {
	delete(ps.Images, im.PID)
	if im.Exited {
		return nil
	}
	im.Exited = true
	return errors.Join(ps.drop(im, time), ps.sampler.Forget(im.PID))
}

// Redirect has a process recorded in another log from now on, unless that fails.
func (ps *Table) Redirect(im *Image, log *sink.Sink, comm, path string) error {
	old := im.Log
	im.Log = log
	err := log.Emit(sink.Now, &eventlog.Process{Change: eventlog.ProcessSeen, PID: im.PID, Comm: comm, Path: path})
	if err == nil {
		err = im.writeMappings(sink.Now)
	}
	if err != nil {
		im.Log = old
	}
	return err
}

// drop removes an image whose program has ended.
func (ps *Table) drop(im *Image, time uint64) error {
	var err error
	for _, w := range ps.watchers {
		err = errors.Join(err, w.Detach(im, time))
	}
	im.Memory.close()
	return err
}

// Follows reports whether a record of the side band is of a process of the table, or of one that
// such a process forks.
func (ps *Table) Follows(c perf.Change) bool {
	var pid uint32
	switch c := c.(type) {
	case *perf.Mmap:
		pid = c.PID
	case *perf.Exec:
		pid = c.PID
	case *perf.Fork:
		pid = c.Parent
	case *perf.Exit:
		pid = c.PID
	}
	return !ps.Exited(pid)
}

// Apply updates the table by a record of the side band, of a process that it Follows.
func (ps *Table) Apply(c perf.Change) error {
	time := perf.ChangeTime(c)
	switch c := c.(type) {
	case *perf.Mmap:
		if !ps.Images[c.PID].mayMap(time) {
			return nil
		}
		return ps.mapped(time, ps.Images[c.PID], procfs.Mapping{
			Start: c.Start, End: c.Start + c.Length, Offset: c.Offset,
			Major: c.Major, Minor: c.Minor, Inode: c.Inode, Path: c.Filename})
	case *perf.Exec:
		if err := ps.sampler.Forget(c.PID); err != nil {
			return err
		}
		old := ps.Images[c.PID]
		if err := ps.drop(old, time); err != nil {
			return err
		}
		ps.newImage(c.PID, old.Log).FromStart = true
		path := procfs.Exe(c.PID)
		return old.Log.Emit(time, &eventlog.Process{Change: eventlog.ProcessExeced, PID: c.PID, Comm: c.Comm, Path: path})
	case *perf.Fork:
		parent := ps.Images[c.Parent]
		_, err := ps.Fork(parent.Log, time, c.PID, parent)
		return err
	case *perf.Exit:
		im := ps.Images[c.PID]
		if im == nil || c.TID != c.PID {
			return nil
		}
		im.Exited = true
		if err := ps.drop(im, time); err != nil {
			return err
		}
		if err := ps.sampler.Forget(c.PID); err != nil {
			return err
		}
		return im.Log.Emit(time, &eventlog.Process{Change: eventlog.ProcessExited, PID: c.PID})
	}
	return nil
}

// Fork adds a process that was forked by another of the table, to be recorded in a log.
func (ps *Table) Fork(log *sink.Sink, time uint64, pid uint32, parent *Image) (*Image, error) {
	im := ps.newImage(pid, log)
	im.Forked = true
	im.Mappings = slices.Clone(parent.Mappings)
	im.Exe, im.RTS = parent.Exe, parent.RTS
	if err := log.Emit(time, &eventlog.Process{Change: eventlog.ProcessForked, PID: pid, Parent: parent.PID}); err != nil {
		return nil, err
	}
	return im, errors.Join(im.writeMappings(time), ps.updateWalker(im))
}

// refreshInterval bounds how often /proc/PID/maps is read again for addresses
// that no known mapping covers, ns, and refreshPart which part of the time that takes.
const (
	refreshInterval = 1e9
	refreshPart     = 0.01
)

// Locate resolves an address of a process, reading its mappings again when
// nothing known covers it.
func (ps *Table) Locate(im *Image, time, addr uint64) (module uint32, moduleAddr uint64, err error) {
	module, moduleAddr, ok := im.Resolve(addr)
	if ok || im.Exited || time < im.refresh {
		return module, moduleAddr, nil
	}
	before := perf.Monotonic()
	if err := ps.readMappings(time, im); err != nil {
		return 0, 0, err
	}
	im.refresh = time + max(refreshInterval, uint64(float64(perf.Monotonic()-before)/refreshPart))
	module, moduleAddr, _ = im.Resolve(addr)
	return module, moduleAddr, nil
}
