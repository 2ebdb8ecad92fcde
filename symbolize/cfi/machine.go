package cfi

import (
	"errors"
	"fmt"

	"github.com/go-delve/delve/pkg/dwarf/frame"
)

// Call frame instructions that delve does not know: extensions of Arm's and GNU's.
const (
	opNegateRAState   = 0x2d // arm64; SPARC's window save elsewhere
	opGNUNegOffsetExt = 0x2f
)

type cfaKind uint8

const (
	cfaUndefined cfaKind = iota
	cfaRegister          // reg + n
	cfaValue             // what the expression computes
)

type cfaRule struct {
	kind cfaKind
	reg  uint64
	n    int64
	expr value
}

type ruleKind uint8

const (
	ruleSame ruleKind = iota
	ruleUndefined
	ruleOffset    // in memory, at CFA + n
	ruleValOffset // is CFA + n
	ruleRegister  // in another register
	ruleMemory    // in memory, where the expression says
	ruleValue     // is what the expression says
)

type registerRule struct {
	kind ruleKind
	n    int64
	expr value
}

// state is one row of the table that the instructions describe, as far as a
// walk needs it.
type state struct {
	cfa      cfaRule
	saved    [MaxSaved]registerRule // by arch.saved
	sp       registerRule           // the C stack pointer in the caller
	raSigned bool
}

const maxRemembered = 64

// machine runs call frame instructions. It is reused from entry to entry.
type machine struct {
	arch       *arch
	state      state
	location   uint64
	remembered []state
	// Since the last location, an instruction was about arch.sp.
	spChanged bool
	// row is called with each completed row, which holds from m.location on.
	row func(s *state, location uint64)
}

var errCutOff = errors.New("instructions are cut off")

// runCommon runs a CIE's instructions and keeps the state they lead to.
func (m *machine) runCommon(g *common, code *cursor) error {
	m.state, m.remembered = state{}, m.remembered[:0]
	if m.arch.linkRegister {
		m.state.saved[0].kind = ruleSame
	} else {
		m.state.saved[0].kind = ruleUndefined
	}
	m.location = 0
	row := m.row
	m.row = func(*state, uint64) {}
	err := m.run(g, code)
	m.row = row
	g.initial = m.state
	return err
}

// runDescription runs an FDE's instructions.
func (m *machine) runDescription(g *common, d *description) error {
	m.state, m.remembered = g.initial, m.remembered[:0]
	m.location, m.spChanged = d.lo, false
	code := d.code
	if err := m.run(g, &code); err != nil {
		return err
	}
	m.row(&m.state, m.location)
	return nil
}

func (m *machine) advance(g *common, n uint64) error { return m.moveTo(m.location + n*g.codeAlign) }

func (m *machine) moveTo(location uint64) error {
	if location < m.location {
		return fmt.Errorf("location %#x after %#x", location, m.location)
	}
	m.row(&m.state, m.location)
	m.location, m.spChanged = location, false
	return nil
}

func (m *machine) run(g *common, c *cursor) error {
	for c.left() > 0 {
		at := c.off
		op := c.u8()
		if err := m.step(g, c, op); err != nil {
			return err
		}
		if c.bad {
			return fmt.Errorf("instruction %#x at %#x: %w", op, at, errCutOff)
		}
	}
	return nil
}

func (m *machine) step(g *common, c *cursor, op uint8) error {
	s := &m.state
	low := uint64(op & 0x3f)
	switch op & 0xc0 {
	case frame.DW_CFA_advance_loc:
		return m.advance(g, low)
	case frame.DW_CFA_offset:
		m.set(low, registerRule{kind: ruleOffset, n: int64(c.uleb()) * g.dataAlign})
		return nil
	case frame.DW_CFA_restore:
		m.restore(g, low)
		return nil
	}
	// GHC writes the operand of the "_sf" instructions as bytes where DWARF
	// wants a multiple of the data alignment (pprSetUnwind in GHC's
	// CmmToAsm/Dwarf/Types.hs, 8.10 to 9.14).
	factorSF := g.dataAlign
	if g.haskell {
		factorSF = 1
	}
	switch op {
	case frame.DW_CFA_nop:
	case frame.DW_CFA_set_loc:
		to, ok := c.pointer(g.pointers, 0)
		if !ok {
			return fmt.Errorf("location in encoding %#x", g.pointers)
		}
		return m.moveTo(to)
	case frame.DW_CFA_advance_loc1:
		return m.advance(g, uint64(c.u8()))
	case frame.DW_CFA_advance_loc2:
		return m.advance(g, uint64(c.u16()))
	case frame.DW_CFA_advance_loc4:
		return m.advance(g, uint64(c.u32()))

	case frame.DW_CFA_def_cfa:
		s.cfa = cfaRule{kind: cfaRegister, reg: c.uleb(), n: int64(c.uleb())}
	case frame.DW_CFA_def_cfa_sf:
		s.cfa = cfaRule{kind: cfaRegister, reg: c.uleb(), n: c.sleb() * factorSF}
	case frame.DW_CFA_def_cfa_register:
		if s.cfa.kind != cfaRegister {
			return errors.New("CFA register without a CFA")
		}
		s.cfa.reg = c.uleb()
	case frame.DW_CFA_def_cfa_offset, frame.DW_CFA_def_cfa_offset_sf:
		if s.cfa.kind != cfaRegister {
			return errors.New("CFA offset without a CFA register")
		}
		if op == frame.DW_CFA_def_cfa_offset {
			s.cfa.n = int64(c.uleb())
		} else {
			s.cfa.n = c.sleb() * factorSF
		}
	case frame.DW_CFA_def_cfa_expression:
		s.cfa = cfaRule{kind: cfaValue, expr: evaluate(c.bytes(c.uleb()), value{})}

	case frame.DW_CFA_undefined:
		m.set(c.uleb(), registerRule{kind: ruleUndefined})
	case frame.DW_CFA_same_value:
		m.set(c.uleb(), registerRule{kind: ruleSame})
	case frame.DW_CFA_offset_extended:
		m.set(c.uleb(), registerRule{kind: ruleOffset, n: int64(c.uleb()) * g.dataAlign})
	case frame.DW_CFA_offset_extended_sf:
		m.set(c.uleb(), registerRule{kind: ruleOffset, n: c.sleb() * factorSF})
	case opGNUNegOffsetExt:
		m.set(c.uleb(), registerRule{kind: ruleOffset, n: -int64(c.uleb()) * g.dataAlign})
	case frame.DW_CFA_val_offset:
		m.set(c.uleb(), registerRule{kind: ruleValOffset, n: int64(c.uleb()) * g.dataAlign})
	case frame.DW_CFA_val_offset_sf:
		m.set(c.uleb(), registerRule{kind: ruleValOffset, n: c.sleb() * factorSF})
	case frame.DW_CFA_register:
		reg := c.uleb()
		m.set(reg, registerRule{kind: ruleRegister, n: int64(c.uleb())})
	case frame.DW_CFA_expression:
		reg := c.uleb()
		m.set(reg, registerRule{kind: ruleMemory, expr: evaluate(c.bytes(c.uleb()), value{kind: valueCFA})})
	case frame.DW_CFA_val_expression:
		reg := c.uleb()
		m.set(reg, registerRule{kind: ruleValue, expr: evaluate(c.bytes(c.uleb()), value{kind: valueCFA})})

	case frame.DW_CFA_restore_extended:
		m.restore(g, c.uleb())
	case frame.DW_CFA_remember_state:
		if len(m.remembered) == maxRemembered {
			return fmt.Errorf("more than %d states remembered", maxRemembered)
		}
		m.remembered = append(m.remembered, *s)
	case frame.DW_CFA_restore_state:
		n := len(m.remembered)
		if n == 0 {
			return errors.New("no state remembered to restore")
		}
		*s, m.remembered = m.remembered[n-1], m.remembered[:n-1]

	case opNegateRAState:
		if !m.arch.linkRegister {
			return fmt.Errorf("unknown instruction %#x", op)
		}
		s.raSigned = !s.raSigned
	case frame.DW_CFA_GNU_args_size:
		c.uleb()
	default:
		return fmt.Errorf("unknown instruction %#x", op)
	}
	return nil
}

// set returns a register's rule; those that no walk needs are let go.
func (m *machine) set(reg uint64, r registerRule) {
	if reg == uint64(m.arch.sp) {
		m.state.sp, m.spChanged = r, true
	} else if i := m.arch.slot(reg); i >= 0 {
		m.state.saved[i] = r
	}
}

func (m *machine) restore(g *common, reg uint64) {
	if reg == uint64(m.arch.sp) {
		m.state.sp = g.initial.sp
	} else if i := m.arch.slot(reg); i >= 0 {
		m.state.saved[i] = g.initial.saved[i]
	}
}
