package dwarfindex

import (
	"bytes"
	"context"
	"sort"
)

// Row is a position in GHC's line table.
type Row struct {
	File string // as CleanPath gives it
	Line uint32
	Col  uint32
}

// Range is a stretch of code.
type Range struct{ Lo, Hi uint64 }

// HaskellRows finds in the line tables of GHC's units the rows that cover addresses, and the
// first row of each of some stretches of code, by where these begin. Both are sorted by
// address. GHC writes a row where the best note of the code changes; code without a note
// has none, and goes by the row before it in the same stretch.
func HaskellRows(ctx context.Context, s Sections, x *Index, addrs []uint64, ranges []Range) (at, first map[uint64]Row) {
	at, first = map[uint64]Row{}, map[uint64]Row{}
	var t lineTable
	spent := 0
	for i := range x.units {
		u := &x.units[i]
		if !u.Haskell || !u.HasLines || ctx.Err() != nil || spent > placesBudget {
			continue
		}
		if u.Hi > u.Lo {
			a := sort.Search(len(addrs), func(k int) bool { return addrs[k] >= u.Lo })
			r := sort.Search(len(ranges), func(k int) bool { return ranges[k].Lo >= u.Lo })
			if (a == len(addrs) || addrs[a] >= u.Hi) && (r == len(ranges) || ranges[r].Lo >= u.Hi) {
				continue
			}
		}
		t.reset()
		_ = t.read(s.Line, u.StmtList, s.Str, s.LineStr) // the index has reported what is malformed
		spent += 32 * (len(t.rows) + 1)
		if len(t.rows) == 0 {
			continue
		}
		lo, hi := t.rows[0].addr, t.rows[len(t.rows)-1].addr
		for k := sort.Search(len(addrs), func(k int) bool { return addrs[k] >= lo }); k < len(addrs) && addrs[k] < hi; k++ {
			if row, ok := t.covering(addrs[k]); ok && row.line != 0 {
				put(at, addrs[k], &t, row)
			}
		}
		for k := sort.Search(len(ranges), func(k int) bool { return ranges[k].Hi > lo }); k < len(ranges) && ranges[k].Lo < hi; k++ {
			j := sort.Search(len(t.rows), func(j int) bool { return t.rows[j].addr >= ranges[k].Lo })
			for ; j < len(t.rows) && t.rows[j].addr < ranges[k].Hi; j++ {
				if row := t.rows[j]; !row.end && row.line != 0 {
					put(first, ranges[k].Lo, &t, row)
					break
				}
			}
		}
	}
	return at, first
}

func put(m map[uint64]Row, addr uint64, t *lineTable, row lineRow) {
	name := t.file(row.file)
	if _, known := m[addr]; known || len(name) == 0 || bytes.IndexByte(name, 0) >= 0 {
		return
	}
	m[addr] = Row{File: CleanPath(string(name)), Line: row.line, Col: row.col}
}
