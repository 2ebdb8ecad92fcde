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

// image is one process's life as one program, from exec to exec or exit.
type image struct {
	pid        uint32
	generation uint32 // differs for every image of the capture
	mappings   []mapping
	exe        *module
	rts        *module // the module that holds GHC's run-time system, nil if none
	layout     bpf.ProcessLayout
	walked     bool        // the walker knows the layout
	fromStart  bool        // watched from its first instruction
	alloc      *allocSites // nil unless its allocation is sampled
	exited     bool
	refreshed  uint64 // when /proc/PID/maps was last read for an unknown address, ns
}

// mapping is a stretch of mapped code.
type mapping struct {
	start, end, bias uint64
	module           *module
}

// add enters a mapping, replacing what it covers.
func (im *image) add(m mapping) {
	im.mappings = slices.DeleteFunc(im.mappings, func(old mapping) bool {
		return old.start < m.end && m.start < old.end
	})
	at, _ := slices.BinarySearchFunc(im.mappings, m.start, func(e mapping, start uint64) int {
		switch {
		case e.start < start:
			return -1
		case e.start > start:
			return 1
		}
		return 0
	})
	im.mappings = slices.Insert(im.mappings, at, m)
}

// resolve gives the module and module address of a run-time address.
func (im *image) resolve(addr uint64) (module uint32, moduleAddr uint64, ok bool) {
	lo, hi := 0, len(im.mappings)
	for lo < hi {
		mid := (lo + hi) / 2
		if im.mappings[mid].end <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(im.mappings) && im.mappings[lo].start <= addr {
		m := im.mappings[lo]
		return m.module.id, addr - m.bias, true
	}
	return 0, addr, false
}

// biasOf is the bias of a module in the image, 0 if it is not mapped.
func (im *image) biasOf(mod *module) uint64 {
	for _, m := range im.mappings {
		if m.module == mod {
			return m.bias
		}
	}
	return 0
}

// Where the kernel places shared libraries on 64-bit machines: below the
// stack, far above GHC's heap at 0x4200000000.
const (
	libraryRegionLo = 0x7000_0000_0000
	libraryRegionHi = 0x8000_0000_0000
)

// deriveLayout works out what the walker must know; false when the image is no
// Haskell program.
func (im *image) deriveLayout() (assumed, ok bool) {
	if im.rts == nil {
		return false, false
	}
	b := &im.rts.binary
	thin := im.layout.Thin
	im.layout, assumed = bpf.HeapLayout(b.GHCVersion, b.Profiled(), b.Threaded())
	im.layout.Generation = im.generation
	im.layout.Thin = thin
	if a := im.alloc; a != nil {
		bias := im.biasOf(im.rts)
		im.layout.EnterInfo = a.enter + bias
		im.layout.CannedLo, im.layout.CannedHi = a.cannedLo+bias, a.cannedHigh+bias
		if a.capabilities != 0 && a.nCapabilities != 0 {
			im.layout.Capabilities, im.layout.N_capabilities = a.capabilities+bias, a.nCapabilities+bias
			if a.capabilitiesInPlace {
				im.layout.CapabilitiesInPlace = 1
			}
			if a.mainCapability != 0 {
				im.layout.MainCapability = a.mainCapability + bias
			}
		}
	}
	var ranges int
	for _, m := range im.mappings {
		if m.module != im.exe {
			continue
		}
		if ranges == 0 {
			im.layout.TextLo[0], im.layout.TextHi[0] = m.start, m.end
		}
		im.layout.TextLo[0] = min(im.layout.TextLo[0], m.start)
		im.layout.TextHi[0] = max(im.layout.TextHi[0], m.end)
		ranges++
	}
	if im.rts != im.exe || im.exe.binary.DynamicHaskell {
		im.layout.TextLo[1], im.layout.TextHi[1] = libraryRegionLo, libraryRegionHi
	}
	return assumed, true
}

// processes follows every profiled process and tells the log and the walker.
type processes struct {
	sampler    *bpf.Sampler
	modules    *modules
	tables     *tables
	emit       func(time uint64, e eventlog.Event) error
	warn       func(line string)
	alloc      *allocProbes // nil unless allocation is sampled
	ticky      *ticky
	rts        *rtsProbes // nil unless a timeline is drawn
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

func newProcesses(s *bpf.Sampler, emit func(uint64, eventlog.Event) error, warn func(string), alloc *allocProbes, rts *rtsProbes, who *invoker.User) *processes {
	return &processes{sampler: s, modules: newModules(), tables: newTables(who), emit: emit, warn: warn, alloc: alloc, rts: rts, ticky: newTicky(s.ShutdownProgram, warn), images: map[uint32]*image{}}
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
	// Until it is known how many large objects there are, not all are sampled.
	im.layout.Thin[bpf.SiteLarge] = firstLargeThin
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
	im.alloc = ps.alloc.find(im)
	old := im.layout
	if _, ok := im.deriveLayout(); !ok {
		return nil
	}
	ps.ticky.prepare(im)
	if im.walked && old == im.layout {
		return nil
	}
	im.walked = true
	if err := ps.sampler.SetLayout(im.pid, im.layout); err != nil {
		return err
	}
	ps.ticky.attach(im)
	ps.rts.attach(im)
	return ps.alloc.attach(im)
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
			ps.ticky.drop(old)
			if err := errors.Join(ps.alloc.drop(old), ps.rts.drop(old, time)); err != nil {
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
		ps.ticky.drop(im)
		if err := errors.Join(ps.alloc.drop(im), ps.rts.drop(im, time)); err != nil {
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
