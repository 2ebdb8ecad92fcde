package cfi

import (
	"cmp"
	"debug/elf"
	"math"
	"math/bits"
	"slices"
	"sort"

	"ccagent/internal/ghc"
)

// Rows worked out of the code itself: see doc.go, "Rows from code".

// stgSp is rbp, as instructions number it.
const stgSp = 5

// Argument registers R2 to R6 hold the first words of a function's arguments;
// the others are on the stack.
const argRegisters = 5

// codeRow begins a range of code in which the caller's frame is off bytes above
// Sp. Rows of a group count from the group's start until it is solved. There are
// millions in large programs.
type codeRow struct {
	at    uint32 // offset in text
	off   int32
	group int32 // 0: off is absolute; endOfRange
}

// endOfRange, for a group: the row ends a range.
const endOfRange = -1

// branch is code to be visited.
type branch struct {
	addr  uint64
	off   int32
	group int32
}

// jump is a branch that is followed only if it stays in its procedure.
type jump struct {
	to, from uint32 // offsets in text
	off      int32
	group    int32
}

// analyser follows Haskell code from wherever it can be entered.
type analyser struct {
	text    text
	skip    []span // C code, sorted
	rows    []codeRow
	maxRows int
	groups  []group
	visited bitSet          // offsets in text where instructions begin
	seen    bitSet          // words of text: entries noted
	starts  *orderedSet     // offsets in text where procedures begin: not continuations
	names   []uint64        // symbols of what may be code without an info table
	ends    []uint32        // offsets in text of what follows a jump
	updates map[uint64]bool // places with the address of another module's update frame

	// To be visited, the earlier lists first.
	work    []branch
	entries []uint64
	jumps   [12][]jump // by distance
	tables  []jumpTable

	limit  int       // of instructions
	stored stackWord // the last constant that the code being followed has put on the stack
}

// stackWord is a constant on the stack.
type stackWord struct {
	group int32
	at    int32 // from the caller's frame, as far as the group knows it
	v     uint64
}

// analyse finds rows for the module's Haskell code, in order of address.
// Their offsets count from base.
func (c *compiler) analyse() (base uint64, rows []codeRow) {
	lo, hi := c.analysable()
	if lo == hi {
		return 0, nil
	}
	a := c.newAnalyser(lo, hi)
	if a == nil {
		return 0, nil
	}
	a.skip, a.updates = c.ownFrames(), c.importedUpdateFrames()
	_ = c.f.EachAddress(c.limits.Bytes, a.symbol)
	codePointers(c.f, lo, hi, c.limits.Bytes, func(addr uint64) { a.entry(addr) })
	c.follow(a, c.spans)
	if len(a.rows) < minCodeRows && c.stats.Haskell == 0 {
		return 0, nil // no Haskell
	}
	c.followRest(a, c.spans)
	return a.text.base, a.finish()
}

// analysable returns where Haskell code may be that rows can be worked out of; lo = hi if nowhere.
func (c *compiler) analysable() (lo, hi uint64) {
	if c.arch != amd64 || c.limits.Instructions == 0 {
		return 0, 0
	}
	if lo, hi = c.codeBounds(); lo >= hi || hi-lo > min(c.limits.Bytes, math.MaxUint32) {
		return 0, 0
	}
	return lo, hi
}

// newAnalyser makes an analyser of the code from lo to hi, nil if it is not in the file.
func (c *compiler) newAnalyser(lo, hi uint64) *analyser {
	code := c.f.ReadAddr(lo, hi-lo)
	if uint64(len(code)) != hi-lo {
		return nil
	}
	const usual = 12 // bytes of code a row; what is not used is not touched
	a := &analyser{text: text{base: lo, code: code, f: c.f}, groups: make([]group, 1), limit: c.limits.Instructions, maxRows: c.limits.Rows}
	a.rows = make([]codeRow, 0, min(len(code)/usual, a.maxRows))
	a.visited = newBitSet(len(code))
	a.seen = newBitSet(len(code) / 8)
	a.starts = newOrderedSet(len(code))
	return a
}

// ownFrames returns the ranges of C code, sorted.
func (c *compiler) ownFrames() []span {
	var own []span
	for i := range c.spans {
		if s := &c.spans[i]; !s.haskell && s.lo < s.hi {
			own = append(own, *s)
		}
	}
	sort.Slice(own, func(i, j int) bool { return own[i].lo < own[j].lo })
	return own
}

// symbol notes the address of a symbol.
func (a *analyser) symbol(addr uint64) {
	if a.text.contains(addr) && !a.entry(addr) && !a.inC(addr) {
		a.names = append(a.names, addr)
		a.starts.add(addr - a.text.base)
	}
}

// follow visits all code with an info table.
func (c *compiler) follow(a *analyser, spans []span) {
	for i := range spans {
		if s := &spans[i]; s.haskell {
			a.entry(s.lo)
			a.entry(s.lo + 1)
		}
	}
	a.drain()
}

// followRest visits procedures without an info table. Their distance comes from frame
// information, or else from their instructions.
func (c *compiler) followRest(a *analyser, spans []span) {
	for i := range spans {
		if s := &spans[i]; s.haskell && s.lo&7 == 0 && s.end > s.first {
			if r := c.rules[c.rows[s.first].rule]; r.Kind == KindHaskell && r.Reg == c.arch.stgSp {
				a.work = append(a.work, branch{addr: s.lo, off: r.Offset})
				a.drain()
			}
		}
	}
	slices.Sort(a.names)
	for _, addr := range a.names {
		a.work = append(a.work, branch{addr: addr, group: a.newGroup(-1)})
		a.drain()
	}
}

// importedUpdateFrames finds where the dynamic linker puts the addresses of the update
// frames that thunks push: in dynamically linked code they are the RTS library's.
func (c *compiler) importedUpdateFrames() map[uint64]bool {
	slots := map[uint64]bool{}
	_ = c.f.EachImport(uint32(elf.R_X86_64_GLOB_DAT), c.limits.Bytes, func(slot uint64, name string) {
		if name == ghc.UpdateFrameName+ghc.InfoSuffix || name == ghc.CAFUpdateFrameName+ghc.InfoSuffix {
			slots[slot] = true
		}
	})
	return slots
}

// codeBounds returns the largest executable segment, less what lies around its
// executable sections: linkers may put data there.
func (c *compiler) codeBounds() (lo, hi uint64) {
	for _, p := range c.f.Segments {
		if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && p.Filesz > hi-lo && p.Addr+p.Filesz > p.Addr {
			lo, hi = p.Addr, p.Addr+p.Filesz
		}
	}
	first, end := hi, lo
	for i := range c.f.Sections {
		s := &c.f.Sections[i]
		if s.Flags&elf.SHF_EXECINSTR != 0 && s.Addr >= lo && s.Addr < hi && s.Size <= hi-s.Addr {
			first, end = min(first, s.Addr), max(end, s.Addr+s.Size)
		}
	}
	if first < end {
		return first, end
	}
	return lo, hi
}

// inC reports whether addr is C code by its own frame information.
func (a *analyser) inC(addr uint64) bool {
	i := sort.Search(len(a.skip), func(i int) bool { return a.skip[i].lo > addr })
	return i > 0 && addr < a.skip[i-1].hi
}

// entry notes addr for visiting, if it is an info pointer.
func (a *analyser) entry(addr uint64) bool {
	if addr&7 != 0 || !a.text.contains(addr) {
		return false
	}
	at := addr - a.text.base
	if a.seen.has(at / 8) {
		return true
	}
	in := a.text.infoAt(addr)
	if in.kind == infoNone || a.inC(addr) {
		return false
	}
	a.seen.add(at / 8)
	a.entries = append(a.entries, addr)
	if in.kind != infoReturn {
		a.starts.add(at)
	}
	return true
}

// drain visits all that can be reached by now.
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
			a.enter(addr)
		case !a.follow():
			return
		}
	}
}

// enter visits the code of an info pointer.
func (a *analyser) enter(addr uint64) {
	b := branch{addr: addr}
	switch in := a.text.infoAt(addr); in.kind {
	case infoEntry:
	case infoReturn, infoUpdate:
		b.off = int32(8 * in.words)
	case infoFun:
		if in.words == unknownWords {
			b.group = a.newGroup(-1)
		} else if in.words > argRegisters {
			b.group = a.newGroup(int32(8 * (in.words - argRegisters)))
		}
	default:
		return
	}
	a.work = append(a.work, b)
}

// procedure returns the bounds of the procedure around addr, as far as entries
// are known.
func (a *analyser) procedure(addr uint64) (lo, hi uint64) {
	at := addr - a.text.base
	hi = uint64(len(a.text.code))
	if i, ok := a.starts.upTo(at); ok {
		lo = i
	}
	if i, ok := a.starts.after(at); ok {
		hi = i
	}
	return a.text.base + lo, a.text.base + hi
}

// later puts off a jump until all entries are known that can be.
func (a *analyser) later(j jump) {
	distance := max(j.to, j.from) - min(j.to, j.from)
	i := min(bits.Len32(distance>>10), len(a.jumps)-1)
	a.jumps[i] = append(a.jumps[i], j)
}

// follow takes up the jumps that stay in their procedure, near ones first: an
// entry between that is not known yet lies rather in a longer way. False: there
// are none.
func (a *analyser) follow() bool {
	for i := range a.jumps {
		if len(a.jumps[i]) == 0 {
			continue
		}
		for _, j := range a.jumps[i] {
			b := branch{a.text.base + uint64(j.to), j.off, j.group}
			if lo, hi := a.procedure(a.text.base + uint64(j.from)); b.addr > lo && b.addr < hi {
				a.work = append(a.work, b)
			}
		}
		a.jumps[i] = a.jumps[i][:0]
		return true
	}
	return a.readTables()
}

// offset is where in text an address lies, which it does.
func (a *analyser) offset(addr uint64) uint32 { return uint32(addr - a.text.base) }

// finish returns the rows in order, those of unsolved groups as ends.
func (a *analyser) finish() []codeRow {
	for i := range a.rows {
		r := &a.rows[i]
		if r.group > 0 {
			off, ok := a.groups[r.group].distance()
			r.off += off
			r.group = 0
			if !ok {
				r.group = endOfRange
			}
		}
	}
	return sortRows(a.rows)
}

// sortRows sorts rows by address, at the same address ends before starts, so that the start
// holds. It is a radix sort: there are millions.
func sortRows(rows []codeRow) []codeRow {
	const digit = 14 // two rounds for a quarter of a gigabyte of code
	last := uint32(0)
	for i := range rows {
		last = max(last, rows[i].at)
	}
	spare, from := make([]codeRow, len(rows)), make([]int, 1<<digit)
	for shift := 0; shift < 32 && last>>shift > 0; shift += digit {
		clear(from)
		for i := range rows {
			from[rows[i].at>>shift&(1<<digit-1)]++
		}
		next := 0
		for i, n := range from {
			from[i], next = next, next+n
		}
		for i := range rows {
			to := &from[rows[i].at>>shift&(1<<digit-1)]
			spare[*to] = rows[i]
			*to++
		}
		rows, spare = spare, rows
	}
	for i := 0; i < len(rows); {
		j := i + 1
		for j < len(rows) && rows[j].at == rows[i].at {
			j++
		}
		if j-i > 1 {
			slices.SortStableFunc(rows[i:j], func(x, y codeRow) int { return cmp.Compare(x.group, y.group) })
		}
		i = j
	}
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
func (c *compiler) overlay(base []absRow, text uint64, code []codeRow) []absRow {
	// A row at the very end of the code, as a crafted file may have, begins no range.
	for len(code) > 0 && code[len(code)-1].group != endOfRange {
		code = code[:len(code)-1]
	}
	if len(code) == 0 {
		return base
	}
	at := func(j int) uint64 { return text + uint64(code[j].at) }
	out := make([]absRow, 0, len(base)+len(code)/2) // many rows are alike
	var under, over uint32
	var usual [512]uint32 // of the rules of usual offsets, in words: 1 more than their number
	inCode := false
	for i, j := 0, 0; i < len(base) || j < len(code); {
		addr := uint64(math.MaxUint64)
		if i < len(base) {
			addr = base[i].addr
		}
		if j < len(code) {
			addr = min(addr, at(j))
		}
		for ; i < len(base) && base[i].addr == addr; i++ {
			under = base[i].rule
		}
		for ; j < len(code) && at(j) == addr; j++ {
			r := &code[j]
			end := r.group == endOfRange
			if end && j+1 < len(code) && code[j+1].group != endOfRange && at(j+1)-addr <= maxTable {
				continue
			}
			inCode = !end
			if inCode {
				slot := &usual[uint32(r.off)/8%uint32(len(usual))]
				if *slot == 0 || c.rules[*slot-1].Offset != r.off {
					*slot = 1 + c.intern(Rule{Kind: KindHaskell, Reg: c.arch.stgSp, Offset: r.off})
				}
				over = *slot - 1
			}
		}
		rule := under
		if inCode {
			switch c.rules[under].Kind {
			case KindNone, KindUnknown, KindHaskell, KindHaskellDeref:
				rule = over
			}
		}
		out = add(out, absRow{addr, rule})
	}
	return out
}
