package rtsites

import (
	"encoding/binary"

	"ccagent/bpf"
)

// arm64 is AArch64. Every instruction is a word; what is needed of it is decoded by its bits (Arm
// Architecture Reference Manual, C4.1).
type arm64 struct{}

type armWord uint32

func (w armWord) is(mask, bits armWord) bool { return w&mask == bits }

// field gives bits of a word, from bit at on; signed has it with its sign.
func (w armWord) field(at, bits int) int64 { return int64(w >> at & (1<<bits - 1)) }
func (w armWord) signed(at, bits int) int64 {
	return int64(int32(w<<(32-at-bits)) >> (32 - bits))
}

// Registers by number.
const (
	armArguments = 8  // x0 to x7
	armStgSp     = 20 // the STG machine's stack pointer
	armZero      = 31 // the zero register, or no register
)

func (w armWord) isStore64() bool { return w.is(0xffc00000, 0xf9000000) } // str xT, [xN, #n]
func (w armWord) isLoad64() bool  { return w.is(0xffc00000, 0xf9400000) }
func (w armWord) isStore32() bool { return w.is(0xffc00000, 0xb9000000) }
func (w armWord) isLoad32() bool  { return w.is(0xffc00000, 0xb9400000) }

// to is the register that an instruction's last five bits name, from the base of its address.
func (w armWord) to() int64   { return w.field(0, 5) }
func (w armWord) from() int64 { return w.field(5, 5) }

// isMove recognises mov xD, xM and gives both.
func (w armWord) isMove() (to, from int64, ok bool) {
	return w.to(), w.field(16, 5), w.is(0xffe0ffe0, 0xaa0003e0)
}

// writes gives the general registers that an instruction writes, armZero for none.
func (w armWord) writes() [2]int64 {
	none := [2]int64{armZero, armZero}
	switch {
	case w.is(0x1c000000, 0x14000000): // branches
		return none
	case w.is(0x0a000000, 0x08000000): // loads and stores
		pair, load := w.is(0x38000000, 0x28000000), w.field(22, 2) != 0
		if pair {
			load = w.field(22, 1) != 0
		}
		switch {
		case !load || w.field(26, 1) != 0: // or of a floating-point register
			return none
		case pair:
			return [2]int64{w.to(), w.field(10, 5)}
		}
		return [2]int64{w.to(), armZero}
	}
	return [2]int64{w.to(), armZero}
}

func (w armWord) changes(register int64) bool {
	by := w.writes()
	return register != armZero && (by[0] == register || by[1] == register)
}

func (arm64) decode(code []byte, addr uint64) (instruction, bool) {
	if len(code) < 4 {
		return instruction{}, false
	}
	w := armWord(binary.LittleEndian.Uint32(code))
	if w>>16 == 0 { // udf
		return instruction{}, false
	}
	in := instruction{addr: addr, length: 4, of: w}
	goesTo := func(k kind, at, bits int) {
		in.kind, in.target, in.emulated = k, addr+uint64(4*w.signed(at, bits)), true
	}
	// What is emulated: arm_probe_decode_insn in arch/arm64/kernel/probes/decode-insn.c.
	switch {
	case w.is(0xfc000000, 0x94000000): // bl
		goesTo(call, 0, 26)
	case w.is(0xfc000000, 0x14000000): // b
		goesTo(jump, 0, 26)
	case w.is(0xff000010, 0x54000000), w.is(0x7e000000, 0x34000000): // b.cond; cbz, cbnz
		goesTo(branch, 5, 19)
	case w.is(0x7e000000, 0x36000000): // tbz, tbnz
		goesTo(branch, 5, 14)
	case w.is(0xfffffc1f, 0xd63f0000): // blr
		in.kind, in.emulated = call, true
	case w.is(0xfffffc1f, 0xd61f0000): // br
		in.kind, in.emulated = jump, true
	case w.is(0xfffffc1f, 0xd65f0000): // ret
		in.kind, in.emulated = leave, true
	case w.is(0x1f000000, 0x10000000): // adr, adrp
		in.emulated = true
	}
	in.mayChangeArgument = in.kind != other
	for _, register := range w.writes() {
		in.mayChangeArgument = in.mayChangeArgument || register < armArguments
	}
	return in, true
}

func word(in *instruction) armWord { return in.of.(armWord) }

func (arm64) straight(in *instruction) bool { return in.kind == other }

// stats is not looked for: there are no libraries without symbols to test it with.
func (arm64) stats([]instruction) uint64 { return 0 }

// intoProgram finds ldr xN, [x20]; br xN.
func (arm64) intoProgram(code []instruction) uint64 {
	for i := 1; i < len(code); i++ {
		load, to := word(&code[i-1]), word(&code[i])
		if load.isLoad64() && load.from() == armStgSp && load.field(10, 12) == 0 &&
			to.is(0xfffffc1f, 0xd61f0000) && to.from() == load.to() {
			return code[i-1].addr
		}
	}
	return 0
}

// large finds the first instruction for large objects. The kernel may have to single-step it.
func (arm64) large(allocate []instruction) uint64 {
	for i := range allocate {
		in := &allocate[i]
		w := word(in)
		if i > 0 && in.kind == branch {
			limit, ok := word(&allocate[i-1]).comparesArgument()
			if !ok || !isLargeLimit(limit) || !w.is(0xff000010, 0x54000000) {
				return 0
			}
			const hs, lo, hi, ls = 2, 3, 8, 9
			switch w.field(0, 4) {
			case hs, hi:
				if last := &allocate[len(allocate)-1]; in.target > in.addr && in.target <= last.addr {
					return in.target
				}
			case lo, ls:
				if i+1 < len(allocate) {
					return in.next()
				}
			}
			return 0
		}
		if in.kind != other || w.changes(0) || w.changes(1) {
			return 0
		}
	}
	return 0
}

// comparesArgument recognises cmp x1, #n.
func (w armWord) comparesArgument() (n int64, ok bool) {
	return w.field(10, 12), w.is(0xffc0001f, 0xf100001f) && w.from() == 1
}

// holders are the registers that have a value.
type holders map[int64]bool

// follow notes what an instruction does to them.
func (h holders) follow(w armWord) {
	if to, from, ok := w.isMove(); ok {
		h[to] = h[from]
		return
	}
	for _, register := range w.writes() {
		delete(h, register)
	}
}

func (arm64) stored(code []instruction) int64 {
	has := holders{0: true} // of the result
	for i := range code {
		w := word(&code[i])
		if code[i].kind == call || code[i].kind == leave {
			return 0
		}
		if w.isStore64() && has[w.to()] {
			return 8 * w.field(10, 12)
		}
		has.follow(w)
	}
	return 0
}

func (arm64) countedDown(code []instruction) uint64 {
	has := holders{0: true} // of the first argument
	read := int64(0)
	for i := range code {
		w := word(&code[i])
		at := 4 * w.field(10, 12)
		switch {
		case read == 0 && w.isLoad32() && has[w.from()] && at > leastCounter:
			read = at
		case read != 0 && w.isStore32() && has[w.from()] && at == read:
			return uint64(at)
		}
		has.follow(w)
	}
	return 0
}

// tested finds cbz or cbnz.
func (arm64) tested(code []instruction) Outcome {
	for i := range code {
		w := word(&code[i])
		switch {
		case w.is(0x7e000000, 0x34000000):
			return Outcome{code[i].addr, bpf.ResultIn(int(w.to()))}
		case code[i].kind == branch || code[i].kind == jump || code[i].kind == leave:
			return Outcome{}
		}
	}
	return Outcome{}
}
