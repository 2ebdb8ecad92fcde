package coderefs

import (
	"context"
	"debug/elf"
	"encoding/binary"

	"ccagent/symbolize/elffile"
)

// Ref is one reference.
type Ref struct {
	From   uint64 // address of the operand
	Target int    // index in the targets that were asked for
}

// Refs are what refers to the targets.
type Refs struct {
	Code []Ref // by address, within each segment
	// Escapes is set for each target whose closure is referred to by data, as a
	// function's is: its callers are then unknown.
	Escapes []bool
}

// MaxRefs bounds the references that are found: where there are as many, the others are not known.
const MaxRefs = 1 << 20

// Limits of what is read.
const (
	maxScan    = 1 << 30
	maxRelocs  = 256 << 20
	tagMask    = 7 // GHC marks pointers in their low bits
	relative64 = uint32(elf.R_X86_64_RELATIVE)
)

// Find reads the code and data of an x86-64 file for references to procedures,
// given by their entry: where their info table ends and their code begins. Of
// other machines' files nothing is found.
func Find(ctx context.Context, f *elffile.File, entries []uint64) (Refs, error) {
	r := Refs{Escapes: make([]bool, len(entries))}
	if f.Machine != elf.EM_X86_64 || len(entries) == 0 {
		return r, nil
	}
	var direct, closures lookup
	for i, e := range entries {
		direct.add(e, i)
	}
	words, err := dataWords(ctx, f)
	if err != nil {
		return r, err
	}
	for _, w := range words.of(&direct) {
		closures.add(w.at, w.target)
	}
	for _, w := range words.tagged(&closures) {
		r.Escapes[w.target] = true
	}
	return r, r.scan(ctx, f, code(f), search{&direct, &closures, true})
}

// Within reads code of an x86-64 file, from lo up to hi, for references to addresses, of
// functions or of data. Of other machines' files nothing is found.
func Within(ctx context.Context, f *elffile.File, lo, hi uint64, addrs []uint64) ([]Ref, error) {
	if f.Machine != elf.EM_X86_64 || len(addrs) == 0 {
		return nil, nil
	}
	var direct, closures lookup
	for i, a := range addrs {
		direct.add(a, i)
	}
	var part []extent
	for _, c := range code(f) {
		if from, to := max(lo, c.addr), min(hi, c.addr+c.size); from < to {
			part = append(part, extent{from, c.offset + from - c.addr, to - from})
		}
	}
	var r Refs
	err := r.scan(ctx, f, part, search{&direct, &closures, false})
	return r.Code, err
}

type extent struct{ addr, offset, size uint64 }

func (r *Refs) scan(ctx context.Context, f *elffile.File, code []extent, what search) error {
	for _, c := range code {
		at, first := c.addr, 0
		err := f.Scan(c.offset, c.size, maxScan, opcode+operand-1, func(chunk []byte) bool {
			scan(chunk, at, first, what, r)
			first = opcode // what is before it was the end of this chunk
			at += uint64(max(0, len(chunk)-(opcode+operand-1)))
			return ctx.Err() == nil && len(r.Code) < MaxRefs
		})
		if err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// code lists where instructions lie: the executable sections, or segments
// where there are none. Linkers may put constants into the same segment.
func code(f *elffile.File) []extent {
	var out []extent
	for _, s := range f.Sections {
		if s.Flags&elf.SHF_EXECINSTR != 0 && s.Type == elf.SHT_PROGBITS {
			out = append(out, extent{s.Addr, s.Offset, s.Size})
		}
	}
	if out != nil {
		return out
	}
	for _, p := range f.Segments {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 {
			out = append(out, extent{p.Addr, p.Offset, p.Filesz})
		}
	}
	return out
}

const (
	operand = 4
	opcode  = 8 // bytes before an operand that identify it
)

// search is what to look for.
type search struct {
	direct, closures *lookup
	tables           bool // in static reference tables too
}

func scan(code []byte, at uint64, first int, what search, r *Refs) {
	for i := first; i+operand <= len(code); i++ {
		v := binary.LittleEndian.Uint32(code[i:])
		if v == 0 { // padding, or an empty field before the label itself
			continue
		}
		here := at + uint64(i)
		rel := here + operand + uint64(int64(int32(v)))
		if relative(code[:i]) || what.tables && (here+operand)%8 == 0 {
			if t, ok := what.match(rel); ok {
				r.Code = append(r.Code, Ref{here, t})
			}
		}
		if t, ok := what.match(uint64(v)); ok && absolute(code[:i]) {
			r.Code = append(r.Code, Ref{here, t})
		}
	}
}

func (s *search) match(a uint64) (int, bool) {
	if t, ok := s.direct.find(a); ok {
		return t, ok
	}
	if s.closures.ids == nil {
		return 0, false
	}
	return s.closures.find(a &^ tagMask)
}

// relative reports whether an instruction may end before b's end that takes an
// offset from its own end: call, jmp, jcc, or any with a memory operand
// relative to the instruction pointer. (Offsets in info tables are recognised by
// their place: before an aligned label.)
func relative(b []byte) bool {
	n := len(b)
	return n > 0 && (b[n-1]&0xfe == 0xe8 || n > 1 && (b[n-2] == 0x0f && b[n-1]&0xf0 == 0x80 || b[n-1]&0xc7 == 0x05))
}

// absolute reports whether an instruction may end before b's end that takes 32
// bits as they are: mov to a register or to memory, push, or a memory operand
// without a base.
func absolute(b []byte) bool {
	n := len(b)
	if n > 0 && (b[n-1]&0xf8 == 0xb8 || b[n-1] == 0x68 || n > 1 && b[n-1] == 0x25 && b[n-2]&0xc7 == 0x04) {
		return true
	}
	for _, back := range [...]int{2, 3, 4, 6, 7} { // mod-r/m byte, SIB, displacement
		if n >= back && b[n-back] == 0xc7 {
			return true
		}
	}
	return false
}

// lookup is a map behind a filter: nearly every question's answer is no.
type lookup struct {
	bits [1 << 14]uint64
	ids  map[uint64]int
}

func hash(a uint64) uint64 { return (a >> 3) * 0x9e3779b97f4a7c15 >> 44 }

func (l *lookup) add(a uint64, id int) {
	if l.ids == nil {
		l.ids = map[uint64]int{}
	}
	if _, ok := l.ids[a]; !ok {
		l.ids[a] = id
		h := hash(a)
		l.bits[h>>6] |= 1 << (h & 63)
	}
}

func (l *lookup) find(a uint64) (int, bool) {
	h := hash(a)
	if l.bits[h>>6]>>(h&63)&1 == 0 {
		return 0, false
	}
	id, ok := l.ids[a]
	return id, ok
}

// data are the writable segments' words, where static closures lie.
type data struct {
	parts  []part
	relocs []elffile.Relocation
}

type part struct {
	addr  uint64
	bytes []byte
}

type word struct {
	at     uint64
	target int
}

func dataWords(ctx context.Context, f *elffile.File) (*data, error) {
	var d data
	room := uint64(maxScan)
	for _, p := range f.Segments {
		if p.Type != elf.PT_LOAD || p.Flags&elf.PF_W == 0 || ctx.Err() != nil {
			continue
		}
		b := f.ReadAddr(p.Addr, min(p.Filesz, room))
		room -= uint64(len(b))
		d.parts = append(d.parts, part{p.Addr, b})
	}
	var err error
	d.relocs, err = f.Relocations(relative64, maxRelocs)
	return &d, err
}

// of lists the words that are one of the addresses.
func (d *data) of(l *lookup) []word {
	return d.each(func(v uint64) (int, bool) { return l.find(v) })
}

// tagged lists the words that point to one of the addresses as to a function.
func (d *data) tagged(l *lookup) []word {
	return d.each(func(v uint64) (int, bool) {
		if v&tagMask == 0 {
			return 0, false
		}
		return l.find(v &^ tagMask)
	})
}

func (d *data) each(match func(uint64) (int, bool)) []word {
	var out []word
	for _, p := range d.parts {
		for off := (8 - p.addr%8) % 8; off+8 <= uint64(len(p.bytes)) && len(out) < MaxRefs; off += 8 {
			if t, ok := match(binary.LittleEndian.Uint64(p.bytes[off:])); ok {
				out = append(out, word{p.addr + off, t})
			}
		}
	}
	for _, r := range d.relocs {
		if t, ok := match(uint64(r.Addend)); ok && len(out) < MaxRefs {
			out = append(out, word{r.Offset, t})
		}
	}
	return out
}
