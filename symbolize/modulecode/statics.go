package modulecode

import (
	"cmp"
	"context"
	"debug/elf"
	"encoding/binary"
	"slices"

	"ccagent/symbolize/elffile"
)

// Bounds on what is read of a file. The data of the largest programs seen, of 170 MB, have a million
// static closures.
const (
	maxStatics = 1 << 22
	maxData    = 512 << 20
	maxCode    = 1 << 30
)

// static is a word of the data that may be a static closure's info pointer. Both are module addresses.
type static struct{ at, info uint64 }

// image is the file and what was read of it.
type image struct {
	*elffile.File
	profiled bool
	statics  []static             // by address
	relocs   []elffile.Relocation // by address
	tables   map[uint64]table     // by info pointer
}

// table is an info table that matters here: of a function or top-level thunk that has one static closure, which has no name here, or of
// a constructor, whose full name it has.
type table struct{ constructor string }

// readImage lists the words of the data that point to code, and reads info tables in the code. It returns false
// if there are too many.
func readImage(ctx context.Context, f *elffile.File, profiled bool) (*image, bool, error) {
	im := &image{File: f, profiled: profiled, tables: map[uint64]table{}}
	for _, p := range f.Segments {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_W == 0 {
			continue
		}
		at := p.Addr
		err := f.Scan(p.Offset, p.Filesz, maxData, 0, func(chunk []byte) bool {
			for ; len(chunk) >= 8; chunk, at = chunk[8:], at+8 {
				im.add(at, binary.LittleEndian.Uint64(chunk))
			}
			return ctx.Err() == nil && len(im.statics) <= maxStatics
		})
		if err != nil {
			return nil, false, err
		}
	}
	// In a position-independent file the addresses stand in relocations, and in the words too or not.
	if kind, ok := relative[f.Machine]; ok {
		relocs, err := f.Relocations(kind, maxData)
		if err != nil {
			return nil, false, err
		}
		for _, r := range relocs {
			im.add(r.Offset, uint64(r.Addend))
		}
		slices.SortFunc(relocs, func(a, b elffile.Relocation) int { return cmp.Compare(a.Offset, b.Offset) })
		im.relocs = relocs
	}
	if len(im.statics) > maxStatics {
		return nil, false, nil
	}
	slices.SortFunc(im.statics, func(a, b static) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.info, b.info)) })
	im.statics = slices.Compact(im.statics)
	return im, true, im.readTables(ctx)
}

// relative has the relocations that add where the file is mapped to an address of the file.
var relative = map[elf.Machine]uint32{
	elf.EM_X86_64:  uint32(elf.R_X86_64_RELATIVE),
	elf.EM_AARCH64: uint32(elf.R_AARCH64_RELATIVE),
}

func (im *image) add(at, value uint64) {
	if value%im.alignment() == 0 && at%8 == 0 && len(im.statics) <= maxStatics && im.Executable(value) {
		im.statics = append(im.statics, static{at, value})
	}
}

// payload reads a word of a static closure's payload.
func (im *image) payload(closure, n uint64) uint64 {
	addr := closure + 8 + 8*n
	if im.profiled {
		addr += profiledHeader
	}
	if i, ok := slices.BinarySearchFunc(im.relocs, addr, func(r elffile.Relocation, a uint64) int { return cmp.Compare(r.Offset, a) }); ok {
		return uint64(im.relocs[i].Addend)
	}
	b := im.ReadAddr(addr, 8)
	if len(b) < 8 {
		return 0
	}
	return binary.LittleEndian.Uint64(b)
}

// profiledHeader is what a closure's header has more in the profiling way, in bytes
// (StgProfHeader in rts/include/rts/storage/Closures.h).
const profiledHeader = 16

// field reads a pointer of a static closure's payload, without its tag.
func (im *image) field(closure, n uint64) uint64 { return im.payload(closure, n) &^ tagMask }

const tagMask = 7 // GHC marks pointers in their low bits

// text reads a string of C that is a name; empty if there is none at the address.
func (im *image) text(addr uint64) string {
	const longest = 512 // bytes of a constructor's full name, a module's or a package's
	for i, c := range im.ReadAddr(addr, longest) {
		switch {
		case c == 0:
			return string(im.ReadAddr(addr, uint64(i)))
		case c <= ' ':
			return ""
		}
	}
	return ""
}
