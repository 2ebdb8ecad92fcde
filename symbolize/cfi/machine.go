package cfi

import (
	"errors"
	"fmt"
)

// Call frame instructions: DWARF 4, 6.4.2 and 7.23; GNU and Arm extensions.
const (
	opAdvance = 0x40 // with an operand in the low six bits, like the next two
	opOffset  = 0x80
	opRestore = 0xc0

	opNop              = 0x00
	opSetLoc           = 0x01
	opAdvance1         = 0x02
	opAdvance2         = 0x03
	opAdvance4         = 0x04
	opOffsetExtended   = 0x05
	opRestoreExtended  = 0x06
	opUndefined        = 0x07
	opSameValue        = 0x08
	opRegister         = 0x09
	opRememberState    = 0x0a
	opRestoreState     = 0x0b
	opDefCFA           = 0x0c
	opDefCFARegister   = 0x0d
	opDefCFAOffset     = 0x0e
	opDefCFAExpression = 0x0f
	opExpression       = 0x10
	opOffsetExtendedSF = 0x11
	opDefCFASF         = 0x12
	opDefCFAOffsetSF   = 0x13
	opValOffset        = 0x14
	opValOffsetSF      = 0x15
	opValExpression    = 0x16
	opNegateRAState    = 0x2d // arm64; SPARC's window save elsewhere
	opGNUArgsSize      = 0x2e
	opGNUNegOffsetExt  = 0x2f
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
	// row is told of each completed row: it holds from m.location on.
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
	case opAdvance:
		return m.advance(g, low)
	case opOffset:
		m.set(low, registerRule{kind: ruleOffset, n: int64(c.uleb()) * g.dataAlign})
		return nil
	case opRestore:
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
	case opNop:
	case opSetLoc:
		to, ok := c.pointer(g.pointers, 0)
		if !ok {
			return fmt.Errorf("location in encoding %#x", g.pointers)
		}
		return m.moveTo(to)
	case opAdvance1:
		return m.advance(g, uint64(c.u8()))
	case opAdvance2:
		return m.advance(g, uint64(c.u16()))
	case opAdvance4:
		return m.advance(g, uint64(c.u32()))

	case opDefCFA:
		s.cfa = cfaRule{kind: cfaRegister, reg: c.uleb(), n: int64(c.uleb())}
	case opDefCFASF:
		s.cfa = cfaRule{kind: cfaRegister, reg: c.uleb(), n: c.sleb() * factorSF}
	case opDefCFARegister:
		if s.cfa.kind != cfaRegister {
			return errors.New("CFA register without a CFA")
		}
		s.cfa.reg = c.uleb()
	case opDefCFAOffset, opDefCFAOffsetSF:
		if s.cfa.kind != cfaRegister {
			return errors.New("CFA offset without a CFA register")
		}
		if op == opDefCFAOffset {
			s.cfa.n = int64(c.uleb())
		} else {
			s.cfa.n = c.sleb() * factorSF
		}
	case opDefCFAExpression:
		s.cfa = cfaRule{kind: cfaValue, expr: evaluate(c.bytes(c.uleb()), value{})}

	case opUndefined:
		m.set(c.uleb(), registerRule{kind: ruleUndefined})
	case opSameValue:
		m.set(c.uleb(), registerRule{kind: ruleSame})
	case opOffsetExtended:
		m.set(c.uleb(), registerRule{kind: ruleOffset, n: int64(c.uleb()) * g.dataAlign})
	case opOffsetExtendedSF:
		m.set(c.uleb(), registerRule{kind: ruleOffset, n: c.sleb() * factorSF})
	case opGNUNegOffsetExt:
		m.set(c.uleb(), registerRule{kind: ruleOffset, n: -int64(c.uleb()) * g.dataAlign})
	case opValOffset:
		m.set(c.uleb(), registerRule{kind: ruleValOffset, n: int64(c.uleb()) * g.dataAlign})
	case opValOffsetSF:
		m.set(c.uleb(), registerRule{kind: ruleValOffset, n: c.sleb() * factorSF})
	case opRegister:
		reg := c.uleb()
		m.set(reg, registerRule{kind: ruleRegister, n: int64(c.uleb())})
	case opExpression:
		reg := c.uleb()
		m.set(reg, registerRule{kind: ruleMemory, expr: evaluate(c.bytes(c.uleb()), value{kind: valueCFA})})
	case opValExpression:
		reg := c.uleb()
		m.set(reg, registerRule{kind: ruleValue, expr: evaluate(c.bytes(c.uleb()), value{kind: valueCFA})})

	case opRestoreExtended:
		m.restore(g, c.uleb())
	case opRememberState:
		if len(m.remembered) == maxRemembered {
			return fmt.Errorf("more than %d states remembered", maxRemembered)
		}
		m.remembered = append(m.remembered, *s)
	case opRestoreState:
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
	case opGNUArgsSize:
		c.uleb()
	default:
		return fmt.Errorf("unknown instruction %#x", op)
	}
	return nil
}

// set gives a register's rule; those that no walk needs are let go.
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
