package cfi

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
)

// Kind says how a frame is left at an address.
type Kind uint8

const (
	// KindNone: no call frame information covers the address.
	KindNone Kind = iota
	// KindUnknown: there is some, but it has no form here.
	KindUnknown
	// KindRoot: C's outermost frame; it has no caller.
	KindRoot
	// KindFrame: CFA = Reg + Offset.
	KindFrame
	// KindFrameDeref: CFA = *(Reg + Offset).
	KindFrameDeref
	// KindPLT: CFA = Reg + 8, one word more where PC & 15 ≥ Offset. The
	// return address is below it, nothing else is saved.
	KindPLT
	// KindHaskell: the caller's STG stack pointer is Reg + Offset; the word
	// at it is the caller's info pointer.
	KindHaskell
	// KindHaskellDeref: the caller's STG stack pointer is *(Reg + Offset).
	KindHaskellDeref
)

var kindNames = [...]string{"none", "unknown", "root", "frame", "frame-deref", "plt", "haskell", "haskell-deref"}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Bits of Rule.Flags; those of MaxSaved and less are FlagFromReg.
const (
	// FlagFromReg, shifted left by i: Saved[i] counts from Reg's value and
	// not from the CFA.
	FlagFromReg uint16 = 1 << 0
	// FlagRASigned: arm64's return address carries an authentication code.
	FlagRASigned uint16 = 1 << 14
	// FlagSignal: the caller was interrupted, so its PC is not the address
	// after a call.
	FlagSignal uint16 = 1 << 15
)

// Lost in Rule.Saved: the caller's value cannot be known.
const Lost = math.MinInt16

// Rule says how to restore the caller's registers. C's stack pointer becomes
// the CFA. Registers not in Saved are lost in C frames, and meaningless
// in Haskell ones.
type Rule struct {
	Kind   Kind
	Reg    uint8 // DWARF number of the register that the CFA is found by
	Flags  uint16
	Offset int32 // bytes
	// Saved are the words from the CFA (or from Reg, see FlagFromReg) to
	// where the caller's registers lie: the return address, then
	//
	//	amd64: rbp rbx r12 r13 r14 r15
	//	arm64: x29 x19 x20 … x28 (the return address is x30)
	//
	// 0 without FlagFromReg: the register still holds the caller's value
	// (arm64: the return address is in its register).
	Saved [MaxSaved]int16
}

// RuleSize is the number of bytes of an encoded Rule.
const RuleSize = 8 + 2*MaxSaved

// Append encodes a rule as the unwinder's C reads it, little-endian: u8 kind,
// u8 reg, u16 flags, s32 offset, s16 saved[MaxSaved].
func (r *Rule) Append(b []byte) []byte {
	le := binary.LittleEndian
	b = append(b, uint8(r.Kind), r.Reg)
	b = le.AppendUint16(b, r.Flags)
	b = le.AppendUint32(b, uint32(r.Offset))
	for _, s := range r.Saved {
		b = le.AppendUint16(b, uint16(s))
	}
	return b
}

func (r Rule) String() string {
	var s strings.Builder
	s.WriteString(r.Kind.String())
	switch r.Kind {
	case KindNone, KindUnknown, KindRoot:
		return s.String()
	}
	fmt.Fprintf(&s, " r%d%+d", r.Reg, r.Offset)
	for i, w := range r.Saved {
		switch {
		case w == Lost:
			fmt.Fprintf(&s, " %d:lost", i)
		case r.Flags&(FlagFromReg<<i) != 0:
			fmt.Fprintf(&s, " %d:reg%+d", i, w)
		case w != 0:
			fmt.Fprintf(&s, " %d:%+d", i, w)
		}
	}
	if r.Flags&FlagSignal != 0 {
		s.WriteString(" signal")
	}
	if r.Flags&FlagRASigned != 0 {
		s.WriteString(" signed")
	}
	return s.String()
}

// ruleOf converts a row. A row that has no form as a Rule becomes one of KindUnknown.
func (g *common) ruleOf(a *arch, s *state) Rule {
	if g.haskell {
		return haskellRule(s)
	}
	if s.saved[0].kind == ruleUndefined {
		return Rule{Kind: KindRoot}
	}
	r := Rule{}
	var shift int64 // what is added to the row's CFA
	switch s.cfa.kind {
	case cfaRegister:
		// Where the caller's stack pointer is said to be elsewhere than
		// at the CFA, it is made the CFA.
		if v := s.sp.expr; s.sp.kind == ruleValue && v.kind == valueRegister && v.reg == s.cfa.reg {
			shift = v.n - s.cfa.n
		}
		r.Kind, r.Reg = KindFrame, uint8(s.cfa.reg)
		if s.cfa.reg > 63 || !fits32(s.cfa.n+shift) {
			return Rule{Kind: KindUnknown}
		}
		r.Offset = int32(s.cfa.n + shift)
	case cfaValue:
		v := s.cfa.expr
		switch v.kind {
		case valueRegister:
			r.Kind = KindFrame
		case valueDeref:
			r.Kind = KindFrameDeref
		case valuePLT:
			r.Kind = KindPLT
		}
		if r.Kind == KindNone || v.reg > 63 || !fits32(v.n) {
			return Rule{Kind: KindUnknown}
		}
		r.Reg, r.Offset = uint8(v.reg), int32(v.n)
	default:
		return Rule{Kind: KindUnknown}
	}
	if g.signal {
		r.Flags |= FlagSignal
	}
	if s.raSigned {
		r.Flags |= FlagRASigned
	}
	for i := range a.saved {
		fromReg, words, ok := place(a, i, &s.saved[i], &r, shift)
		switch {
		case ok && fromReg:
			r.Flags |= FlagFromReg << i
			r.Saved[i] = words
		case ok:
			r.Saved[i] = words
		case i == 0:
			return Rule{Kind: KindUnknown}
		default:
			r.Saved[i] = Lost
		}
	}
	return r
}

// place finds the word where register i of a row lies.
func place(a *arch, i int, rule *registerRule, r *Rule, shift int64) (fromReg bool, words int16, ok bool) {
	var at int64
	switch rule.kind {
	case ruleSame:
		return false, 0, i > 0 || a.linkRegister
	case ruleOffset:
		at = rule.n - shift
		ok = at != 0
	case ruleMemory:
		switch v := rule.expr; v.kind {
		case valueCFA:
			at = v.n - shift
			ok = at != 0
		case valueRegister:
			at = v.n
			fromReg, ok = true, v.reg == uint64(r.Reg)
		}
	}
	words = int16(at / 8)
	ok = ok && at%8 == 0 && at/8 == int64(words) && words != Lost
	return fromReg, words, ok
}

// haskellRule converts a row of GHC's. Its rows describe only Sp and, in the RTS's
// own code, a return address that is C's.
func haskellRule(s *state) Rule {
	if s.saved[0].kind != ruleOffset || s.saved[0].n != 0 {
		return Rule{Kind: KindUnknown}
	}
	kind, v := KindHaskell, s.cfa.expr
	switch {
	case s.cfa.kind == cfaRegister:
		v = value{kind: valueRegister, reg: s.cfa.reg, n: s.cfa.n}
	case v.kind == valueDeref:
		kind = KindHaskellDeref
	}
	if v.kind != valueRegister && v.kind != valueDeref {
		return Rule{Kind: KindUnknown}
	}
	if v.reg > 63 || !fits32(v.n) {
		return Rule{Kind: KindUnknown}
	}
	return Rule{Kind: kind, Reg: uint8(v.reg), Offset: int32(v.n)}
}

func fits32(n int64) bool { return n == int64(int32(n)) }
