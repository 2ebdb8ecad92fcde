package dwarfindex

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// An encoded index is a magic number, the counts of what follows, and the
// arrays, all little-endian and of fixed size: it is for this machine's cache,
// and of no other version of this package.

// Format begins an encoded index, and changes with what Build or Encode makes.
const Format = "ccagent index 3\n"

// ErrEncoding is wrapped by Decode's errors.
var ErrEncoding = errors.New("malformed index")

// Encode appends the index to b. It must not have been given adopted tick
// parents.
func (x *Index) Encode(b []byte) []byte {
	le := binary.LittleEndian
	u32 := func(vs ...uint32) {
		for _, v := range vs {
			b = le.AppendUint32(b, v)
		}
	}
	str := func(s string) {
		u32(uint32(len(s)))
		b = append(b, s...)
	}
	flag := func(v bool) uint32 {
		if v {
			return 1
		}
		return 0
	}
	b = append(b, Format...)
	u32(uint32(len(x.units)), uint32(len(x.procs)), uint32(len(x.blocks)), uint32(len(x.notes)), uint32(len(x.spans)),
		uint32(len(x.files)), uint32(len(x.arena)), uint32(len(x.segs.starts)), flag(x.notated), uint32(x.Entries))
	for i := range x.units {
		u := &x.units[i]
		str(u.Name)
		str(u.CompDir)
		str(u.Producer)
		u32(flag(u.Haskell), flag(u.HasLines))
		for _, v := range []uint64{u.Offset, u.Lo, u.Hi, u.StmtList} {
			b = le.AppendUint64(b, v)
		}
	}
	for _, f := range x.files {
		str(f)
	}
	for i := range x.procs {
		p := &x.procs[i]
		u32(p.unit, uint32(p.root), uint32(p.tickParent), p.name.off, p.name.len, p.linkage.off, p.linkage.len, p.pos.File, p.pos.Line, p.pos.Col)
	}
	for i := range x.blocks {
		k := &x.blocks[i]
		b = le.AppendUint64(le.AppendUint64(b, k.lo), k.hi)
		u32(uint32(k.parent), uint32(k.proc), k.note, uint32(k.depth)|uint32(k.flags)<<16)
	}
	for _, n := range x.notes {
		u32(n.span, n.next)
	}
	for _, s := range x.spans {
		u32(s.File, s.Line, s.Col, s.EndLine, s.EndCol)
	}
	b = append(b, x.arena...)
	for _, s := range x.segs.starts {
		b = le.AppendUint64(b, s)
	}
	for _, id := range x.segs.blocks {
		u32(uint32(id))
	}
	return b
}

// Decode reads an encoded index and checks every reference in it: what it
// returns is as safe to use as what Build does, whoever wrote it.
func Decode(b []byte) (*Index, error) {
	bad := func(what string) (*Index, error) { return nil, fmt.Errorf("%w: %s", ErrEncoding, what) }
	if len(b) < len(Format) || string(b[:len(Format)]) != Format {
		return bad("not one of this version")
	}
	c := cursor{b: b, off: len(Format)}
	units, procs, blocks, notes, spans := c.u32(), c.u32(), c.u32(), c.u32(), c.u32()
	files, arena, segs, notated, entries := c.u32(), c.u32(), c.u32(), c.u32(), c.u32()
	// Fixed sizes, strings as their lengths: nothing is allocated beyond what is there.
	need := 13*4*uint64(units) + 40*uint64(procs) + 32*uint64(blocks) + 8*uint64(notes) + 20*uint64(spans) + 4*uint64(files) + uint64(arena) + 12*uint64(segs)
	if c.bad || need > uint64(len(b)-c.off) || procs == 0 || blocks == 0 || notes == 0 || spans == 0 || files == 0 {
		return bad("counts do not fit")
	}
	x := &Index{
		units: make([]Unit, units), procs: make([]proc, procs), blocks: make([]block, blocks), notes: make([]note, notes),
		spans: make([]Span, spans), files: make([]string, files), notated: notated != 0, Entries: int(entries),
		segs: segments{starts: make([]uint64, segs), blocks: make([]BlockID, segs)},
	}
	str := func() string { return string(c.bytes(uint64(c.u32()))) }
	for i := range x.units {
		x.units[i] = Unit{Name: str(), CompDir: str(), Producer: str(), Haskell: c.u32() != 0, HasLines: c.u32() != 0, Offset: c.u64(), Lo: c.u64(), Hi: c.u64(), StmtList: c.u64()}
	}
	for i := range x.files {
		x.files[i] = str()
	}
	if c.bad {
		return bad("strings are cut off")
	}
	inArena := func(t text) bool { return uint64(t.off)+uint64(t.len) <= uint64(arena) }
	for i := range x.procs {
		p := &x.procs[i]
		p.unit, p.root, p.tickParent = c.u32(), BlockID(c.u32()), BlockID(c.u32())
		p.name, p.linkage = text{c.u32(), c.u32()}, text{c.u32(), c.u32()}
		p.pos = Position{c.u32(), c.u32(), c.u32()}
		if i > 0 && p.unit >= units || uint32(p.root) >= blocks || uint32(p.tickParent) >= blocks || !inArena(p.name) || !inArena(p.linkage) || p.pos.File >= files {
			return bad("procedure")
		}
	}
	for i := range x.blocks {
		k := &x.blocks[i]
		k.lo, k.hi = c.u64(), c.u64()
		k.parent, k.proc, k.note = BlockID(c.u32()), ProcID(c.u32()), c.u32()
		v := c.u32()
		k.depth, k.flags = uint16(v), uint16(v>>16)
		// A parent comes first, so that the way out ends.
		if i > 0 && (int(k.parent) >= i || uint32(k.proc) >= procs || k.proc == NoProc || k.note >= notes) {
			return bad("block")
		}
	}
	for i := range x.notes {
		n := &x.notes[i]
		n.span, n.next = c.u32(), c.u32()
		if n.span >= spans || n.next >= notes || n.next != 0 && int(n.next) <= i {
			return bad("note")
		}
	}
	for i := range x.spans {
		x.spans[i] = Span{c.u32(), c.u32(), c.u32(), c.u32(), c.u32()}
		if x.spans[i].File >= files {
			return bad("span")
		}
	}
	x.arena = append([]byte(nil), c.bytes(uint64(arena))...)
	for i := range x.segs.starts {
		x.segs.starts[i] = c.u64()
		if i > 0 && x.segs.starts[i] <= x.segs.starts[i-1] {
			return bad("addresses are not in order")
		}
	}
	for i := range x.segs.blocks {
		x.segs.blocks[i] = BlockID(c.u32())
		if uint32(x.segs.blocks[i]) >= blocks {
			return bad("address of no block")
		}
	}
	if c.bad || c.off != len(b) {
		return bad("length")
	}
	return x, nil
}
