package cfi

import (
	"encoding/binary"
	"slices"
	"sort"
)

// jumpTable is a case expression's: words in data, one for each alternative.
type jumpTable struct {
	addr     uint64
	relative bool // words count from the table (position-independent code)
	from     branch
}

// maxTableWords bounds one table. GHC splits larger ranges by comparisons.
const maxTableWords = 1 << 12

// jumpTable sees an indirect jump that does not go through Sp.
func (a *analyser) jumpTable(b *branch, in *inst, last loaded) {
	t := jumpTable{from: *b}
	switch {
	case in.mod == 3:
		// lea table(%rip),r; movslq (r,i,8),x; add x,r; jmp *r
		if last.reg != in.rm || last.age != 2 {
			return
		}
		t.addr, t.relative = last.v, true
	case in.mod == 0 && in.base == noReg && !in.ripRel, in.mod == 2:
		t.addr = uint64(int64(in.disp)) // jmp *table(,i,8) or *table(i)
	}
	if t.addr&7 == 0 && t.addr != 0 {
		a.tables = append(a.tables, t)
	}
}

// readTables takes up the targets of the tables seen by now. A table ends where
// the next one begins, or at the first word that does not point into its
// procedure. False: there were none.
func (a *analyser) readTables() bool {
	if len(a.tables) == 0 {
		return false
	}
	addrs := make([]uint64, len(a.tables))
	for i := range a.tables {
		addrs[i] = a.tables[i].addr
	}
	slices.Sort(addrs)
	for i := range a.tables {
		t := &a.tables[i]
		size := uint64(8 * maxTableWords)
		if n := sort.Search(len(addrs), func(i int) bool { return addrs[i] > t.addr }); n < len(addrs) {
			size = min(size, addrs[n]-t.addr)
		}
		lo, hi := a.procedure(t.from.addr)
		// A table for what does not begin at 0 is used from further on.
		begun := false
		table := a.text.f.ReadAddr(t.addr, size)
		a.limit -= len(table) / 8
		for b := table; len(b) >= 8 && a.limit > 0; b = b[8:] {
			to := binary.LittleEndian.Uint64(b)
			if t.relative {
				to = t.addr + uint64(int64(int32(to)))
			}
			if to <= lo || to >= hi {
				if begun {
					break
				}
				continue
			}
			begun = true
			if !a.entry(to) {
				a.work = append(a.work, branch{to, t.from.off, t.from.group})
			}
		}
	}
	a.tables = a.tables[:0]
	return true
}
