package oracle

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"ccagent/bpf/replay/snapshot"
)

// noCFA means that the CFA is an expression.
const noCFA = 0xff

// frameSection interprets a frame section by DWARF 3, section 6.4, with the differences of
// .eh_frame (LSB Core, 10.6).
type frameSection struct {
	data    []byte
	address uint64
	eh      bool
}

type cie struct {
	codeAlign    uint64
	dataAlign    int64
	returnReg    uint64
	encoding     byte // of pointers in FDEs
	augmented    bool
	signal       bool // describes signal trampolines
	instructions []byte
}

// state is the row under construction.
type state struct {
	cfaReg uint64
	cfaOff int64
	deref  bool // the CFA is the word at register + offset, not the sum itself
	rules  map[uint64]snapshot.Rule
}

func (s state) clone() state {
	s.rules = maps.Clone(s.rules)
	return s
}

// cursor reads the section; it keeps the first error.
type cursor struct {
	data []byte
	at   int
	err  error
}

func (c *cursor) fixed(n int) uint64 {
	if c.err != nil || len(c.data)-c.at < n {
		c.err = errors.Join(c.err, errTruncated)
		return 0
	}
	var b [8]byte
	copy(b[:], c.data[c.at:c.at+n])
	c.at += n
	return binary.LittleEndian.Uint64(b[:])
}

var errTruncated = errors.New("truncated")

func (c *cursor) u() uint64 {
	if c.err != nil {
		return 0
	}
	v, n := binary.Uvarint(c.data[c.at:])
	if n <= 0 {
		c.err = errTruncated
		return 0
	}
	c.at += n
	return v
}

func (c *cursor) s() int64 {
	var v int64
	for shift := uint(0); ; shift += 7 {
		b := c.fixed(1)
		if c.err != nil || shift > 63 {
			return 0
		}
		v |= int64(b&0x7f) << shift
		if b&0x80 == 0 {
			if shift+7 < 64 && b&0x40 != 0 {
				v |= -1 << (shift + 7)
			}
			return v
		}
	}
}

func (c *cursor) skip(n uint64) {
	if c.err == nil && n > uint64(len(c.data)-c.at) {
		c.err = errTruncated
		return
	}
	c.at += int(n)
}

func (c *cursor) cstring() string {
	start := c.at
	for c.fixed(1) != 0 && c.err == nil {
	}
	if c.err != nil {
		return ""
	}
	return string(c.data[start : c.at-1])
}

// pointer reads an encoded pointer (DW_EH_PE_*).
func (c *cursor) pointer(encoding byte, section uint64) uint64 {
	at := section + uint64(c.at)
	var v uint64
	switch encoding & 0xf {
	case 0x0, 0x4:
		v = c.fixed(8)
	case 0x3:
		v = c.fixed(4)
	case 0xb:
		v = uint64(int64(int32(c.fixed(4))))
	case 0xc:
		v = c.fixed(8)
	default:
		c.err = fmt.Errorf("pointer encoding %#x", encoding)
	}
	if encoding&0x70 == 0x10 {
		v += at
	}
	return v
}

// expression reads a DWARF expression, if it is a register plus an offset, optionally
// dereferenced.
func (c *cursor) expression() (reg uint64, offset int64, deref, ok bool) {
	n := c.u()
	body := c.at
	c.skip(n)
	if c.err != nil {
		return 0, 0, false, false
	}
	const breg0, derefOp, plusUconst = 0x70, 0x06, 0x23
	e := cursor{data: c.data[:c.at], at: body}
	op := e.fixed(1)
	if e.err != nil || op < breg0 || op > breg0+31 {
		return 0, 0, false, false
	}
	reg, offset = op-breg0, e.s()
	for e.err == nil && e.at < len(e.data) {
		switch op := e.fixed(1); {
		case op == derefOp && !deref:
			deref = true
		case op == plusUconst && !deref:
			offset += int64(e.u())
		default:
			return 0, 0, false, false
		}
	}
	return reg, offset, deref, e.err == nil
}

// table returns a section's rows, sorted. limits bounds the last row of GHC's procedures,
// because the ranges of their FDEs up to 9.0 cover only their first block.
func (f *frameSection) table(limits []snapshot.Range) ([]snapshot.Row, error) {
	cies := map[int]*cie{}
	var rows []snapshot.Row
	for at := 0; at+4 <= len(f.data); {
		start := at
		length := uint64(binary.LittleEndian.Uint32(f.data[at:]))
		at += 4
		if length == 0 {
			continue
		}
		if length >= 0xfffffff0 || length > uint64(len(f.data)-at) {
			return nil, fmt.Errorf("entry of %d bytes at offset %#x", length, start)
		}
		body := cursor{data: f.data[:at+int(length)], at: at}
		id := body.fixed(4)
		isCIE := id == 0xffffffff
		parent := int(id)
		if f.eh {
			isCIE = id == 0
			parent = at - int(id)
		}
		var err error
		if isCIE {
			cies[start], err = f.cie(&body)
		} else if c := cies[parent]; c == nil {
			err = fmt.Errorf("no CIE at %#x", parent)
		} else {
			var more []snapshot.Row
			more, err = f.fde(&body, c)
			rows = append(rows, more...)
		}
		if err != nil {
			return nil, fmt.Errorf("entry at offset %#x: %w", start, err)
		}
		at += int(length)
	}
	slices.SortStableFunc(rows, func(a, b snapshot.Row) int { return cmp.Compare(a.Lo, b.Lo) })
	if !f.eh {
		closeRows(rows, limits)
	}
	return rows, nil
}

// closeRows ends each row where the next row begins, or where its compilation unit ends.
// Rows outside of all units are empty.
func closeRows(rows []snapshot.Row, limits []snapshot.Range) {
	for i := range rows {
		hi := rows[i].Lo
		for _, l := range limits {
			// A procedure's range begins one byte before its info pointer.
			if rows[i].Lo+1 >= l.Lo && rows[i].Lo < l.Hi {
				hi = max(hi, l.Hi)
			}
		}
		if i+1 < len(rows) {
			hi = min(hi, rows[i+1].Lo)
		}
		rows[i].Hi = hi
	}
}

func (f *frameSection) cie(c *cursor) (*cie, error) {
	version := c.fixed(1)
	augmentation := c.cstring()
	out := &cie{codeAlign: c.u(), dataAlign: c.s()}
	if version == 1 {
		out.returnReg = c.fixed(1)
	} else {
		out.returnReg = c.u()
	}
	if len(augmentation) > 0 && augmentation[0] == 'z' {
		out.augmented = true
		length := c.u()
		end := uint64(c.at) + length
		for _, a := range augmentation[1:] {
			switch a {
			case 'R':
				out.encoding = byte(c.fixed(1))
			case 'P':
				c.pointer(byte(c.fixed(1)), 0)
			case 'L':
				c.fixed(1)
			case 'S':
				out.signal = true
			}
		}
		if c.err == nil && end >= uint64(c.at) {
			c.skip(end - uint64(c.at))
		}
	} else if augmentation != "" {
		return nil, fmt.Errorf("augmentation %q", augmentation)
	}
	if c.err == nil {
		out.instructions = c.data[c.at:]
	}
	return out, c.err
}

func (f *frameSection) fde(c *cursor, parent *cie) ([]snapshot.Row, error) {
	lo := c.pointer(parent.encoding, f.address)
	size := c.pointer(parent.encoding&0xf, f.address)
	if parent.augmented {
		c.skip(c.u())
	}
	if c.err != nil {
		return nil, c.err
	}
	s := state{rules: map[uint64]snapshot.Rule{}}
	head := &cursor{data: parent.instructions}
	if _, err := f.run(head, parent, &s, s, 0); err != nil {
		return nil, fmt.Errorf("run the CIE's instructions: %w", err)
	}
	first := s.clone()
	starts, err := f.run(c, parent, &s, first, lo)
	if err != nil {
		return nil, fmt.Errorf("run instructions of FDE %#x: %w", lo, err)
	}
	var rows []snapshot.Row
	for i, st := range starts {
		hi := lo + size
		if i+1 < len(starts) {
			hi = starts[i+1].at
		}
		if st.at == hi && f.eh {
			continue
		}
		r := row(st.at, hi, &st.state, parent.returnReg)
		r.Haskell, r.Signal = !f.eh, parent.signal
		rows = append(rows, r)
	}
	return rows, nil
}

func row(lo, hi uint64, s *state, returnReg uint64) snapshot.Row {
	r := snapshot.Row{Lo: lo, Hi: hi, Deref: s.deref, CFARegister: uint8(s.cfaReg), CFAOffset: s.cfaOff}
	for _, reg := range slices.Sorted(maps.Keys(s.rules)) {
		rule := s.rules[reg]
		switch {
		case reg == returnReg:
			r.Return = rule
		case reg < 16 && rule.Kind != snapshot.RuleSame:
			r.Saved = append(r.Saved, snapshot.SavedRegister{Register: uint8(reg), Rule: rule})
		}
	}
	return r
}

type rowStart struct {
	at uint64
	state
}

// run interprets instructions and returns the starts of rows, from lo on.
func (f *frameSection) run(c *cursor, parent *cie, s *state, initial state, lo uint64) ([]rowStart, error) {
	at := lo
	var done []rowStart
	var stack []state
	advance := func(to uint64) {
		done = append(done, rowStart{at, s.clone()})
		at = to
	}
	rule := func(reg uint64, kind snapshot.RuleKind, offset int64) {
		s.rules[reg] = snapshot.Rule{Kind: kind, Offset: offset}
	}
	restore := func(reg uint64) {
		if r, ok := initial.rules[reg]; ok {
			s.rules[reg] = r
		} else {
			delete(s.rules, reg)
		}
	}
	for c.err == nil && c.at < len(c.data) {
		op := c.fixed(1)
		low := op & 0x3f
		switch op >> 6 {
		case 1: // advance_loc
			advance(at + low*parent.codeAlign)
			continue
		case 2: // offset
			rule(low, snapshot.RuleAt, int64(c.u())*parent.dataAlign)
			continue
		case 3: // restore
			restore(low)
			continue
		}
		switch op {
		case 0x00: // nop
		case 0x01: // set_loc
			advance(c.pointer(parent.encoding, f.address))
		case 0x02, 0x03, 0x04: // advance_loc1, 2, 4
			advance(at + c.fixed(1<<(op-2))*parent.codeAlign)
		case 0x05: // offset_extended
			reg := c.u()
			rule(reg, snapshot.RuleAt, int64(c.u())*parent.dataAlign)
		case 0x06: // restore_extended
			restore(c.u())
		case 0x07: // undefined
			rule(c.u(), snapshot.RuleUnknown, 0)
		case 0x08: // same_value
			rule(c.u(), snapshot.RuleSame, 0)
		case 0x09: // register
			reg := c.u()
			c.u()
			rule(reg, snapshot.RuleOther, 0)
		case 0x0a: // remember_state
			stack = append(stack, s.clone())
		case 0x0b: // restore_state
			if len(stack) == 0 {
				return nil, errors.New("restore_state without remember_state")
			}
			*s = stack[len(stack)-1]
			stack = stack[:len(stack)-1]
		case 0x0c: // def_cfa
			s.cfaReg, s.cfaOff, s.deref = c.u(), int64(c.u()), false
		case 0x0d: // def_cfa_register
			s.cfaReg = c.u()
		case 0x0e: // def_cfa_offset
			s.cfaOff = int64(c.u())
		case 0x0f: // def_cfa_expression
			reg, off, deref, ok := c.expression()
			s.cfaReg, s.cfaOff, s.deref = reg, off, deref
			if !ok {
				s.cfaReg = noCFA
			}
		case 0x10, 0x16: // expression, val_expression
			reg := c.u()
			base, off, deref, ok := c.expression()
			r := snapshot.Rule{Kind: snapshot.RuleOther}
			switch {
			case !ok || deref || base != s.cfaReg:
			case op == 0x10:
				r = snapshot.Rule{Kind: snapshot.RuleFromCFARegister, Offset: off}
			case !s.deref: // StgRun's rsp
				r = snapshot.Rule{Kind: snapshot.RuleValue, Offset: off - s.cfaOff}
			}
			s.rules[reg] = r
		case 0x11: // offset_extended_sf
			reg := c.u()
			rule(reg, snapshot.RuleAt, c.s()*parent.dataAlign)
		case 0x12: // def_cfa_sf
			s.cfaReg, s.cfaOff, s.deref = c.u(), c.s()*parent.dataAlign, false
		case 0x13: // def_cfa_offset_sf
			s.cfaOff = c.s() * parent.dataAlign
		case 0x14: // val_offset
			reg := c.u()
			rule(reg, snapshot.RuleValue, int64(c.u())*parent.dataAlign)
		case 0x15: // val_offset_sf
			reg := c.u()
			rule(reg, snapshot.RuleValue, c.s()*parent.dataAlign)
		case 0x2e: // GNU_args_size
			c.u()
		default:
			return nil, fmt.Errorf("call-frame instruction %#x", op)
		}
	}
	return append(done, rowStart{at, s.clone()}), c.err
}
