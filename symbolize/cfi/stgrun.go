package cfi

import "debug/elf"

// stgRunArea is how much of the C stack StgRun leaves for Haskell code's spills.
const stgRunArea = 16 << 10

// x86Rsp is rsp, as instructions number it.
const x86Rsp = 4

// repairStgRun gives StgRun, through which C enters Haskell code and is returned to, a row
// wherever rsp moves: it is written in assembly with two, and the first stays until
// all is saved and the second until the end (rts/StgCRun.c).
func (c *compiler) repairStgRun() {
	if c.f.Machine != elf.EM_X86_64 {
		return
	}
	for i := range c.spans {
		s := &c.spans[i]
		const longest = 256
		if s.haskell || s.end-s.first != 2 || s.hi-s.lo > longest {
			continue
		}
		entry, body := c.rules[c.rows[s.first].rule], c.rules[c.rows[s.first+1].rule]
		if entry.Kind != KindFrame || entry.Offset != 8 || body.Kind != KindFrame || body.Reg != entry.Reg || body.Offset <= stgRunArea {
			continue
		}
		if rows := c.stgRunRows(s, entry, body); rows != nil {
			s.first = len(c.rows)
			c.rows = append(c.rows, rows...)
			s.end = len(c.rows)
			c.stats.Repaired++
		}
	}
}

// stgRunRows follows rsp through the code; nil if that is not as expected.
func (c *compiler) stgRunRows(s *span, entry, body Rule) (rows []absRow) {
	code := c.f.ReadAddr(s.lo, s.hi-s.lo)
	saved := c.rows[s.first+1].addr
	rule := entry
	for at := 0; at < len(code); {
		addr := s.lo + uint64(at)
		if addr >= saved && saved != 0 {
			if rule.Offset != body.Offset {
				return nil
			}
			rule, saved = body, 0
		}
		rows = add(rows, absRow{addr, c.intern(rule)})
		in, ok := decode(code[at:])
		if !ok || in.vector || in.opmap != mapOne {
			return nil
		}
		at += in.len
		toRsp := in.modrm && in.mod == 3 && in.rm == x86Rsp
		switch {
		case (in.op == 0x83 || in.op == 0x81) && toRsp && in.reg&7 == 0: // add
			rule.Offset -= int32(in.imm)
		case (in.op == 0x83 || in.op == 0x81) && toRsp && in.reg&7 == 5: // sub
			rule.Offset += int32(in.imm)
		case in.op >= 0x50 && in.op < 0x60, in.op == 0xe8, in.writes(x86Rsp): // push, pop, call
			return nil
		}
		if rule.Offset < entry.Offset {
			return nil
		}
		if rule.Offset == entry.Offset {
			rule = entry // all that was saved has been restored
		}
	}
	return rows
}
