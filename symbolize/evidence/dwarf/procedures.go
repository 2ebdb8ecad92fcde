package dwarf

import (
	"cmp"
	"context"
	"slices"
	"sort"

	"ccagent/symbolize/dwarfindex"
	"ccagent/symbolize/evidence"
)

// This file has what is known of code without source notes: the procedure that it is in, and
// the lines of GHC's line tables. Built with -g1 no code has notes.

// extent is the code of a procedure as far as it goes without another beginning. Up to GHC
// 9.0 a procedure's range in the debug information is its first block's, so code that no
// block covers belongs to the procedure that begins before it.
type extent struct {
	lo, hi uint64
	proc   dwarfindex.ProcID
}

// longest bounds the code of one procedure.
const longest = 1 << 20

// extents gives the code of all procedures of units that are one stretch, sorted. (Units of
// -split-sections are none; those GHCs give ranges of whole procedures.)
func (e *Evidence) extents() []extent {
	if e.extent != nil {
		return e.extent
	}
	e.extent = []extent{}
	for i := 1; i <= e.x.Procs(); i++ {
		p := e.x.Proc(dwarfindex.ProcID(i))
		lo := e.x.Start(p.ID)
		if u := e.x.Unit(p.Unit); p.Live && u.Lo <= lo && lo < u.Hi {
			e.extent = append(e.extent, extent{lo, min(u.Hi, lo+longest), p.ID})
		}
	}
	slices.SortFunc(e.extent, func(a, b extent) int { return cmp.Compare(a.lo, b.lo) })
	for i := range len(e.extent) - 1 {
		e.extent[i].hi = min(e.extent[i].hi, e.extent[i+1].lo)
	}
	return e.extent
}

// procAt gives the procedure whose code an address is in that no block covers; NoProc if a
// symbol begins in between.
func (e *Evidence) procAt(addr uint64) dwarfindex.ProcID {
	xs := e.extents()
	i := sort.Search(len(xs), func(i int) bool { return xs[i].lo > addr }) - 1
	if i < 0 || addr >= xs[i].hi || e.symbols.Begins(entryOf(xs[i].lo)+1, addr+1) {
		return dwarfindex.NoProc
	}
	return xs[i].proc
}

// hasNotes reports whether a block has source notes. Where a build has none, a block's only cause is where its
// procedure begins.
func (e *Evidence) hasNotes(id dwarfindex.BlockID) bool {
	e.causes = e.x.Causes(e.causes[:0], id)
	return len(e.causes) > 0 && e.x.Notated()
}

// unknown gives a stretch of addresses around one of which nothing is known here; an empty one where C
// code has lines, which are read for single addresses.
func (e *Evidence) unknown(addr uint64) dwarfindex.Range {
	if e.hasCLines {
		return dwarfindex.Range{}
	}
	r, xs := e.x.Around(addr), e.extents()
	next := sort.Search(len(xs), func(i int) bool { return xs[i].lo > addr })
	if next < len(xs) {
		r.Hi = min(r.Hi, xs[next].lo)
	}
	if next > 0 {
		if before := xs[next-1].hi; before <= addr {
			r.Lo = max(r.Lo, before)
		} else {
			r.Lo = addr // a symbol begins between the procedure before and here
		}
	}
	return r
}

// extentOf gives the code of a procedure.
func (e *Evidence) extentOf(p dwarfindex.ProcID) dwarfindex.Range {
	xs, lo := e.extents(), e.x.Start(p)
	i := sort.Search(len(xs), func(i int) bool { return xs[i].lo >= lo })
	if i < len(xs) && xs[i].lo == lo {
		return dwarfindex.Range{Lo: lo, Hi: xs[i].hi}
	}
	return dwarfindex.Range{Lo: lo, Hi: e.x.Block(e.x.Proc(p).Root).Hi}
}

// readHaskellLines finds the lines of addresses whose code has no source notes, and of the
// procedures that they are in.
func (e *Evidence) readHaskellLines(ctx context.Context, s dwarfindex.Sections, addrs []uint64) {
	var bare []uint64
	var ranges []dwarfindex.Range
	seen := map[dwarfindex.ProcID]bool{}
	for _, a := range addrs {
		id := e.x.Lookup(a)
		var p dwarfindex.ProcID
		if id == dwarfindex.NoBlock {
			p = e.procAt(a)
		} else if !e.hasNotes(id) {
			p = e.x.Block(id).Proc
		}
		if p == dwarfindex.NoProc {
			continue
		}
		bare = append(bare, a)
		if !seen[p] {
			seen[p] = true
			if r := e.extentOf(p); r.Lo < r.Hi {
				ranges = append(ranges, r)
			}
		}
	}
	if len(bare) == 0 {
		return
	}
	slices.SortFunc(ranges, func(a, b dwarfindex.Range) int { return cmp.Compare(a.Lo, b.Lo) })
	e.rows, e.firstRows = dwarfindex.HaskellRows(ctx, s, e.x, bare, ranges)
}

// haskellLine is Lines for Haskell code without notes.
func (e *Evidence) haskellLine(addr uint64) []evidence.Line {
	r, ok := e.rows[addr]
	if !ok {
		return nil
	}
	return []evidence.Line{{FileID: e.fileID(r.File), File: r.File, Line: r.Line}}
}

// near gives the first position in a procedure's code; the zero Position if it has none.
func (e *Evidence) near(p dwarfindex.ProcID) evidence.Position {
	r, ok := e.firstRows[e.x.Start(p)]
	if !ok {
		return evidence.Position{}
	}
	return evidence.Position{File: e.fileID(r.File), Line: r.Line, Col: r.Col}
}
