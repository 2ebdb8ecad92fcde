package agent

import (
	"errors"
	"slices"

	"ccagent/agent/invoker"
	"ccagent/agent/procfs"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// follower is who has something of its own in processes.
type follower interface {
	// complete adds to what the walker is to be told of an image.
	complete(im *image)
	// attach is called whenever the walker was told of an image.
	attach(im *image) error
	// unwinds is called when it is settled what the walker can unwind of an image's
	// run-time system.
	unwinds(im *image)
	// drop is called when an image's program has ended.
	drop(im *image, time uint64) error
}

// processes follows every profiled process and tells the log and the walker.
type processes struct {
	sampler    *bpf.Sampler
	modules    *modules
	tables     *tables
	emit       func(time uint64, e eventlog.Event) error
	warn       func(line string)
	followers  []follower
	images     map[uint32]*image
	generation uint32
}

// exited reports whether a process has ended.
func (ps *processes) exited(pid uint32) bool {
	im := ps.images[pid]
	return im == nil || im.exited
}

// now is for events that have no time of their own.
const now = ^uint64(0)

func newProcesses(s *bpf.Sampler, emit func(uint64, eventlog.Event) error, warn func(string), who *invoker.User, followers ...follower) *processes {
	return &processes{sampler: s, modules: newModules(), tables: newTables(who), emit: emit, warn: warn, followers: followers, images: map[uint32]*image{}}
}

// discover takes in a process that runs already.
func (ps *processes) discover(pid uint32, comm, path string, fromStart bool) (*image, error) {
	im := ps.newImage(pid)
	im.fromStart = fromStart
	if err := ps.emit(now, &eventlog.Process{Change: eventlog.ProcessSeen, PID: pid, Comm: comm, Path: path}); err != nil {
		return nil, err
	}
	return im, ps.readMappings(now, im)
}

func (ps *processes) newImage(pid uint32) *image {
	ps.generation++
	im := &image{pid: pid, generation: ps.generation}
	ps.images[pid] = im
	return im
}

// readMappings takes in what /proc tells of a process's mappings. A process
// that has ended has none to tell.
func (ps *processes) readMappings(time uint64, im *image) error {
	maps, err := procfs.Maps(int(im.pid))
	if err != nil {
		return nil
	}
	for _, m := range maps {
		if err := ps.mapped(time, im, m); err != nil {
			return err
		}
	}
	return nil
}

// mapped takes in one executable mapping.
func (ps *processes) mapped(time uint64, im *image, m procfs.Mapping) error {
	if m.Inode == 0 || m.Path == "" || m.Path[0] != '/' {
		return nil // anonymous memory, the vDSO
	}
	for _, old := range im.mappings {
		if old.start == m.Start && old.end == m.End {
			return nil
		}
	}
	mod, isNew := ps.modules.of(im.pid, m)
	if isNew {
		if err := ps.emit(time, mod.event()); err != nil {
			return err
		}
		ps.tables.compile(mod)
	}
	bias := mod.bias(m)
	im.add(mapping{m.Start, m.End, bias, mod})
	if im.exe == nil {
		im.exe = mod // the kernel maps the program before any library
	}
	if mod.binary.RTS {
		im.rts = mod
	}
	if err := ps.tellWalker(im); err != nil {
		return err
	}
	return ps.emit(time, &eventlog.Mapping{PID: im.pid, Module: mod.id, Start: m.Start, End: m.End, Bias: bias})
}

// tellWalker gives the walker what it must know of an image.
func (ps *processes) tellWalker(im *image) error {
	if im.exited {
		return nil
	}
	if err := ps.sampler.SetRegions(im.pid, im.regions()); err != nil {
		return err
	}
	old := im.layout
	if !im.deriveLayout() {
		return nil
	}
	for _, f := range ps.followers {
		f.complete(im)
	}
	if im.walked && old == im.layout {
		return nil
	}
	im.walked = true
	if err := ps.sampler.SetLayout(im.pid, im.layout); err != nil {
		return err
	}
	for _, f := range ps.followers {
		if err := f.attach(im); err != nil {
			return err
		}
	}
	return nil
}

// drop is called when an image's program has ended.
func (ps *processes) drop(im *image, time uint64) error {
	var err error
	for _, f := range ps.followers {
		err = errors.Join(err, f.drop(im, time))
	}
	return err
}

// apply takes in what the side band told.
func (ps *processes) apply(c perf.Change) error {
	time := perf.ChangeTime(c)
	switch c := c.(type) {
	case *perf.Mmap:
		im := ps.images[c.PID]
		if im == nil {
			im = ps.newImage(c.PID)
		}
		return ps.mapped(time, im, procfs.Mapping{
			Start: c.Start, End: c.Start + c.Length, Offset: c.Offset,
			Major: c.Major, Minor: c.Minor, Inode: c.Inode, Path: c.Filename})
	case *perf.Exec:
		if err := ps.sampler.Forget(c.PID); err != nil {
			return err
		}
		if old := ps.images[c.PID]; old != nil {
			if err := ps.drop(old, time); err != nil {
				return err
			}
		}
		ps.newImage(c.PID).fromStart = true
		path := procfs.Exe(c.PID)
		return ps.emit(time, &eventlog.Process{Change: eventlog.ProcessExeced, PID: c.PID, Comm: c.Comm, Path: path})
	case *perf.Fork:
		im := ps.newImage(c.PID)
		if parent := ps.images[c.Parent]; parent != nil {
			im.mappings = slices.Clone(parent.mappings)
			im.exe, im.rts = parent.exe, parent.rts
		}
		if err := ps.emit(time, &eventlog.Process{Change: eventlog.ProcessForked, PID: c.PID, Parent: c.Parent}); err != nil {
			return err
		}
		for _, m := range im.mappings {
			if err := ps.emit(time, &eventlog.Mapping{PID: c.PID, Module: m.module.id, Start: m.start, End: m.end, Bias: m.bias}); err != nil {
				return err
			}
		}
		return ps.tellWalker(im)
	case *perf.Exit:
		im := ps.images[c.PID]
		if im == nil || c.TID != c.PID {
			return nil
		}
		im.exited = true
		if err := ps.drop(im, time); err != nil {
			return err
		}
		if err := ps.sampler.Forget(c.PID); err != nil {
			return err
		}
		return ps.emit(time, &eventlog.Process{Change: eventlog.ProcessExited, PID: c.PID})
	}
	return nil
}

// refreshInterval bounds how often /proc/PID/maps is read again for addresses
// that no known mapping covers.
const refreshInterval = 1e9

// locate resolves an address of a process, reading its mappings again when
// nothing known covers it.
func (ps *processes) locate(im *image, time, addr uint64) (module uint32, moduleAddr uint64, err error) {
	module, moduleAddr, ok := im.resolve(addr)
	if ok || im.exited || time < im.refreshed+refreshInterval && im.refreshed != 0 {
		return module, moduleAddr, nil
	}
	im.refreshed = time
	if err := ps.readMappings(time, im); err != nil {
		return 0, 0, err
	}
	module, moduleAddr, _ = im.resolve(addr)
	return module, moduleAddr, nil
}
