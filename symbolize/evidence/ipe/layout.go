package ipe

import (
	"encoding/binary"
	"fmt"
	"strconv"

	"ccagent/internal/ghc"
	"ccagent/symbolize/sources"
)

// layout reads one buffer into r.out; it says why it cannot.
type layout func(r *reader, addr uint64) (problem string)

func layoutOf(version string) (layout, error) {
	switch ghc.ProvenanceOf(version) {
	case ghc.ProvenanceList:
		return (*reader).entry92, nil
	case ghc.ProvenanceInline6:
		return func(r *reader, addr uint64) string { return r.inline(addr, 6) }, nil
	case ghc.ProvenanceInline8:
		return func(r *reader, addr uint64) string { return r.inline(addr, 8) }, nil
	case ghc.ProvenanceApart8:
		return func(r *reader, addr uint64) string { return r.apart(addr, 8, true) }, nil
	case ghc.ProvenanceApart6Text:
		return func(r *reader, addr uint64) string { return r.apart(addr, 6, true) }, nil
	case ghc.ProvenanceApart6:
		return func(r *reader, addr uint64) string { return r.apart(addr, 6, false) }, nil
	case ghc.ProvenanceMarked6:
		return (*reader).marked, nil
	}
	return nil, fmt.Errorf("%w: version %q", ErrVersion, version)
}

const word = 8

func (r *reader) words(addr uint64, n int) ([]uint64, bool) {
	out := make([]uint64, n)
	for i := range out {
		v, ok := r.mem.Pointer(addr + uint64(i)*word)
		if !ok {
			return nil, false
		}
		out[i] = v
	}
	return out, true
}

// entry92 reads a symbol's single entry.
func (r *reader) entry92(addr uint64) string {
	info, ok := r.mem.Pointer(addr)
	if !ok || info == 0 {
		return "no info table"
	}
	field := func(i int) string { return r.pointee(addr + uint64(i)*word) }
	e := Entry{Info: info, Table: field(1), Closure: decimal(field(2)), Type: field(3), Label: field(4), Module: field(5)}
	e.File, e.Span = sources.ParseLocation(field(6))
	return r.add(e)
}

func (r *reader) add(e Entry) string {
	if len(r.out) >= maxEntries || !r.take(160) {
		return "over the memory budget"
	}
	r.out = append(r.out, e)
	return ""
}

// inline reads entries that follow their head and begin with the info pointer
// (9.4, 9.6).
func (r *reader) inline(addr uint64, fields int) string {
	head, ok := r.words(addr, 3)
	if !ok {
		return "head is cut off"
	}
	size := uint64(word + 4*fields)
	count := head[2]
	if count > maxEntries {
		return fmt.Sprintf("%d entries", count)
	}
	raw, problem := r.block(addr+3*word, count*size, false)
	if problem != "" {
		return problem
	}
	for i := uint64(0); i < count; i++ {
		info, ok := r.mem.Pointer(addr + 3*word + i*size)
		if !ok {
			return "entry is cut off"
		}
		f := func(k int) string {
			return r.cstring(head[1] + uint64(binary.LittleEndian.Uint32(raw[i*size+word+uint64(4*k):])))
		}
		e := Entry{Info: info, Table: f(0), Closure: decimal(f(1)), Type: f(2), Label: f(3), Module: f(4)}
		if fields == 6 {
			e.File, e.Span = sources.ParseLocation(f(5))
		} else {
			e.File, e.Span = f(5), sources.ParseExtent(f(6))
		}
		if problem := r.add(e); problem != "" {
			return problem
		}
	}
	return ""
}

// apart reads info pointers, entries and strings that lie apart (9.8 to 9.14). text says that an entry's closure type is a decimal
// number among the strings (before 9.10.2).
func (r *reader) apart(addr uint64, fields int, text bool) string {
	head, ok := r.words(addr, 9)
	if !ok {
		if head, ok = r.words(addr, 8); !ok {
			return "head is cut off"
		}
	}
	return r.body(head, fields, text)
}

// magic stands before entries and before strings, both in the section .ipe, from 9.15 on: "IPE\0IPE\0"
// read as a number from its end. It is missing where objcopy has removed the section.
const magic = 0x4950450049504500

// marked reads the same as apart, with the number that the run-time system gives the node behind its
// link, and with entries and strings behind the magic word (from 9.15 on).
func (r *reader) marked(addr uint64) string {
	head, ok := r.words(addr+word, 9) // without the link; the number is in its place
	if !ok {
		return "head is cut off"
	}
	for _, block := range []*uint64{&head[4], &head[6]} {
		if m, ok := r.words(*block, 1); !ok || m[0] != magic {
			return "no magic word at the start of its entries or strings: the section .ipe was removed"
		}
		*block += word
	}
	return r.body(head, 6, false)
}

// body reads what a head refers to: its link or number, whether that is compressed, count, info
// pointers, entries and their size, strings and their size, and from 9.10 on the unit and module.
func (r *reader) body(head []uint64, fields int, text bool) string {
	compressed, count, tables := head[1] != 0, head[2], head[3]
	size := uint64(4 * fields)
	if count > maxEntries || head[5] < count*size {
		return fmt.Sprintf("%d entries in %d bytes", count, head[5])
	}
	raw, problem := r.block(head[4], head[5], compressed)
	if problem != "" {
		return problem
	}
	table, problem := r.block(head[6], head[7], compressed)
	if problem != "" {
		return problem
	}
	var unit, module string
	if fields == 6 {
		if len(head) < 9 {
			return "head is cut off"
		}
		unit, module = r.text(table, uint32(head[8])), r.text(table, uint32(head[8]>>32))
	}
	for i := uint64(0); i < count; i++ {
		info, ok := r.mem.Pointer(tables + i*word)
		if !ok {
			return fmt.Sprintf("info pointers at %#x are cut off", tables)
		}
		f := func(k int) uint32 { return binary.LittleEndian.Uint32(raw[i*size+uint64(4*k):]) }
		e := Entry{Info: info, Table: r.text(table, f(0)), Type: r.text(table, f(2)), Label: r.text(table, f(3)), Unit: unit, Module: module}
		if e.Closure = f(1); text {
			e.Closure = decimal(r.text(table, f(1)))
		}
		if fields == 6 {
			e.File, e.Span = r.text(table, f(4)), sources.ParseExtent(r.text(table, f(5)))
		} else {
			e.Module = r.text(table, f(4))
			e.File, e.Span = r.text(table, f(5)), sources.ParseExtent(r.text(table, f(6)))
		}
		if problem := r.add(e); problem != "" {
			return problem
		}
	}
	return ""
}

func decimal(s string) uint32 {
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}
