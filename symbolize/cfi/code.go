package cfi

import (
	"debug/elf"
	"math"
	"slices"
	"sort"
)

// What GHC's own tables leave out or get wrong is worked out of the code
// itself: see doc.go, "Rows from code". STG code moves Sp by constants only,
// and wherever it is entered, something in reach tells how far the caller's
// frame is from Sp.

const stgSp = 5 // rbp, as instructions number it

// Argument registers R2 to R6 hold the first words of a function's arguments;
// the others are on the stack.
const argRegisters = 5

// codeRow begins a range of code in which the caller's frame is off bytes above
// Sp. Rows of a group count from an unknown start until the group is solved.
type codeRow struct {
	addr  uint64
	off   int32
	group int32 // 0: off is absolute
	end   bool  // the range's end
}

// group is code whose distance from the caller's frame at its entry is unknown.
type group struct {
	solved  bool
	strong  bool // solved by a frame or a return
	refuted bool // solved twice, differently
	off     int32
	// What to take if nothing solves it, unless it is negative.
	fallback int32
}

// distance is how far the group's start is from the caller's frame.
func (g *group) distance() (off int32, ok bool) {
	switch {
	case g.refuted:
		return 0, false
	case g.solved:
		return g.off, true
	}
	return g.fallback, g.fallback >= 0
}

type branch struct {
	addr     uint64
	off      int32
	group    int32
	reloaded bool // group changed in this step
}

type analyser struct {
	text    text
	skip    []span // C code, sorted
	visited []uint64
	rows    []codeRow
	groups  []group
	entries []uint64 // info pointers to visit
	seen    map[uint64]bool
	names   map[uint64]bool // addresses of symbols
	work    []branch
	tables  []branch // jump tables, to read last
	limit   int      // instructions
}

// analyse finds rows for the Haskell code among the module's; spans are those
// of the frame sections.
func (c *compiler) analyse() []codeRow {
	if c.arch != amd64 || c.limits.Instructions == 0 {
		return nil
	}
	a := &analyser{seen: map[uint64]bool{}, names: map[uint64]bool{}, groups: make([]group, 1), limit: c.limits.Instructions}
	for _, p := range c.f.Segments {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && p.Filesz > uint64(len(a.text.code)) && p.Filesz <= c.limits.Bytes {
			if code := c.f.ReadAddr(p.Addr, p.Filesz); uint64(len(code)) == p.Filesz {
				a.text = text{base: p.Addr, code: code, f: c.f}
			}
		}
	}
	if len(a.text.code) == 0 {
		return nil
	}
	a.visited = make([]uint64, len(a.text.code)/64+1)
	for i := range c.spans {
		if s := &c.spans[i]; !s.haskell && s.lo < s.hi {
			a.skip = append(a.skip, *s)
		}
	}
	sort.Slice(a.skip, func(i, j int) bool { return a.skip[i].lo < a.skip[j].lo })

	// Where code begins: what data and symbols point at.
	symbols, _ := c.f.Symbols(c.limits.Bytes)
	for i := range symbols {
		if a.text.contains(symbols[i].Addr) {
			a.names[symbols[i].Addr] = true
			a.entry(symbols[i].Addr)
		}
	}
	a.text.codePointers(c.limits.Bytes, a.entry)
	for _, s := range c.spans {
		if s.haskell {
			a.entry(s.lo)
			a.entry(s.lo + 1)
		}
	}
	a.drain()
	// Procedures without an info table: those of the RTS and slow entries.
	for _, addr := range sortedKeys(a.names) {
		if !a.inC(addr) && len(a.rows) > 0 {
			a.work = append(a.work, branch{addr: addr, group: a.newGroup(-1)})
			a.drain()
		}
	}
	// Procedures with frame information but without info tables.
	for _, s := range c.spans {
		if s.haskell && s.lo&7 == 0 && s.end > s.first {
			if r := c.rules[c.rows[s.first].rule]; r.Kind == KindHaskell {
				a.work = append(a.work, branch{addr: s.lo, off: r.Offset})
				a.drain()
			}
		}
	}
	return a.finish()
}

func sortedKeys(m map[uint64]bool) []uint64 {
	keys := make([]uint64, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

func (a *analyser) newGroup(fallback int32) int32 {
	a.groups = append(a.groups, group{fallback: fallback})
	return int32(len(a.groups) - 1)
}

// inC reports whether addr is C code by its own frame information.
func (a *analyser) inC(addr uint64) bool {
	i := sort.Search(len(a.skip), func(i int) bool { return a.skip[i].lo > addr })
	return i > 0 && addr < a.skip[i-1].hi
}

// entry notes an info pointer.
func (a *analyser) entry(addr uint64) {
	if addr&7 != 0 || a.seen[addr] || !a.text.contains(addr) {
		return
	}
	if a.text.infoAt(addr).kind == infoNone || a.inC(addr) {
		return
	}
	a.seen[addr] = true
	a.entries = append(a.entries, addr)
}

func (a *analyser) drain() {
	for {
		switch {
		case len(a.work) > 0:
			b := a.work[len(a.work)-1]
			a.work = a.work[:len(a.work)-1]
			a.run(b)
		case len(a.entries) > 0:
			addr := a.entries[len(a.entries)-1]
			a.entries = a.entries[:len(a.entries)-1]
			switch in := a.text.infoAt(addr); in.kind {
			case infoEntry:
				a.work = append(a.work, branch{addr: addr})
			case infoReturn, infoUpdate:
				a.work = append(a.work, branch{addr: addr, off: int32(8 * in.words)})
			case infoFun:
				switch {
				case in.words >= 0 && in.words <= argRegisters:
					a.work = append(a.work, branch{addr: addr})
				case in.words > argRegisters:
					a.work = append(a.work, branch{addr: addr, group: a.newGroup(int32(8 * (in.words - argRegisters)))})
				default:
					a.work = append(a.work, branch{addr: addr, group: a.newGroup(-1)})
				}
			}
		default:
			return
		}
	}
}

// solve learns that code at off from its group's start is want from the
// caller's frame: for sure (strong), or if the code is at a tail call.
func (a *analyser) solve(b *branch, want int32, strong bool) {
	if b.group == 0 {
		return
	}
	g, off := &a.groups[b.group], want-b.off
	switch {
	case !g.solved, strong && !g.strong:
		*g = group{solved: true, strong: strong, off: off, fallback: g.fallback}
	case strong == g.strong && off != g.off:
		g.refuted = true
	}
}

func (a *analyser) visit(addr uint64) bool {
	i := addr - a.text.base
	if a.visited[i/64]&(1<<(i%64)) != 0 {
		return false
	}
	a.visited[i/64] |= 1 << (i % 64)
	return true
}

// run follows code from one address up to where it jumps away for good.
func (a *analyser) run(b branch) {
	if !a.text.contains(b.addr) || a.inC(b.addr) {
		return
	}
	started := false
	var constant uint64 // what the instruction before put into a register
	var constantIn uint8 = noReg
	for a.text.contains(b.addr) && a.visit(b.addr) {
		in, ok := decode(a.text.code[b.addr-a.text.base:])
		if a.limit--; !ok || a.limit < 0 {
			break
		}
		if !started {
			a.rows = append(a.rows, codeRow{addr: b.addr, off: b.off, group: b.group})
			started = true
		}
		off := b.off
		stop := a.step(&b, &in, constantIn, constant)
		constantIn, constant = a.constant(&b, &in)
		b.addr += uint64(in.len)
		if stop {
			break
		}
		if b.off != off || b.reloaded {
			b.reloaded = false
			a.rows = append(a.rows, codeRow{addr: b.addr, off: b.off, group: b.group})
		}
	}
	if started {
		a.rows = append(a.rows, codeRow{addr: b.addr, end: true})
	}
}

// constant gives the register that an instruction loads with an address, and
// notes the address if it is an info pointer.
func (a *analyser) constant(b *branch, in *inst) (reg uint8, v uint64) {
	if in.opmap != mapOne || in.vector {
		return noReg, 0
	}
	switch {
	case in.op == 0x8d && in.ripRel: // lea
		reg, v = in.reg, b.addr+uint64(in.len)+uint64(int64(in.disp))
	case in.op >= 0xb8 && in.op <= 0xbf:
		reg, v = in.reg, uint64(in.imm)
	case in.op == 0xc7 && in.mod == 3:
		reg, v = in.rm, uint64(in.imm)
	case in.op == 0xc7:
		a.entry(uint64(in.imm))
		return noReg, 0
	default:
		return noReg, 0
	}
	a.entry(v)
	return reg, v
}

// step does what an instruction does to Sp and to the code to be visited. True:
// it never goes on to the next.
func (a *analyser) step(b *branch, in *inst, constantIn uint8, constant uint64) bool {
	if in.vector {
		return false
	}
	next := b.addr + uint64(in.len)
	if in.opmap == map0F {
		switch {
		case in.op&0xf0 == 0x80: // jcc
			a.jump(b, next+uint64(in.imm))
			return false
		case in.op == 0x0b: // ud2
			return true
		}
		return in.writesReg0F() && in.reg == stgSp
	}
	if in.opmap != mapOne {
		return false
	}
	toSp := in.modrm && in.mod == 3 && in.rm == stgSp
	onStack := in.modrm && in.mod != 3 && in.base == stgSp && in.index == noReg
	switch {
	case in.op&0xf0 == 0x70: // jcc
		a.jump(b, next+uint64(in.imm))
	case in.op == 0xe9 || in.op == 0xeb:
		a.jump(b, next+uint64(in.imm))
		return true
	case in.op == 0xc3 || in.op == 0xc2 || in.op == 0xf4 || in.op == 0xcc:
		return true
	case in.op == 0xff && in.reg&7 == 4: // jmp
		switch {
		case onStack:
			a.solve(b, in.disp, true)
		case in.mod != 3 && in.base == noReg && in.index != noReg:
			a.tables = append(a.tables, branch{addr: uint64(int64(in.disp)), off: b.off, group: b.group})
		}
		return true
	case (in.op == 0x83 || in.op == 0x81) && toSp:
		switch in.reg & 7 {
		case 0:
			b.off -= int32(in.imm)
		case 5:
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
	case in.op == 0x89 && onStack && in.reg == constantIn:
		a.frame(b, in.disp, constant)
	case in.op == 0x8b && in.reg == stgSp && in.mod != 3:
		// Sp comes back from the thread's stack object: after a foreign
		// call as it was before, but where a thread is entered or an
		// exception caught, elsewhere.
		fallback := int32(-1)
		if b.group == 0 {
			fallback = b.off
		}
		*b = branch{addr: b.addr, group: a.newGroup(fallback), reloaded: true}
	case in.writes(stgSp):
		return true
	}
	return false
}

// frame sees an info pointer being stored at Sp + disp.
func (a *analyser) frame(b *branch, disp int32, addr uint64) {
	in := a.text.infoAt(addr)
	switch in.kind {
	case infoReturn:
		// The frame that the code returns to itself ends where the
		// caller's begins.
		a.solve(b, disp+int32(8*in.words), true)
	case infoUpdate:
		// The thunk's update frame is a frame like its caller's.
		a.solve(b, disp+int32(8*in.words), true)
		if b.group == 0 && b.off == disp+int32(8*in.words) {
			b.off = disp
		}
	}
}

// jump follows a direct jump, conditional or not. Code with an info table or a name is another
// procedure, which knows its own distance; the rest is part of this one.
func (a *analyser) jump(b *branch, to uint64) {
	if !a.text.contains(to) {
		return
	}
	in := a.text.infoAt(to)
	if in.kind == infoNone {
		if !a.names[to] {
			a.work = append(a.work, branch{addr: to, off: b.off, group: b.group})
		}
		return
	}
	a.entry(to)
	if in.kind == infoFun && in.words >= 0 && in.words <= argRegisters || in.kind == infoEntry {
		a.solve(b, 0, false)
	}
}

// writesReg0F: the opcode after 0F has a general register as destination in
// modrm's reg.
func (in *inst) writesReg0F() bool {
	return in.op >= 0x40 && in.op < 0x50 || in.op == 0xaf || in.op >= 0xb6 && in.op <= 0xbf && in.op != 0xba && in.op != 0xb9
}

// writes reports whether a one-byte-map instruction has the general register
// as its destination.
func (in *inst) writes(reg uint8) bool {
	toRM := in.mod == 3 && in.rm == reg
	toReg := in.reg == reg
	switch op := in.op; {
	case op < 0x40:
		if op >= 0x38 { // cmp
			return false
		}
		return op&7 < 2 && toRM || (op&7 == 2 || op&7 == 3) && toReg
	case op >= 0x58 && op < 0x60: // pop
		return toReg
	case op == 0x63, op == 0x69, op == 0x6b, op == 0x8a, op == 0x8b, op == 0x8d:
		return toReg
	case op == 0x80, op == 0x81, op == 0x83:
		return toRM && in.reg&7 != 7
	case op == 0x86, op == 0x87:
		return toRM || toReg
	case op == 0x88, op == 0x89, op == 0x8f, op == 0xc0, op == 0xc1, op == 0xc6, op == 0xc7, op >= 0xd0 && op <= 0xd3:
		return toRM
	case op >= 0x91 && op < 0x98, op >= 0xb0 && op < 0xc0:
		return toReg
	case op == 0xf6, op == 0xf7:
		return toRM && (in.reg&7 == 2 || in.reg&7 == 3)
	case op == 0xfe, op == 0xff:
		return toRM && in.reg&7 < 2
	}
	return false
}

// finish gives the rows in order, those of unsolved groups as ends.
func (a *analyser) finish() []codeRow {
	rows := a.rows[:0]
	for _, r := range a.rows {
		if g := &a.groups[r.group]; r.group != 0 {
			off, ok := g.distance()
			r.off += off
			r.end = r.end || !ok
		}
		rows = append(rows, r)
	}
	// Ends before starts at the same address, so that the start holds.
	sort.SliceStable(rows, func(i, j int) bool {
		if rows[i].addr != rows[j].addr {
			return rows[i].addr < rows[j].addr
		}
		return rows[i].end && !rows[j].end
	})
	return rows
}

// minCodeRows is how many rows code must give to be taken for Haskell where no
// frame information says so.
const minCodeRows = 64

// maxTable is how far apart two ranges may be for the bytes between to be an
// info table with its alignment.
const maxTable = 31

// overlay puts rows found in code over those of the frame sections. C's own
// frame information is never overruled.
func (c *compiler) overlay(base []absRow, code []codeRow) []absRow {
	if len(code) == 0 || c.stats.Haskell == 0 && len(code) < minCodeRows {
		return base
	}
	out := make([]absRow, 0, len(base)+len(code))
	var under, over uint32
	inCode := false
	for i, j := 0, 0; i < len(base) || j < len(code); {
		addr := uint64(math.MaxUint64)
		if i < len(base) {
			addr = base[i].addr
		}
		if j < len(code) {
			addr = min(addr, code[j].addr)
		}
		for ; i < len(base) && base[i].addr == addr; i++ {
			under = base[i].rule
		}
		for ; j < len(code) && code[j].addr == addr; j++ {
			r := &code[j]
			if r.end && j+1 < len(code) && !code[j+1].end && code[j+1].addr-addr <= maxTable {
				continue
			}
			inCode = !r.end
			if inCode {
				over = c.intern(Rule{Kind: KindHaskell, Reg: c.arch.stgSp, Offset: r.off})
			}
		}
		rule := under
		if k := c.rules[under].Kind; inCode && (k == KindNone || k == KindUnknown || k == KindHaskell || k == KindHaskellDeref) {
			rule = over
		}
		out = add(out, absRow{addr, rule})
	}
	return out
}
