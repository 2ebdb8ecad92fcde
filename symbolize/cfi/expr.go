package cfi

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

// DWARF operations: DWARF 4, 7.7.1.
const (
	exprAddr    = 0x03
	exprDeref   = 0x06
	exprConst1u = 0x08
	exprConst1s = 0x09
	exprConst2u = 0x0a
	exprConst2s = 0x0b
	exprConst4u = 0x0c
	exprConst4s = 0x0d
	exprConst8u = 0x0e
	exprConst8s = 0x0f
	exprConstu  = 0x10
	exprConsts  = 0x11
	exprMinus   = 0x1c
	exprMul     = 0x1e
	exprPlus    = 0x22
	exprPlusU   = 0x23
	exprLit0    = 0x30
	exprBreg0   = 0x70
	exprBreg31  = 0x8f
	exprBregx   = 0x92
	exprNop     = 0x96
	exprCallCFA = 0x9c
)

const maxExprStack = 8

// evaluate gives the value of an expression that starts with initial on its
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
		op := c.u8()
		var v value
		switch {
		case op == exprNop:
			continue
		case op == exprDeref:
			if n < 1 {
				return value{}
			}
			n--
			if stack[n].kind != valueRegister {
				return value{}
			}
			v = value{kind: valueDeref, reg: stack[n].reg, n: stack[n].n}
		case op == exprPlusU:
			if n < 1 {
				return value{}
			}
			n--
			v = sum(stack[n], value{kind: valueConst, n: int64(c.uleb())}, 1)
		case op == exprPlus || op == exprMinus || op == exprMul:
			if n < 2 {
				return value{}
			}
			n -= 2
			a, b := stack[n], stack[n+1]
			switch {
			case op == exprPlus:
				v = sum(a, b, 1)
			case op == exprMinus:
				v = sum(a, b, -1)
			case a.kind == valueConst && b.kind == valueConst:
				v = value{kind: valueConst, n: a.n * b.n}
			}
		case op == exprCallCFA:
			v = value{kind: valueCFA}
		case op >= exprBreg0 && op <= exprBreg31:
			v = value{kind: valueRegister, reg: uint64(op - exprBreg0), n: c.sleb()}
		case op == exprBregx:
			reg := c.uleb()
			v = value{kind: valueRegister, reg: reg, n: c.sleb()}
		default:
			var ok bool
			if v, ok = constant(op, &c); !ok {
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

func constant(op uint8, c *cursor) (v value, ok bool) {
	v.kind = valueConst
	switch op {
	case exprAddr, exprConst8u, exprConst8s:
		v.n = int64(c.u64())
	case exprConst1u:
		v.n = int64(c.u8())
	case exprConst1s:
		v.n = int64(int8(c.u8()))
	case exprConst2u:
		v.n = int64(c.u16())
	case exprConst2s:
		v.n = int64(int16(c.u16()))
	case exprConst4u:
		v.n = int64(c.u32())
	case exprConst4s:
		v.n = int64(int32(c.u32()))
	case exprConstu:
		v.n = int64(c.uleb())
	case exprConsts:
		v.n = c.sleb()
	default:
		if op < exprLit0 || op > exprLit0+31 {
			return v, false
		}
		v.n = int64(op - exprLit0)
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
	n := b[6]
	if n < exprLit0 || n > exprLit0+15 {
		return v, false
	}
	return value{kind: valuePLT, reg: amd64RSP, n: int64(n - exprLit0)}, true
}
