package process

import (
	"bytes"
	"math/bits"
	"slices"
	"strings"

	"ccagent/agent/sink"
	"ccagent/bpf"
	"ccagent/eventlog"
)

// Image is one process's life as one program, from exec to exec or exit.
type Image struct {
	PID         uint32
	Log         *sink.Sink // that it is recorded in
	Incarnation uint32     // differs for every image of the capture
	Mappings    []Mapping
	Exe         *Module
	RTS         *Module           // the module that holds GHC's run-time system, nil if none
	Layout      bpf.ProcessLayout // as it is set in the walker
	Assumed     bool              // the layout is that of another version of GHC
	walked      bool              // the walker knows the layout
	FromStart   bool              // watched from its first instruction
	Exited      bool
	Forked      bool // it is a copy of its parent's, so far
	Memory      *Memory
	refresh     uint64  // when /proc/PID/maps may be read again for an unknown address, ns
	mayAdd      float64 // mappings that may be followed now
	mayAddAt    uint64  // as of when, ns
}

// NewImage makes the image of a process, without mappings or a log.
func NewImage(pid, incarnation uint32) *Image {
	return &Image{PID: pid, Incarnation: incarnation, Memory: &Memory{pid: pid}}
}

// Mapping is a stretch of mapped code.
type Mapping struct {
	Start, End, Bias uint64
	Module           *Module
}

// maxMappings bounds the mappings of code that are known of a process, and mappingsPerSecond how many of a process are followed where
// it maps more than mappingsAtOnce: programs map their libraries when they start, and a few files later. One that maps code
// without end takes no more than that. What is not followed is read from /proc when a sample is there.
const (
	maxMappings       = 4096
	mappingsAtOnce    = 1024
	mappingsPerSecond = 16
)

// mayMap reports whether one more mapping of a process is followed at a time, ns.
func (im *Image) mayMap(time uint64) bool {
	if im.mayAddAt == 0 {
		im.mayAdd, im.mayAddAt = mappingsAtOnce, time
	}
	passed := time - min(im.mayAddAt, time)
	im.mayAddAt += passed
	im.mayAdd = min(im.mayAdd+float64(passed)*mappingsPerSecond/1e9, mappingsAtOnce)
	if im.mayAdd < 1 {
		return false
	}
	im.mayAdd--
	return true
}

// has reports whether a mapping is known.
func (im *Image) has(start, end uint64) bool {
	m := im.MappingOf(start)
	return m != nil && m.Start == start && m.End == end
}

// add enters a mapping, replacing what it covers.
func (im *Image) add(m Mapping) {
	im.Mappings = slices.DeleteFunc(im.Mappings, func(old Mapping) bool {
		return old.Start < m.End && m.Start < old.End
	})
	at, _ := slices.BinarySearchFunc(im.Mappings, m.Start, func(e Mapping, start uint64) int {
		switch {
		case e.Start < start:
			return -1
		case e.Start > start:
			return 1
		}
		return 0
	})
	im.Mappings = slices.Insert(im.Mappings, at, m)
}

// writeMappings writes all mappings into the image's log.
func (im *Image) writeMappings(time uint64) error {
	for _, m := range im.Mappings {
		if err := m.Module.define(time, im.Log); err != nil {
			return err
		}
		if err := im.Log.Emit(time, &eventlog.Mapping{PID: im.PID, Module: m.Module.ID, Start: m.Start, End: m.End, Bias: m.Bias}); err != nil {
			return err
		}
	}
	return nil
}

// Resolve returns the module and module address of a run-time address.
func (im *Image) Resolve(addr uint64) (module uint32, moduleAddr uint64, ok bool) {
	if m := im.MappingOf(addr); m != nil {
		return m.Module.ID, addr - m.Bias, true
	}
	return 0, addr, false
}

// MappingOf returns the mapping of code that an address is in, nil if it is in none.
func (im *Image) MappingOf(addr uint64) *Mapping {
	lo, hi := 0, len(im.Mappings)
	for lo < hi {
		mid := (lo + hi) / 2
		if im.Mappings[mid].End <= addr {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	if lo < len(im.Mappings) && im.Mappings[lo].Start <= addr {
		return &im.Mappings[lo]
	}
	return nil
}

// BiasOf returns the bias of a module in the image, 0 if it is not mapped.
func (im *Image) BiasOf(mod *Module) uint64 {
	for _, m := range im.Mappings {
		if m.Module == mod {
			return m.Bias
		}
	}
	return 0
}

// libraryRegion returns the half of the address space in which the kernel places shared libraries: the one of the highest library. It
// is above GHC's heap at 0x4200000000 where addresses have more than 40 bits, and holds what is loaded later, too. Addresses have
// 47 bits on x86-64, and on arm64 from 39 to 48, as the kernel was built.
func (im *Image) libraryRegion() (lo, hi uint64) {
	for _, m := range im.Mappings {
		if m.Module != im.Exe {
			lo = 1 << (bits.Len64(m.Start) - 1)
		}
	}
	return lo, 2 * lo
}

// deriveLayout computes the image's layout for the walker; false if the image is no Haskell
// program.
func (im *Image) deriveLayout() bool {
	if im.RTS == nil {
		return false
	}
	b := &im.RTS.Binary
	thin := im.Layout.Thin
	im.Layout, im.Assumed = bpf.HeapLayout(b.GHCVersion, b.Profiled(), b.Threaded())
	im.Layout.Incarnation = im.Incarnation
	im.Layout.Thin = thin
	l, bias, task := &im.Layout, im.BiasOf(im.RTS), im.RTS.taskVariable()
	switch {
	case task.First != 0:
		l.TaskPlace, l.TaskAt = bpf.TaskAt, task.First+bias
	case task.Offset != 0:
		l.TaskPlace, l.TaskAt = bpf.TaskOffset, uint64(task.Offset)
	case task.Module != 0:
		l.TaskPlace, l.TaskAt, l.TaskModule = bpf.TaskModule, task.InModule, task.Module+bias
	}
	var ranges int
	for _, m := range im.Mappings {
		if m.Module != im.Exe {
			continue
		}
		if ranges == 0 {
			im.Layout.TextLo[0], im.Layout.TextHi[0] = m.Start, m.End
		}
		im.Layout.TextLo[0] = min(im.Layout.TextLo[0], m.Start)
		im.Layout.TextHi[0] = max(im.Layout.TextHi[0], m.End)
		ranges++
	}
	if im.RTS != im.Exe || im.Exe.Binary.DynamicHaskell {
		im.Layout.TextLo[1], im.Layout.TextHi[1] = im.libraryRegion()
	}
	return true
}

// maps reports whether the image has the module mapped.
func (im *Image) maps(mod *Module) bool {
	return slices.ContainsFunc(im.Mappings, func(m Mapping) bool { return m.Module == mod })
}

// regions lists where the image has call frame information, its program first:
// that is where most samples are.
func (im *Image) regions() []bpf.Region {
	var regions []bpf.Region
	add := func(exe bool) {
		for _, m := range im.Mappings {
			if t := m.Module.unwind; t != nil && (m.Module == im.Exe) == exe {
				regions = append(regions, bpf.Region{Start: m.Start, End: m.End, Base: m.Bias + t.base, Table: t.Table})
			}
		}
	}
	add(true)
	add(false)
	return regions
}

// maxName bounds the names that are read from programs.
const maxName = 255

// ReadName reads a string constant of the image's program: from the file that is
// mapped there, since its page need not have been touched and the process may have
// ended, else from memory. It is empty if that cannot be read, and cut if it is
// longer than any name.
func (im *Image) ReadName(address uint64) string {
	if address == 0 {
		return ""
	}
	var buf [maxName + 1]byte
	n := im.readFile(buf[:], address)
	if n == 0 && !im.Exited {
		n, _ = im.Memory.ReadAt(buf[:], int64(address)) // as much as there is
	}
	name, _, _ := bytes.Cut(buf[:n], []byte{0})
	return strings.ToValidUTF8(string(name[:min(len(name), maxName)]), "�")
}

// readFile reads what the image's modules have at a run-time address.
func (im *Image) readFile(buf []byte, address uint64) int {
	for _, m := range im.Mappings {
		if m.Module.File == nil {
			continue
		}
		if offset, ok := m.Module.FileOffset(address - m.Bias); ok {
			n, _ := m.Module.File.ReadAt(buf, int64(offset)) // as much as there is
			return n
		}
	}
	return 0
}
