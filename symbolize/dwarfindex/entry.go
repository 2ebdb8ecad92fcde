package dwarfindex

import "slices"

// positions takes from the unit's line program where each procedure's first
// block comes from.
func (b *builder) positions(info *Unit, firstProc int) {
	if !info.HasLines || firstProc == len(b.x.procs) {
		return
	}
	b.lines.reset()
	err := b.lines.read(b.s.Line, info.StmtList, b.s.Str, b.s.LineStr)
	if err != nil {
		b.x.problem("%v", err)
	}
	for i := firstProc; i < len(b.x.procs); i++ {
		lo := b.x.blocks[b.x.procs[i].root].lo
		row, ok := b.lines.at(lo)
		if !ok { // GHC ≥ 9.2 puts low_pc one byte before an info table's label
			row, ok = b.lines.at(lo + 1)
		}
		if ok {
			b.x.procs[i].pos = Position{File: b.file(b.lines.file(row.file)), Line: row.line, Col: row.col}
		}
	}
}

// entryNotes gives each procedure's first block the note whose beginning its
// line-table position is. Candidates are, in this order, the notes of the
// procedure's other blocks (GHC writes the notes of a tick scope to each of the
// scope's blocks but the procedure's first), and those of all blocks. Of
// several that begin there the widest is taken: it is a cause in any case.
//
// Where the first of the other blocks has that note, it is in the entry's own
// tick scope, and all its notes are the entry's. A procedure without notes of
// its own has its position from the scope around it; it inherits by its tick
// parent and needs no note. Those of units that have none at all, as GHC's -g1
// makes, get none: their code has lines.
func (b *builder) entryNotes() {
	x := b.x
	starts := b.spansByStart()
	var causes []Cause
	for i := 1; i < len(x.procs); i++ {
		p := &x.procs[i]
		root := &x.blocks[p.root]
		if p.pos.Line == 0 || root.note != 0 || !b.noted[p.unit] {
			continue
		}
		best, from := uint32(0), NoBlock
		first := p.root + 1
		if int(first) < len(x.blocks) && x.blocks[first].parent == p.root {
			for n := x.blocks[first].note; n != 0; n = x.notes[n].next {
				if s := x.notes[n].span; x.begins(s, p.pos) && (best == 0 || x.wider(s, best)) {
					best, from = s, first
				}
			}
		}
		if from == NoBlock && p.tickParent != NoBlock {
			causes = x.Causes(causes[:0], p.tickParent)
			if slices.ContainsFunc(causes, func(c Cause) bool { return x.begins(c.Span, p.pos) }) {
				continue
			}
		}
		for _, s := range starts.at(x, p.pos) {
			if best == 0 || x.wider(s, best) {
				best, from = s, NoBlock
			}
		}
		switch {
		case from != NoBlock:
			root.note = x.blocks[from].note // chains are never changed: sharing is safe
		case best != 0:
			x.notes = append(x.notes, note{span: best})
			root.note = uint32(len(x.notes) - 1)
		default:
			// No block carries the note: its beginning is all that is known.
			s := Span{File: p.pos.File, Line: p.pos.Line, Col: p.pos.Col, EndLine: p.pos.Line, EndCol: p.pos.Col}
			id := b.span(s)
			x.notes = append(x.notes, note{span: id})
			root.note = uint32(len(x.notes) - 1)
		}
	}
}

func (x *Index) begins(span uint32, p Position) bool {
	s := &x.spans[span]
	return s.File == p.File && s.Line == p.Line && s.Col == p.Col
}

// wider compares spans that begin at one place.
func (x *Index) wider(p, q uint32) bool {
	a, b := &x.spans[p], &x.spans[q]
	return a.EndLine > b.EndLine || a.EndLine == b.EndLine && a.EndCol > b.EndCol
}

// startOrder lists span ids by file, line and column.
type startOrder []uint32

func (b *builder) spansByStart() startOrder {
	x := b.x
	order := make(startOrder, 0, len(x.spans))
	for i := 1; i < len(x.spans); i++ {
		order = append(order, uint32(i))
	}
	slices.SortFunc(order, func(p, q uint32) int {
		return comparePosition(x.spans[p].start(), x.spans[q].start())
	})
	return order
}

func (s Span) start() Position { return Position{s.File, s.Line, s.Col} }

func comparePosition(a, b Position) int {
	for _, d := range [...]int64{int64(a.File) - int64(b.File), int64(a.Line) - int64(b.Line), int64(a.Col) - int64(b.Col)} {
		if d < 0 {
			return -1
		}
		if d > 0 {
			return 1
		}
	}
	return 0
}

// at is the run of spans that begin at p.
func (o startOrder) at(x *Index, p Position) []uint32 {
	i, _ := slices.BinarySearchFunc(o, p, func(s uint32, p Position) int { return comparePosition(x.spans[s].start(), p) })
	j := i
	for j < len(o) && comparePosition(x.spans[o[j]].start(), p) == 0 {
		j++
	}
	return o[i:j]
}
