package rtsites

import (
	"encoding/binary"
	"testing"

	"ccagent/bpf"
)

// words are arm64 instructions.
func words(w ...uint32) (code []byte) {
	for _, one := range w {
		code = binary.LittleEndian.AppendUint32(code, one)
	}
	return code
}

// What GHC 9.6.6 and gcc make for arm64 is recognised.
func TestArm64(t *testing.T) {
	const (
		at       = 0x400000
		saveRegs = 0xa9bc4ffe // stp x30, x19, [sp, #-64]!
		keepArg  = 0xaa0103f5 // mov x21, x1
		keepCap  = 0xaa0003f3 // mov x19, x0
		compare  = 0xf106603f // cmp x1, #0x198
		compared = 0xf101003f // cmp x1, #0x40
		bhi      = 0x54000048 // b.hi +8
		bls      = 0x54000049 // b.ls +8
		clobber  = 0xb277cfe0 // mov x0, #0x1ffffffffffffe00
		nop      = 0xd503201f
		ret      = 0xd65f03c0
		result   = 0xaa0003f2 // mov x18, x0
		restore  = 0xa8c17bfd // ldp x29, x30, [sp], #16
		spill    = 0xf90033f2 // str x18, [sp, #96]
		cbnz18   = 0xb5000092 // cbnz x18, +16
		load32   = 0xb9457800 // ldr w0, [x0, #1400]
		store32  = 0xb9057a60 // str w0, [x19, #1400]
		storeX0  = 0xf9004e60 // str x0, [x19, #152]
		copyX1   = 0xaa0003e1 // mov x1, x0
		storeX1  = 0xf9005261 // str x1, [x19, #160]
		adrpX2   = 0xb0002202 // adrp x2, …
		bl       = 0x94006e86
		toFrame  = 0xf9400292 // ldr x18, [x20]
		br18     = 0xd61f0240
		bge      = 0x5400004a // b.ge +8
	)
	m := arm64{}
	for _, c := range []struct {
		name      string
		code      []byte
		got       func(code []instruction) uint64
		want      uint64
		otherwise []byte // in which it is not found
	}{
		{"large, out of line", words(saveRegs, keepArg, compare, bhi, ret, clobber), m.large, at + 20, words(saveRegs, clobber, compare, bhi, ret, ret)},
		{"large, in line", words(compare, bls, clobber), m.large, at + 8, words(compared, bls, clobber)},
		{"into the program", words(nop, toFrame, br18), m.intoProgram, at + 4, words(toFrame, nop, br18)},
		{"next block", words(bge, cbnz18, toFrame, br18), func(code []instruction) uint64 { return blockSite(m, code) }, at, words(nop, cbnz18, toFrame, br18)},
		{"stored", words(storeX0), func(code []instruction) uint64 { return uint64(m.stored(code)) }, 152, words(bl, storeX0)},
		{"stored after a move", words(copyX1, adrpX2, storeX1), func(code []instruction) uint64 { return uint64(m.stored(code)) }, 160, words(adrpX2, storeX1)},
		{"counted down", words(keepCap, load32, nop, store32), m.countedDown, 1400, words(load32, nop, store32)},
		{"tested", words(result, restore, spill, cbnz18), func(code []instruction) uint64 { return m.tested(code).Addr }, at + 12, words(result, bge, cbnz18)},
	} {
		if got := c.got(decodeAll(m, c.code, at)); got != c.want {
			t.Errorf("%s: %#x, want %#x", c.name, got, c.want)
		}
		if got := c.got(decodeAll(m, c.otherwise, at)); got != 0 {
			t.Errorf("%s: %#x where there is none", c.name, got)
		}
	}
	if by := m.tested(decodeAll(m, words(cbnz18), at)).By; by != bpf.ResultIn(18) {
		t.Errorf("the result is in %d", by)
	}
	in, _ := m.decode(words(bl), at)
	if in.kind != call || in.target != at+4*0x6e86 || !in.emulated {
		t.Errorf("bl is %+v", in)
	}
	if in, _ := m.decode(words(0x97ffffff), at); in.target != at-4 {
		t.Errorf("bl -4 goes to %#x", in.target)
	}
}

// FuzzMachines looks for everything in code that may be anything: all that is found is in it.
func FuzzMachines(f *testing.F) {
	f.Add(true, words(0xa9bc4ffe, 0xf106603f, 0x54000048, 0xd65f03c0, 0xb277cfe0))
	f.Add(true, words(0x54000048, 0xf9400292, 0xd61f0240))
	f.Add(true, words(0xaa0003f3, 0xb9457800, 0xb9057a60, 0xb5000092))
	f.Add(false, []byte{0x48, 0x81, 0xfe, 0x98, 0x01, 0x00, 0x00, 0x76, 0x07, 0x31, 0xc0, 0x48, 0x39, 0xf2, 0x72, 0xf6, 0xc3})
	f.Add(false, []byte{0x48, 0x83, 0x78, 0x68, 0x00, 0x7d, 0x02, 0x75, 0xf7, 0xff, 0x65, 0x00})
	f.Fuzz(func(t *testing.T, isArm bool, text []byte) {
		const at = 0x400000
		var m machine = x86{}
		if isArm {
			m = arm64{}
		}
		code := decodeAll(m, text, at)
		inside := func(addr uint64) bool { return addr == 0 || addr >= at && addr < at+uint64(len(text)) }
		if !inside(m.intoProgram(code)) || !inside(m.tested(code).Addr) || !inside(blockSite(m, code)) {
			t.Fatal("found where there is no code")
		}
		_, _, _ = m.stats(code), m.stored(code), m.countedDown(code)
		if !inside(m.large(code)) {
			t.Fatal("large objects outside of the code")
		}
	})
}
