package ipe

import (
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"slices"
	"sort"

	"ccagent/symbolize/elffile"
)

// loaded is a file as it is loaded, for reading the map. Neighbouring reads are
// served from one page.
type loaded struct {
	f      *elffile.File
	relocs []elffile.Relocation // by address
	pages  [64]struct {
		addr  uint64
		bytes []byte
	}
}

const loadedPage = 64 << 10

func newLoaded(f *elffile.File, limit uint64) (*loaded, error) {
	kinds := map[elf.Machine]uint32{elf.EM_X86_64: uint32(elf.R_X86_64_RELATIVE), elf.EM_AARCH64: uint32(elf.R_AARCH64_RELATIVE)}
	kind, ok := kinds[f.Machine]
	if !ok {
		return nil, errors.New("its pointers on this machine are not known")
	}
	relocs, err := f.Relocations(kind, limit)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(relocs, func(a, b elffile.Relocation) int { return cmp.Compare(a.Offset, b.Offset) })
	return &loaded{f: f, relocs: relocs}, nil
}

// Bytes is Memory's.
func (g *loaded) Bytes(addr, n uint64) []byte {
	base := addr &^ (loadedPage - 1)
	if n > loadedPage || addr+n > base+loadedPage || addr+n < addr {
		return g.f.ReadAddr(addr, n)
	}
	p := &g.pages[base/loadedPage%uint64(len(g.pages))]
	if p.bytes == nil || p.addr != addr&^(loadedPage-1) {
		b := g.f.ReadAddr(base, loadedPage)
		if len(b) == 0 { // the segment begins within the page
			return g.f.ReadAddr(addr, n)
		}
		p.addr, p.bytes = base, b
	}
	off := addr - base
	if off+n > uint64(len(p.bytes)) {
		return g.f.ReadAddr(addr, n)
	}
	return p.bytes[off : off+n]
}

// Pointer is Memory's.
func (g *loaded) Pointer(addr uint64) (uint64, bool) {
	i := sort.Search(len(g.relocs), func(i int) bool { return g.relocs[i].Offset >= addr })
	if i < len(g.relocs) && g.relocs[i].Offset == addr {
		return uint64(g.relocs[i].Addend), true
	}
	b := g.Bytes(addr, 8)
	if len(b) < 8 {
		return 0, false
	}
	return binary.LittleEndian.Uint64(b), true
}
