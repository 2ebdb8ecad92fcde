package process

import (
	"debug/elf"
	"math/rand/v2"
	"testing"

	"ccagent/agent/procfs"
	"ccagent/symbolize/elffile"
)

// Mappings replace what they cover; an address resolves to the newest.
func TestImageResolve(t *testing.T) {
	const pages = 64
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		im := &Image{}
		var of [pages]*Module // by page
		for id := uint32(1); id < 20; id++ {
			lo := r.IntN(pages - 1)
			hi := lo + 1 + r.IntN(pages-lo-1)
			mod := &Module{ID: id}
			for _, old := range im.Mappings {
				// What is covered in part goes as a whole: the rest of it is not
				// known to be mapped still.
				if old.Start < uint64(hi)<<12 && uint64(lo)<<12 < old.End {
					for p := old.Start >> 12; p < old.End>>12; p++ {
						of[p] = nil
					}
				}
			}
			im.add(Mapping{uint64(lo) << 12, uint64(hi) << 12, uint64(lo) << 12, mod})
			for p := lo; p < hi; p++ {
				of[p] = mod
			}
		}
		for p := range uint64(pages) {
			id, _, ok := im.Resolve(p<<12 + 5)
			if ok != (of[p] != nil) || ok && id != of[p].ID {
				t.Fatalf("page %d resolves to module %d, %v; want %+v in %+v", p, id, ok, of[p], im.Mappings)
			}
		}
	}
}

// Info tables of shared libraries are looked for where these are, whatever bits the machine's addresses have.
func TestLibraryRegion(t *testing.T) {
	const heap = 0x4200000000 // of GHC
	for _, c := range []struct {
		name         string
		exe, library uint64
	}{
		{"x86-64", 0x555555554000, 0x7f1200000000},
		{"x86-64, libraries from below", 0x400000, 0x2aaaaaab0000},
		{"arm64, 48 bits", 0xaaaae0000000, 0xffff80000000},
		{"arm64, 42 bits", 0x2aaaae00000, 0x3ff80000000},
	} {
		exe, library := &Module{}, &Module{}
		im := &Image{Exe: exe}
		im.add(Mapping{c.exe, c.exe + 0x1000, c.exe, exe})
		im.add(Mapping{c.library, c.library + 0x1000, c.library, library})
		lo, hi := im.libraryRegion()
		const later = 1 << 30 // below, or above, a library that is loaded later is placed
		if lo > c.library-later || hi < c.library+later || lo <= heap || hi > 1<<48 {
			t.Errorf("%s: libraries at %#x are looked for from %#x to %#x", c.name, c.library, lo, hi)
		}
	}
}

func TestModuleBias(t *testing.T) {
	mod := &Module{Segments: []elffile.Segment{
		{Type: elf.PT_LOAD, Flags: elf.PF_R, Offset: 0, Addr: 0x400000, Filesz: 0x3000},
		{Type: elf.PT_LOAD, Flags: elf.PF_R | elf.PF_X, Offset: 0x3840, Addr: 0x404840, Filesz: 0x9000},
	}}
	for _, c := range []struct {
		m    procfs.Mapping
		want uint64
	}{
		{procfs.Mapping{Start: 0x404000, Offset: 0x3000}, 0},
		{procfs.Mapping{Start: 0x555500404000, Offset: 0x3000}, 0x555500000000},
		{procfs.Mapping{Start: 0x405000, Offset: 0x4000}, 0},
	} {
		if got := mod.bias(c.m); got != c.want {
			t.Errorf("bias of %+v is %#x, want %#x", c.m, got, c.want)
		}
	}
	// A file that is no ELF has file offsets for addresses.
	plain := &Module{}
	if got := plain.bias(procfs.Mapping{Start: 0x7000, Offset: 0x2000}); got != 0x5000 {
		t.Errorf("bias of a plain file is %#x", got)
	}
}
