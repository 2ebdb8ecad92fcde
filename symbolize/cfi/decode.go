package cfi

import "encoding/binary"

// A decoder of x86-64 instructions as far as STG code needs one: every
// instruction's length, and of those that matter the operands. Intel SDM
// volume 2, chapter 2 and appendix A.

type opcodeMap uint8

const (
	mapOne opcodeMap = iota // one-byte opcodes
	map0F
	map0F38
	map0F3A
)

const noReg = 0xff

type inst struct {
	len    int
	opmap  opcodeMap
	op     uint8
	wide   bool // REX.W
	vector bool // VEX or EVEX
	// modrm's parts, if it has one
	modrm  bool
	mod    uint8
	reg    uint8 // with REX.R; an opcode extension is reg & 7
	rm     uint8 // the register, when mod is 3
	base   uint8 // of a memory operand: noReg for none
	index  uint8
	ripRel bool
	disp   int32
	imm    int64 // sign-extended
	immLen int
}

const (
	immNone = iota
	imm8
	imm16
	immZ    // 32 bits, 16 with the operand-size prefix
	immV    // 64 bits with REX.W
	imm16x8 // enter
	immMoffs
	immInvalid
)

// oneByte describes what follows each opcode of the one-byte map: hasModRM and one
// of imm. Prefixes are taken off before; group 3's immediate is test's alone.
var oneByte [256]uint8

const (
	hasModRM = 0x80
	immMask  = 0x0f
)

func init() {
	for i := range oneByte {
		var v uint8
		switch {
		case i < 0x40:
			v = [8]uint8{hasModRM, hasModRM, hasModRM, hasModRM, imm8, immZ, immInvalid, immInvalid}[i&7]
		case i < 0x50: // REX
			v = immInvalid
		case i < 0x60:
		case i == 0x63:
			v = hasModRM
		case i == 0x68:
			v = immZ
		case i == 0x69:
			v = hasModRM | immZ
		case i == 0x6a:
			v = imm8
		case i == 0x6b:
			v = hasModRM | imm8
		case i >= 0x6c && i < 0x70:
		case i < 0x68:
			v = immInvalid
		case i < 0x80:
			v = imm8
		case i == 0x80 || i == 0x83:
			v = hasModRM | imm8
		case i == 0x81:
			v = hasModRM | immZ
		case i == 0x82:
			v = immInvalid
		case i < 0x90:
			v = hasModRM
		case i == 0x9a:
			v = immInvalid
		case i < 0xa0:
		case i < 0xa4:
			v = immMoffs
		case i == 0xa8:
			v = imm8
		case i == 0xa9:
			v = immZ
		case i < 0xb0:
		case i < 0xb8:
			v = imm8
		case i < 0xc0:
			v = immV
		case i < 0xc2 || i == 0xc6:
			v = hasModRM | imm8
		case i == 0xc2 || i == 0xca:
			v = imm16
		case i == 0xc7:
			v = hasModRM | immZ
		case i == 0xc8:
			v = imm16x8
		case i == 0xcd:
			v = imm8
		case i == 0xc4 || i == 0xc5 || i == 0xce: // VEX prefixes are taken off before
			v = immInvalid
		case i >= 0xd0 && i < 0xd4 || i >= 0xd8 && i < 0xe0:
			v = hasModRM
		case i >= 0xd4 && i < 0xd7:
			v = immInvalid
		case i >= 0xe0 && i < 0xe8:
			v = imm8
		case i == 0xe8 || i == 0xe9:
			v = immZ
		case i == 0xea:
			v = immInvalid
		case i == 0xeb:
			v = imm8
		case i == 0xf6 || i == 0xf7 || i == 0xfe || i == 0xff:
			v = hasModRM
		}
		oneByte[i] = v
	}
}

// layout0F is oneByte's counterpart for the opcodes after 0F.
func layout0F(op uint8) uint8 {
	switch {
	case op >= 0x80 && op < 0x90:
		return immZ
	case op == 0x70 || op == 0x71 || op == 0x72 || op == 0x73 || op == 0xa4 || op == 0xac || op == 0xba ||
		op == 0xc2 || op == 0xc4 || op == 0xc5 || op == 0xc6:
		return hasModRM | imm8
	case op >= 0x05 && op <= 0x09 || op == 0x0b || op == 0x0e || op >= 0x30 && op <= 0x37 || op == 0x77 ||
		op >= 0xa0 && op <= 0xa2 || op >= 0xa8 && op <= 0xaa || op >= 0xc8 && op < 0xd0:
		return 0
	case op == 0x04 || op == 0x0a || op == 0x0c || op == 0x0f || op >= 0x24 && op <= 0x27 || op == 0x36 || op == 0x39 || op >= 0x3b && op < 0x40:
		return immInvalid
	}
	return hasModRM
}

// decode reads the instruction that b begins with. False: there is none.
func decode(b []byte) (in inst, ok bool) {
	if len(b) > 15 {
		b = b[:15]
	}
	in.base, in.index = noReg, noReg
	i := 0
	small, addr32 := false, false
prefixes:
	for ; i < len(b); i++ {
		switch b[i] {
		case 0x66:
			small = true
		case 0x67:
			addr32 = true
		case 0xf0, 0xf2, 0xf3, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65:
		default:
			break prefixes
		}
	}
	if i >= len(b) {
		return in, false
	}
	var rexR, rexX, rexB uint8
	var layout uint8
	switch {
	case b[i] == 0xc5:
		if i+3 > len(b) {
			return in, false
		}
		in.vector, in.opmap = true, map0F
		rexR = ^b[i+1] >> 7 & 1
		i += 2
	case b[i] == 0xc4:
		if i+4 > len(b) || b[i+1]&0x1f < 1 || b[i+1]&0x1f > 3 {
			return in, false
		}
		in.vector, in.opmap = true, opcodeMap(b[i+1]&0x1f)
		rexR, rexX, rexB = ^b[i+1]>>7&1, ^b[i+1]>>6&1, ^b[i+1]>>5&1
		i += 3
	case b[i] == 0x62:
		if i+5 > len(b) || b[i+1]&7 < 1 || b[i+1]&7 > 3 {
			return in, false
		}
		in.vector, in.opmap = true, opcodeMap(b[i+1]&7)
		rexR, rexX, rexB = ^b[i+1]>>7&1, ^b[i+1]>>6&1, ^b[i+1]>>5&1
		i += 4
	default:
		if b[i]&0xf0 == 0x40 {
			in.wide = b[i]&8 != 0
			rexR, rexX, rexB = b[i]>>2&1, b[i]>>1&1, b[i]&1
			i++
		}
		if i < len(b) && b[i] == 0x0f {
			in.opmap = map0F
			i++
			if i < len(b) && b[i] == 0x38 {
				in.opmap = map0F38
				i++
			} else if i < len(b) && b[i] == 0x3a {
				in.opmap = map0F3A
				i++
			}
		}
	}
	if i >= len(b) {
		return in, false
	}
	in.op = b[i]
	i++
	switch in.opmap {
	case mapOne:
		layout = oneByte[in.op]
	case map0F:
		layout = layout0F(in.op)
	case map0F38:
		layout = hasModRM
	case map0F3A:
		layout = hasModRM | imm8
	}
	if layout&hasModRM != 0 {
		n, ok := in.operands(b[i:], rexR, rexX, rexB)
		if !ok {
			return in, false
		}
		i += n
	} else if in.opmap == mapOne {
		in.reg = in.op&7 | rexB<<3 // the register in the opcode, where it has one
	}
	imm := layout & immMask
	if in.opmap == mapOne && in.reg&7 < 2 && in.modrm {
		switch in.op { // test
		case 0xf6:
			imm = imm8
		case 0xf7:
			imm = immZ
		}
	}
	switch imm {
	case imm8:
		in.immLen = 1
	case imm16:
		in.immLen = 2
	case imm16x8:
		in.immLen = 3
	case immZ, immV:
		in.immLen = 4
		switch {
		case imm == immV && in.wide:
			in.immLen = 8
		case small && !in.wide && !in.branch():
			in.immLen = 2
		}
	case immMoffs:
		in.immLen = 8
		if addr32 {
			in.immLen = 4
		}
	case immInvalid:
		return in, false
	}
	if i+in.immLen > len(b) {
		return in, false
	}
	switch v := b[i:]; in.immLen {
	case 1:
		in.imm = int64(int8(v[0]))
	case 2:
		in.imm = int64(int16(binary.LittleEndian.Uint16(v)))
	case 4:
		in.imm = int64(int32(binary.LittleEndian.Uint32(v)))
	case 8:
		in.imm = int64(binary.LittleEndian.Uint64(v))
	}
	in.len = i + in.immLen
	return in, true
}

// branch: a relative one, whose operand keeps its size under any prefix.
func (in *inst) branch() bool {
	return in.opmap == mapOne && (in.op == 0xe8 || in.op == 0xe9) || in.opmap == map0F && in.op&0xf0 == 0x80
}

// operands reads modrm, SIB and displacement, n bytes.
func (in *inst) operands(b []byte, rexR, rexX, rexB uint8) (n int, ok bool) {
	if len(b) < 1 {
		return 0, false
	}
	m := b[0]
	n = 1
	in.modrm, in.mod, in.reg, in.rm = true, m>>6, m>>3&7|rexR<<3, m&7|rexB<<3
	if in.mod == 3 {
		return n, true
	}
	in.base = in.rm
	if m&7 == 4 {
		if len(b) < 2 {
			return 0, false
		}
		sib := b[1]
		n++
		in.base = sib&7 | rexB<<3
		if in.index = sib>>3&7 | rexX<<3; in.index == 4 {
			in.index = noReg
		}
		if sib&7 == 5 && in.mod == 0 {
			in.base = noReg
		}
	} else if m&7 == 5 && in.mod == 0 {
		in.base, in.ripRel = noReg, true
	}
	switch {
	case in.mod == 1:
		if len(b) < n+1 {
			return 0, false
		}
		in.disp = int32(int8(b[n]))
		n++
	case in.mod == 2 || in.base == noReg:
		if len(b) < n+4 {
			return 0, false
		}
		in.disp = int32(binary.LittleEndian.Uint32(b[n:]))
		n += 4
	}
	return n, true
}
