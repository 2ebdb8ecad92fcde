package agent

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strings"

	"ccagent/bpf"
)

// image is one process's life as one program, from exec to exec or exit.
type image struct {
	pid        uint32
	generation uint32 // differs for every image of the capture
	mappings   []mapping
	exe        *module
	rts        *module // the module that holds GHC's run-time system, nil if none
	layout     bpf.ProcessLayout
	assumed    bool // the layout is that of another version of GHC
	walked     bool // the walker knows the layout
	fromStart  bool // watched from its first instruction
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
func (im *image) deriveLayout() bool {
	if im.rts == nil {
		return false
	}
	b := &im.rts.binary
	thin := im.layout.Thin
	im.layout, im.assumed = bpf.HeapLayout(b.GHCVersion, b.Profiled(), b.Threaded())
	im.layout.Generation = im.generation
	im.layout.Thin = thin
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
	return true
}

// maps reports whether the image has the module mapped.
func (im *image) maps(mod *module) bool {
	return slices.ContainsFunc(im.mappings, func(m mapping) bool { return m.module == mod })
}

// regions lists where the image has call frame information, its program first:
// that is where most samples are.
func (im *image) regions() []bpf.Region {
	var regions []bpf.Region
	add := func(exe bool) {
		for _, m := range im.mappings {
			if t := m.module.unwind; t != nil && (m.module == im.exe) == exe {
				regions = append(regions, bpf.Region{Start: m.start, End: m.end, Base: m.bias + t.base, Table: t.Table})
			}
		}
	}
	add(true)
	add(false)
	return regions
}

// maxName bounds the names that are read from programs.
const maxName = 255

// readName reads a string constant of the image's program: from the file that is
// mapped there, since its page need not have been touched and the process may have
// ended, else from memory. It is empty if that cannot be read, and cut if it is
// longer than any name.
func (im *image) readName(address uint64) string {
	if address == 0 {
		return ""
	}
	var buf [maxName + 1]byte
	n := im.readFile(buf[:], address)
	if n == 0 && !im.exited {
		n = readMemory(im.pid, buf[:], address)
	}
	name, _, _ := bytes.Cut(buf[:n], []byte{0})
	return strings.ToValidUTF8(string(name[:min(len(name), maxName)]), "�")
}

// readFile reads what the image's modules have at a run-time address.
func (im *image) readFile(buf []byte, address uint64) int {
	for _, m := range im.mappings {
		if m.module.file == nil {
			continue
		}
		if offset, ok := m.module.fileOffset(address - m.bias); ok {
			n, _ := m.module.file.ReadAt(buf, int64(offset)) // as much as there is
			return n
		}
	}
	return 0
}

// readMemory reads a process's memory, as much as there is up to the page's end
// beyond which nothing may be mapped.
func readMemory(pid uint32, buf []byte, address uint64) int {
	if address>>63 != 0 {
		return 0
	}
	mem, err := os.Open(fmt.Sprintf("/proc/%d/mem", pid))
	if err != nil {
		return 0
	}
	defer mem.Close()
	n, _ := mem.ReadAt(buf, int64(address))
	return n
}
