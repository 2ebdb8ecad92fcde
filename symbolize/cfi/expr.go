package cfi

import (
	"github.com/go-delve/delve/pkg/dwarf/op"
	"github.com/go-delve/delve/pkg/dwarf/regnum"
)

// DWARF expressions in call frame information are few: what C compilers write
// for realigned stacks, what linkers write for PLTs, what libc writes for
// signal frames, and GHC's sums. They are evaluated symbolically; what does
// not come out as one of value's forms is valueUnknown.

type valueKind uint8

const (
	valueUnknown  valueKind = iota
	valueConst              // n
	valueRegister           // reg + n
	valueCFA                // CFA + n
	valueDeref              // *(reg + n)
	valuePLT                // rsp + 8, or rsp + 16 from byte n of each 16 on
)

type value struct {
	kind valueKind
	reg  uint64
	n    int64
}

const maxExprStack = 8

// evaluate returns the value of an expression that starts with initial on its
// stack, unless that is unknown: then with an empty one.
func evaluate(b []byte, initial value) value {
	if v, ok := pltValue(b); ok {
		return v
	}
	var stack [maxExprStack]value
	n := 0
	if initial.kind != valueUnknown {
		stack[0], n = initial, 1
	}
	c := cursor{b: b}
	for c.left() > 0 {
		code := op.Opcode(c.u8())
		var v value
		switch {
		case code == op.DW_OP_nop:
			continue
		case code == op.DW_OP_deref:
			if n < 1 {
				return value{}
			}
			n--
			if stack[n].kind != valueRegister {
				return value{}
			}
			v = value{kind: valueDeref, reg: stack[n].reg, n: stack[n].n}
		case code == op.DW_OP_plus_uconst:
			if n < 1 {
				return value{}
			}
			n--
			v = sum(stack[n], value{kind: valueConst, n: int64(c.uleb())}, 1)
		case code == op.DW_OP_plus || code == op.DW_OP_minus || code == op.DW_OP_mul:
			if n < 2 {
				return value{}
			}
			n -= 2
			a, b := stack[n], stack[n+1]
			switch {
			case code == op.DW_OP_plus:
				v = sum(a, b, 1)
			case code == op.DW_OP_minus:
				v = sum(a, b, -1)
			case a.kind == valueConst && b.kind == valueConst:
				v = value{kind: valueConst, n: a.n * b.n}
			}
		case code == op.DW_OP_call_frame_cfa:
			v = value{kind: valueCFA}
		case code >= op.DW_OP_breg0 && code <= op.DW_OP_breg31:
			v = value{kind: valueRegister, reg: uint64(code - op.DW_OP_breg0), n: c.sleb()}
		case code == op.DW_OP_bregx:
			reg := c.uleb()
			v = value{kind: valueRegister, reg: reg, n: c.sleb()}
		default:
			var ok bool
			if v, ok = constant(code, &c); !ok {
				return value{}
			}
		}
		if c.bad || v.kind == valueUnknown || n == maxExprStack {
			return value{}
		}
		stack[n] = v
		n++
	}
	if c.bad || n == 0 {
		return value{}
	}
	return stack[n-1]
}

// sum is a + sign*b, where that has a form.
func sum(a, b value, sign int64) value {
	if a.kind == valueConst && sign == 1 {
		a, b = b, a
	}
	if b.kind != valueConst || a.kind == valueDeref || a.kind == valueUnknown {
		return value{}
	}
	a.n += sign * b.n
	return a
}

func constant(code op.Opcode, c *cursor) (v value, ok bool) {
	v.kind = valueConst
	switch code {
	case op.DW_OP_addr, op.DW_OP_const8u, op.DW_OP_const8s:
		v.n = int64(c.u64())
	case op.DW_OP_const1u:
		v.n = int64(c.u8())
	case op.DW_OP_const1s:
		v.n = int64(int8(c.u8()))
	case op.DW_OP_const2u:
		v.n = int64(c.u16())
	case op.DW_OP_const2s:
		v.n = int64(int16(c.u16()))
	case op.DW_OP_const4u:
		v.n = int64(c.u32())
	case op.DW_OP_const4s:
		v.n = int64(int32(c.u32()))
	case op.DW_OP_constu:
		v.n = int64(c.uleb())
	case op.DW_OP_consts:
		v.n = c.sleb()
	default:
		if code < op.DW_OP_lit0 || code > op.DW_OP_lit0+31 {
			return v, false
		}
		v.n = int64(code - op.DW_OP_lit0)
	}
	return v, true
}

// pltValue recognises the expression that binutils and LLVM write for lazy
// procedure linkage tables on x86-64: entries of 16 bytes push one word, at
// an instruction that ends n bytes into the entry.
//
//	breg7+8 breg16+0 lit15 and litN ge lit3 shl plus
func pltValue(b []byte) (v value, ok bool) {
	if len(b) != 11 || string(b[:6]) != "\x77\x08\x80\x00\x3f\x1a" || string(b[7:]) != "\x2a\x33\x24\x22" {
		return v, false
	}
	n := op.Opcode(b[6])
	if n < op.DW_OP_lit0 || n > op.DW_OP_lit0+15 {
		return v, false
	}
	return value{kind: valuePLT, reg: regnum.AMD64_Rsp, n: int64(n - op.DW_OP_lit0)}, true
}
