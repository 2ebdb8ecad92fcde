package cfi

import (
	"encoding/binary"
	"slices"
	"sort"

	"ccagent/internal/ghc"
	"ccagent/symbolize/elffile"
)

// PageBytes is how much code Pages works rows out of at a time.
const PageBytes = 16 << 10

// margin is the code around a page that is analysed with it. What enters a procedure lies in it or
// near it, but for what data and symbols point at.
const margin = 8 << 10

// Distances from Sp to the caller's frame, in words, that have rules from the start. Code with
// others gets no row. They are negative where a frame was stored that Sp does not hold yet.
const (
	leastOffset = -64
	mostOffset  = 1 << 10
)

// Pages compiles a file's call frame information by need: what the frame sections say at once,
// and rows for Haskell code a page at a time (doc.go, "Pages").
type Pages struct {
	c      *compiler
	base   []absRow // of the frame sections, in order
	table  *Table
	lo, hi uint64 // code

	prepared bool
	own      []span // C code, sorted
	haskell  []span // sorted
	updates  map[uint64]bool
	far      *farTables
	pointers bitSet   // words of code that data point at
	symbols  bitSet   // words of code where symbols are
	odd      []uint64 // symbols that are not at a word
}

// OpenPages reads the frame sections. Its errors are those of Compile, without ErrNone.
func OpenPages(f *elffile.File, limits Limits) (*Pages, error) {
	c, err := newCompiler(f, limits)
	if err != nil {
		return nil, err
	}
	p := &Pages{c: c}
	if p.lo, p.hi = c.analysable(); p.lo == p.hi {
		return nil, ErrNone
	}
	p.base = c.joined()
	if len(p.base) == 0 || p.base[0].addr > p.lo {
		p.base = slices.Insert(p.base, 0, absRow{p.lo, 0})
	}
	if p.base[len(p.base)-1].addr < p.hi {
		p.base = append(p.base, absRow{p.hi, 0}) // the table reaches up to there
	}
	for i := leastOffset; i <= mostOffset; i++ {
		c.intern(Rule{Kind: KindHaskell, Reg: c.arch.stgSp, Offset: int32(8 * i)})
	}
	c.rules = slices.Clip(c.rules)
	if p.table, err = c.table(p.base); err != nil {
		return nil, err
	}
	return p, nil
}

// Table returns the rows of the frame sections, and all rules. It is as long as the code.
func (p *Pages) Table() *Table { return p.table }

// Rows returns the rows of a page, those of the frame sections too, the first at its first
// address. There are none beyond the code.
func (p *Pages) Rows(page uint32) []Row {
	lo := p.table.Base + uint64(page)*PageBytes
	hi := min(lo+PageBytes, p.hi)
	if lo >= hi || hi <= p.lo {
		return nil
	}
	p.prepare()
	from, to := max(p.lo, lo-min(lo, margin)), min(p.hi, hi+margin)
	base := p.baseRows(min(lo, from), to)
	if a := p.c.newAnalyser(from, to); a != nil {
		a.skip, a.updates, a.text.far = p.own, p.updates, p.far
		p.each(p.symbols, from, to, a.symbol)
		first, _ := slices.BinarySearch(p.odd, from)
		for _, addr := range p.odd[first:] {
			if addr >= to {
				break
			}
			a.symbol(addr)
		}
		p.each(p.pointers, from, to, func(addr uint64) { a.entry(addr) })
		first = sort.Search(len(p.haskell), func(i int) bool { return p.haskell[i].lo >= from })
		end := first + sort.Search(len(p.haskell)-first, func(i int) bool { return p.haskell[first+i].lo >= to })
		a.boundaries()
		a.constants()
		p.c.follow(a, p.haskell[first:end])
		p.c.followRest(a, p.haskell[first:end])
		a.followNeighbours()
		base = p.c.overlay(base, from, a.finish())
	}
	rows := p.cut(base, lo, hi)
	for _, r := range p.c.rules[len(p.table.Rules):] { // no page refers to them
		delete(p.c.index, r)
	}
	p.c.rules = p.table.Rules
	return rows
}

// prepare finds what points at code. That is left until rows are asked for: most files whose
// frame sections were kept need none.
func (p *Pages) prepare() {
	if p.prepared {
		return
	}
	p.prepared = true
	c := p.c
	p.own, p.updates = c.ownFrames(), c.importedUpdateFrames()
	p.far = &farTables{lo: p.lo, hi: p.hi, known: map[uint64]info{}}
	for i := range c.spans {
		if c.spans[i].haskell {
			p.haskell = append(p.haskell, c.spans[i])
		}
	}
	words := int(p.hi-p.lo)/8 + 1
	p.pointers, p.symbols = newBitSet(words), newBitSet(words)
	codePointers(c.f, p.lo, p.hi, c.limits.Bytes, func(addr uint64) {
		if addr&7 == 0 { // where info tables are
			p.pointers.add((addr - p.lo&^7) / 8)
		}
	})
	_ = c.f.EachAddress(c.limits.Bytes, func(addr uint64) {
		switch {
		case addr < p.lo || addr >= p.hi:
		case addr&7 == 0:
			p.symbols.add((addr - p.lo&^7) / 8)
		default:
			p.odd = append(p.odd, addr)
		}
	})
	slices.Sort(p.odd)
}

// each passes the words of a set that lie in from … to.
func (p *Pages) each(set bitSet, from, to uint64, visit func(addr uint64)) {
	base := p.lo &^ 7 // of the first word
	set.each((from-base+7)/8, (to-base+7)/8, func(i uint64) { visit(base + 8*i) })
}

// baseRows returns the rows of the frame sections that hold in from … to, the first at from.
func (p *Pages) baseRows(from, to uint64) []absRow {
	first := sort.Search(len(p.base), func(i int) bool { return p.base[i].addr > from })
	end := sort.Search(len(p.base), func(i int) bool { return p.base[i].addr >= to })
	rows := []absRow{{addr: from}}
	if first > 0 {
		rows[0].rule = p.base[first-1].rule
	}
	return append(rows, p.base[first:max(first, end)]...)
}

// cut returns the rows that hold in lo … hi, as rows of the table.
func (p *Pages) cut(rows []absRow, lo, hi uint64) []Row {
	var out []Row
	for _, r := range rows {
		if r.addr >= hi {
			break
		}
		if int(r.rule) >= len(p.table.Rules) {
			r.rule = 0
		}
		row := Row{uint32(max(r.addr, lo) - p.table.Base), r.rule}
		n := len(out)
		switch {
		case n > 0 && out[n-1].Addr == row.Addr:
			out[n-1] = row
		case n == 0 || out[n-1].Rule != row.Rule:
			out = append(out, row)
		}
	}
	return out
}

// boundaries notes where procedures may begin that nothing here points at: a jump across one may
// leave its procedure. Tables of types whose layout shows nothing are left out: constants in
// code look like them.
func (a *analyser) boundaries() {
	for at := -a.text.base & 7; at < uint64(len(a.text.code)); at += 8 {
		if at < maxTableBytes {
			continue
		}
		switch a.text.infoAt(a.text.base + at).kind {
		case infoEntry:
			layout := binary.LittleEndian.Uint64(a.text.code[at-ghc.InfoLayout:])
			if layout>>32 > 1<<16 || layout&0xffffffff > 1<<16 {
				continue
			}
		case infoFun:
		default:
			continue
		}
		a.starts.add(at)
	}
}

// constants notes entries whose address is in an instruction, without knowing where instructions
// begin: four bytes that are the address of one, or the operand of a lea.
func (a *analyser) constants() {
	code, base := a.text.code, a.text.base
	for i := 0; i+4 <= len(code); i++ {
		n := binary.LittleEndian.Uint32(code[i:])
		if v := uint64(n); v-base < uint64(len(code)) {
			a.entry(v)
		}
		if i >= 3 && code[i-1]&0xc7 == 0x05 && code[i-2] == 0x8d && code[i-3]&0xf8 == 0x48 {
			a.entry(base + uint64(i) + 4 + uint64(int64(int32(n))))
		}
	}
}

// followNeighbours visits code that nothing here points at: what lies next after a procedure's
// last jump, with an info table between.
func (a *analyser) followNeighbours() {
	for i := 0; i < len(a.ends); i++ { // drain adds some
		if end := a.ends[i]; uint64(end) < uint64(len(a.text.code)) && !a.visited.has(uint64(end)) {
			a.neighbour(a.text.base + uint64(end))
			a.drain()
		}
	}
}

// neighbour notes the entry whose info table follows an address.
func (a *analyser) neighbour(end uint64) {
	const least = 16 // bytes of an info table
	first := (end + least + 7) &^ 7
	for addr := first; addr <= first+maxTableBytes; addr += 8 {
		if a.text.infoAt(addr).kind == infoNone {
			continue
		}
		// The words before a table's last may look like the end of one.
		if a.text.infoAt(addr+8).kind != infoNone {
			addr += 8
		}
		a.entry(addr)
		return
	}
}
