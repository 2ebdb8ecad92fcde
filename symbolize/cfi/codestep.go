package cfi

// group is code whose distance from the caller's frame at its start is unknown
// until an instruction shows it.
type group struct {
	solved  bool
	certain bool // by a frame or a return
	refuted bool // guessed twice, differently
	off     int32
	// The value to assume if none does, unless it is negative.
	fallback int32
}

// distance is how far the group's start is from the caller's frame.
func (g *group) distance() (off int32, ok bool) {
	switch {
	case g.refuted:
		return 0, false
	case g.solved:
		return g.off, g.off >= 0 // no caller's frame is below Sp
	}
	return g.fallback, g.fallback >= 0
}

func (a *analyser) newGroup(fallback int32) int32 {
	a.groups = append(a.groups, group{fallback: fallback})
	return int32(len(a.groups) - 1)
}

// reaches learns for certain that the caller's frame is want bytes above Sp or
// further: the RTS's primitive operations push several frames, and may return
// to the topmost.
func (a *analyser) reaches(b *branch, want int32) {
	if b.group == 0 {
		return
	}
	g, off := &a.groups[b.group], want-b.off
	if !g.certain || off > g.off {
		*g = group{solved: true, certain: true, off: off, fallback: g.fallback}
	}
}

// guess learns that, if the code is at a tail call, Sp is at the caller's
// frame.
func (a *analyser) guess(b *branch) {
	if b.group == 0 {
		return
	}
	g, off := &a.groups[b.group], -b.off
	switch {
	case g.certain:
	case !g.solved:
		g.solved, g.off = true, off
	case g.off != off:
		g.refuted = true
	}
}

// loaded is an address that an instruction put into a register.
type loaded struct {
	reg uint8
	v   uint64
	age int // instructions since
	// The address is that of another module's update frame; v is where it was
	// loaded from.
	update bool
}

// run follows code from one address up to where it jumps away for good.
func (a *analyser) run(b branch) {
	if !a.text.contains(b.addr) || a.inC(b.addr) {
		return
	}
	started := false
	last := loaded{reg: noReg}
	a.stored = stackWord{group: endOfRange}
	for a.text.contains(b.addr) && a.visited.add(b.addr-a.text.base) {
		in, ok := decode(a.text.code[b.addr-a.text.base:])
		if a.limit--; !ok || a.limit < 0 || len(a.rows) >= a.maxRows {
			break
		}
		if !started {
			a.rows = append(a.rows, codeRow{a.offset(b.addr), b.off, b.group})
			started = true
		}
		off, group := b.off, b.group
		stop := a.step(&b, &in, last)
		if l := a.load(&b, &in); l.reg != noReg {
			last = l
		} else {
			last.age++
		}
		b.addr += uint64(in.len)
		if stop {
			if in.jumps() {
				a.ends = append(a.ends, a.offset(b.addr))
			}
			break
		}
		if b.off != off || b.group != group {
			a.rows = append(a.rows, codeRow{a.offset(b.addr), b.off, b.group})
		}
	}
	if started {
		a.rows = append(a.rows, codeRow{at: a.offset(b.addr), group: endOfRange})
	}
}

// load returns the register that an instruction loads with an address, and notes
// addresses of info tables wherever they are put.
func (a *analyser) load(b *branch, in *inst) loaded {
	l := loaded{reg: noReg}
	if in.opmap != mapOne || in.vector {
		return l
	}
	switch {
	case in.op == 0x8d && in.ripRel: // lea
		l.reg, l.v = in.reg, b.addr+uint64(in.len)+uint64(int64(in.disp))
	case in.op >= 0xb8 && in.op <= 0xbf:
		l.reg, l.v = in.reg, uint64(in.imm)
	case in.op == 0xc7:
		if l.v = uint64(in.imm); in.mod == 3 {
			l.reg = in.rm
		}
	case in.op == 0x8b && in.ripRel: // mov, from a place that the dynamic linker fills
		if l.v = b.addr + uint64(in.len) + uint64(int64(in.disp)); a.updates[l.v] {
			l.reg, l.update = in.reg, true
		}
		return l
	default:
		return l
	}
	a.entry(l.v)
	return l
}

// step does what an instruction does to Sp and to the code to be visited. True:
// what follows is not reached from here, or Sp is lost.
func (a *analyser) step(b *branch, in *inst, last loaded) bool {
	if in.vector {
		return false
	}
	next := b.addr + uint64(in.len)
	if in.opmap != mapOne {
		if in.opmap != map0F {
			return false
		}
		if in.op&0xf0 == 0x80 { // jcc
			a.jump(b, next+uint64(in.imm))
			return false
		}
		return in.op == 0x0b || in.writes0F(stgSp) // ud2
	}
	toSp := in.modrm && in.mod == 3 && in.rm == stgSp
	onStack := in.modrm && in.mod != 3 && in.base == stgSp && in.index == noReg
	switch {
	case in.op&0xf0 == 0x70: // jcc
		a.jump(b, next+uint64(in.imm))
	case in.op == 0xe9 || in.op == 0xeb: // jmp
		a.jump(b, next+uint64(in.imm))
		return true
	case in.op == 0xc3 || in.op == 0xc2 || in.op == 0xf4 || in.op == 0xcc: // ret, hlt, int3
		return true
	case in.op == 0xff && in.reg&7 == 4: // jmp
		if onStack {
			a.reaches(b, in.disp)
		} else {
			a.jumpTable(b, in, last)
		}
		return true
	case (in.op == 0x83 || in.op == 0x81) && toSp:
		switch in.reg & 7 {
		case 0: // add
			b.off -= int32(in.imm)
		case 5: // sub
			b.off += int32(in.imm)
		case 7: // cmp
		default:
			return true
		}
	case in.op == 0x8d && in.reg == stgSp: // lea
		if !onStack {
			return true
		}
		b.off -= in.disp
	case in.op == 0xc7 && onStack:
		a.frame(b, in.disp, uint64(in.imm))
		a.stored = stackWord{b.group, in.disp - b.off, uint64(in.imm)}
	case in.op == 0x89 && onStack && last.age == 0 && in.reg == last.reg && last.update:
		b.underUpdate(in.disp)
	case in.op == 0x89 && onStack && last.age == 0 && in.reg == last.reg:
		a.frame(b, in.disp, last.v)
	case in.op == 0x8b && in.reg == stgSp && in.mod != 3:
		// Sp comes back from the thread's stack object: in compiled code
		// as it was before a foreign call; where the RTS enters a thread
		// or catches an exception, to somewhere else.
		if b.group != 0 {
			b.off, b.group = 0, a.newGroup(-1)
		}
	default:
		return in.writes(stgSp)
	}
	return false
}

// maxRetFun is how many words of arguments a saved call may have.
const maxRetFun = 1 << 10

// frame sees an info pointer being stored at Sp + disp.
func (a *analyser) frame(b *branch, disp int32, addr uint64) {
	in := a.text.infoAt(addr)
	switch in.kind {
	case infoReturn, infoUpdate:
	case infoRetFun:
		// Its size, which the RTS stores before, counts what follows three words.
		if n := a.stored; n.group == b.group && n.at == disp+8-b.off && n.v <= maxRetFun {
			in.words = 3 + int(n.v)
			break
		}
		return
	default:
		return
	}
	end := disp + int32(8*in.words)
	a.reaches(b, end)
	if in.kind == infoUpdate && b.group == 0 && b.off == end {
		// The thunk's code goes on under its update frame as if that
		// were its caller's.
		b.off = disp
	}
}

// underUpdate sees an imported update frame's info pointer being stored at Sp + disp.
// The frame has two words, and two more in the profiling way; only one of the two
// makes it end at the caller's frame, as a thunk's own does.
func (b *branch) underUpdate(disp int32) {
	if size := b.off - disp; b.group == 0 && (size == 16 || size == 32) {
		b.off = disp
	}
}

// jump sees a direct jump, conditional or not. Code with an info table knows
// its own distance; the rest has it from here, if it is in the same procedure.
func (a *analyser) jump(b *branch, to uint64) {
	switch in := a.text.infoAt(to); in.kind {
	case infoNone:
		if a.text.contains(to) {
			a.later(jump{a.offset(to), a.offset(b.addr), b.off, b.group})
		}
		return
	case infoEntry:
		a.guess(b)
	case infoFun:
		if in.words >= 0 && in.words <= argRegisters {
			a.guess(b)
		}
	}
	a.entry(to)
}

// jumps reports whether the instruction is a jump without a condition.
func (in *inst) jumps() bool {
	return in.opmap == mapOne && !in.vector && (in.op == 0xe9 || in.op == 0xeb || in.op == 0xff && in.reg&7 == 4)
}

// writes0F reports whether the instruction after 0F has the general register
// as its destination.
func (in *inst) writes0F(reg uint8) bool {
	switch op := in.op; {
	case op >= 0x40 && op < 0x50, op == 0xaf, op >= 0xb6 && op <= 0xb8, op >= 0xbb && op <= 0xbf: // cmov, imul, movzx, bsf…
		return in.reg == reg
	case op == 0xb0, op == 0xb1, op == 0xc0, op == 0xc1, op >= 0x90 && op < 0xa0: // cmpxchg, xadd, set
		return in.mod == 3 && in.rm == reg || op >= 0xc0 && in.reg == reg
	case op >= 0xc8 && op < 0xd0: // bswap
		return true
	}
	return false
}

// writes reports whether an instruction of the one-byte map has the general
// register as its destination.
func (in *inst) writes(reg uint8) bool {
	toRM := in.modrm && in.mod == 3 && in.rm == reg
	toReg := in.reg == reg
	switch op := in.op; {
	case op < 0x38:
		return op&7 < 2 && toRM || (op&7 == 2 || op&7 == 3) && toReg
	case op < 0x40: // cmp
		return false
	case op >= 0x58 && op < 0x60: // pop
		return toReg
	case op == 0x63, op == 0x69, op == 0x6b, op == 0x8a, op == 0x8b, op == 0x8d:
		return toReg
	case op == 0x80, op == 0x81, op == 0x83:
		return toRM && in.reg&7 != 7
	case op == 0x86, op == 0x87: // xchg
		return toRM || toReg
	case op == 0x88, op == 0x89, op == 0x8f, op == 0xc0, op == 0xc1, op == 0xc6, op == 0xc7, op >= 0xd0 && op <= 0xd3:
		return toRM
	case op >= 0x91 && op < 0x98, op >= 0xb0 && op < 0xc0:
		return toReg
	case op == 0xf6, op == 0xf7: // not, neg
		return toRM && (in.reg&7 == 2 || in.reg&7 == 3)
	case op == 0xfe, op == 0xff: // inc, dec
		return toRM && in.reg&7 < 2
	}
	return false
}
