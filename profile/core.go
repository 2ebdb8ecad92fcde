package profile

import (
	"cmp"
	"slices"
	"strings"

	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// maxNesting bounds the notes that are followed over the lines of a Core.
const maxNesting = 64

// coreSpots gives for each place where in the Core its code is.
type coreSpots struct {
	core  []columns.CoreID // by place; 0 if its code has none
	notes [][]int32        // by place: of the Core's notes the innermost that are causes; none is the whole binding
}

func (p *Profile) coreSpots() *coreSpots {
	p.coreTable.once.Do(func() { p.coreTable.spots = p.buildCoreSpots() })
	return p.coreTable.spots
}

func (p *Profile) buildCoreSpots() *coreSpots {
	s := &p.Symbols
	byBinding := make(map[columns.BindingID]columns.CoreID, len(s.Cores))
	for i := len(s.Cores) - 1; i > 0; i-- {
		for _, b := range s.Cores[i].Also {
			byBinding[b] = columns.CoreID(i)
		}
	}
	for i := len(s.Cores) - 1; i > 0; i-- {
		byBinding[s.Cores[i].Binding] = columns.CoreID(i)
	}
	delete(byBinding, 0)
	spots := &coreSpots{make([]columns.CoreID, len(p.Places)), make([][]int32, len(p.Places))}
	if len(byBinding) == 0 {
		return spots
	}
	for id := range p.Places {
		l := &p.Locations[id]
		if l.Quality == eventlog.QualityNear {
			continue
		}
		bl := &s.Blocks[l.Block]
		core := byBinding[p.Owner(uint32(id))]
		for _, e := range s.Enclosing(bl) {
			if core != 0 {
				break
			}
			core = byBinding[e]
		}
		if core == 0 {
			continue
		}
		spots.core[id] = core
		spots.notes[id] = innermostNotes(p.CoreNotes(core), s.Causes(bl))
	}
	return spots
}

// innermostNotes finds where in a Core a block's code is: at the notes that are
// its nearest causes there, and of nested ones at the innermost. A note that
// GHC copied with its expression is in several places.
func innermostNotes(notes []columns.CoreNote, causes []columns.Cause) []int32 {
	distance := make(map[columns.SpanID]uint32, len(causes))
	for _, c := range causes {
		if d, ok := distance[c.Span]; c.Span != 0 && (!ok || c.Distance < d) {
			distance[c.Span] = c.Distance
		}
	}
	nearest := ^uint32(0)
	for _, n := range notes {
		if d, ok := distance[n.Span]; ok && d < nearest {
			nearest = d
		}
	}
	var at []int32
	for i, n := range notes {
		if d, ok := distance[n.Span]; !ok || d != nearest {
			continue
		}
		// Notes are in the order of the text: one that holds this one came before.
		for len(at) > 0 && notes[at[len(at)-1]].At.Contains(n.At) {
			at = at[:len(at)-1]
		}
		at = append(at, int32(i))
	}
	return at
}

// CoreView is the Core of an element with a selection's costs.
type CoreView struct {
	Element  *Element
	Bindings []CoreBinding // by the weight they share with the element
	// Problem says why there is none, in words with what to do; empty otherwise.
	Problem string
}

// CoreBinding is a top-level binding of Core.
type CoreBinding struct {
	ID   columns.CoreID
	Core *columns.Core
	// Name is the procedure as elements are named, "Main.$wgo"; Detail what GHC
	// made of which binding, "worker of Main.go".
	Name, Detail string
	// Own is set where the binding was made from the element itself, and not
	// only holds code that was inlined from there.
	Own bool
	// Weight, Share and Samples are of the samples whose code is in this
	// binding; no sample is in two. With are those that have the element as a
	// cause too.
	Weight, Samples uint64
	Share           float64
	WithWeight      uint64
	With            float64
	Lines           []CoreLine
	Notes           []columns.CoreNote
}

// CoreLine is a line of Core. A sample is at the line on which the expression
// of its nearest note begins; on the first line if none of its notes is in the
// text; and on several where GHC copied the expression.
type CoreLine struct {
	Number  uint32 // in the text, from 1
	Text    string // without the line's end
	Weight  uint64
	Share   float64 // of the selection's total
	Samples uint64
	// Notes that scope over the line's beginning, innermost last, or begin on
	// it, as indices of CoreBinding.Notes.
	Notes []int
	// Of is set where an innermost note of the line is the element's own.
	Of bool
}

// CoreOf gives the Core of what a query names: see [Profile.Lookup]. The error
// is a *LookupError.
func (s *Selection) CoreOf(query string) (*CoreView, error) {
	p := s.Profile
	file, binding, err := p.Lookup(query)
	if err != nil {
		return nil, err
	}
	if binding == 0 {
		f := p.File(file)
		e := p.elementWith(LevelFile, func(e *Element) bool { return e.FileID == file })
		if e == nil {
			e = &Element{Level: LevelFile, Name: f.Path, File: f.Path, FileID: file}
		}
		return s.Core(e), nil
	}
	b := &p.Symbols.Bindings[binding]
	name := b.QualifiedName()
	e := p.elementWith(LevelBinding, func(e *Element) bool {
		return e.Kind == KindSource && e.Name == name && e.Package == b.Package
	})
	if e == nil {
		e = &Element{Level: LevelBinding, Name: name, Module: b.Module, Package: b.Package, Binding: binding}
	}
	return s.Core(e), nil
}

func (p *Profile) elementWith(level Level, is func(*Element) bool) *Element {
	es := p.Elements(level)
	if i := slices.IndexFunc(es, func(e Element) bool { return is(&e) }); i >= 0 {
		return &es[i]
	}
	return nil
}

// Core gives the Core that an element's code is in. An element whose code has
// no Core in the log gets a Problem.
func (s *Selection) Core(e *Element) *CoreView {
	p := s.Profile
	v := &CoreView{Element: e}
	if p.Cores() == 1 {
		v.Problem = "the log holds no Core: build with -g3 -ddump-simpl -ddump-to-file -dsuppress-all -dno-suppress-ticks, keep the .dump-simpl files where they are written, and record again"
		return v
	}
	own := make(map[columns.CoreID]int)
	for id := columns.CoreID(1); int(id) < p.Cores(); id++ {
		own[id] = -1
		switch {
		case p.coreOf(id, e):
			own[id] = 1
		case slices.ContainsFunc(p.CoreNotes(id), func(n columns.CoreNote) bool { return p.spanOf(n.Span, e) }):
			own[id] = 0
		}
	}
	spots := p.coreSpots()
	ix := s.index(e.Level)
	at := make(map[columns.CoreID]*CoreBinding)
	for id := columns.CoreID(1); int(id) < p.Cores(); id++ {
		if own[id] >= 0 {
			at[id] = p.coreBinding(id, e)
			at[id].Own = own[id] == 1
		}
	}
	for site, n := range s.Count {
		leaf := s.Leaf[site]
		if n == 0 || leaf == 0 || p.Sites[site].Kernel {
			continue
		}
		place := p.Nodes.Place[leaf]
		b := at[spots.core[place]]
		if b == nil {
			continue
		}
		w := s.Weight[site]
		b.Weight, b.Samples = columns.SatAdd(b.Weight, w), b.Samples+n
		if ids, _ := s.leafElements(ix, site); slices.Contains(ids, e.ID) {
			b.WithWeight = columns.SatAdd(b.WithWeight, w)
		}
		b.add(spots.notes[place], w, n)
	}
	for _, b := range at {
		b.Share, b.With = s.Fraction(b.Weight), s.Fraction(b.WithWeight)
		for i := range b.Lines {
			b.Lines[i].Share = s.Fraction(b.Lines[i].Weight)
		}
		if b.Own || b.WithWeight > 0 {
			v.Bindings = append(v.Bindings, *b)
		}
	}
	slices.SortFunc(v.Bindings, func(a, b CoreBinding) int {
		return cmp.Or(cmp.Compare(b.WithWeight, a.WithWeight), cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.ID, b.ID))
	})
	if len(v.Bindings) == 0 {
		v.Problem = "the log holds no Core of this element's code: its module was built without -ddump-simpl, or its dump was not found"
	}
	return v
}

// add puts samples on the lines of their notes, each line once.
func (b *CoreBinding) add(notes []int32, w, n uint64) {
	last := uint32(0)
	for _, i := range notes {
		line := b.Notes[i].At.Line
		if line == last || line == 0 || int(line) > len(b.Lines) {
			continue
		}
		last = line
		l := &b.Lines[line-1]
		l.Weight, l.Samples = columns.SatAdd(l.Weight, w), l.Samples+n
	}
	if last == 0 && len(b.Lines) > 0 {
		l := &b.Lines[0]
		l.Weight, l.Samples = columns.SatAdd(l.Weight, w), l.Samples+n
	}
}

func (p *Profile) coreBinding(id columns.CoreID, e *Element) *CoreBinding {
	c := p.Core(id)
	bd := &p.Symbols.Bindings[c.Binding]
	b := &CoreBinding{ID: id, Core: c, Name: bd.QualifiedName(), Detail: bd.Detail, Notes: p.CoreNotes(id)}
	if bd.Parent != 0 && b.Detail != "" {
		b.Detail += " " + p.Symbols.Bindings[bd.Parent].QualifiedName()
	}
	for _, l := range lines(c.Text, nil, nil) {
		b.Lines = append(b.Lines, CoreLine{Number: l.Number, Text: l.Text})
	}
	// Lines in force are found in one pass, since notes are in the text's order.
	var open []int
	next := 0
	group := b.groups()
	of := make([]bool, len(b.Notes)) // by group: whether one of its notes is the element's
	for i, n := range b.Notes {
		of[group[i]] = of[group[i]] || p.spanOf(n.Span, e)
	}
	for i := range b.Lines {
		n := b.Lines[i].Number
		for len(open) > 0 && b.Notes[open[len(open)-1]].At.EndLine < n {
			open = open[:len(open)-1]
		}
		l := &b.Lines[i]
		l.Notes = append(l.Notes, open...)
		for ; next < len(b.Notes) && b.Notes[next].At.Line <= n; next++ {
			at := b.Notes[next].At
			l.Notes = append(l.Notes, next)
			for len(open) > 0 && !b.Notes[open[len(open)-1]].At.Contains(at) {
				open = open[:len(open)-1]
			}
			if at.EndLine > n && len(open) < maxNesting {
				open = append(open, next)
			}
		}
		inner := l.Notes
		if k := slices.IndexFunc(inner, func(j int) bool { return b.Notes[j].At.Line == n }); k >= 0 {
			inner = inner[k:]
		} else if len(inner) > 0 {
			inner = inner[len(inner)-1:]
		}
		l.Of = slices.ContainsFunc(inner, func(j int) bool { return of[group[j]] })
	}
	return b
}

// groups gives for each note the first of those that scope over the same
// expression: "src<…> src<…> e".
func (b *CoreBinding) groups() []int {
	out := make([]int, len(b.Notes))
	for i := range b.Notes {
		out[i] = i
		if i == 0 {
			continue
		}
		x, y := b.Notes[i-1].At, b.Notes[i].At
		if x.EndLine == y.EndLine && x.EndCol == y.EndCol && b.onlyNotes(x, y) {
			out[i] = out[i-1]
		}
	}
	return out
}

// maxNoteLines bounds the lines that a row of notes takes.
const maxNoteLines = 32

// onlyNotes reports whether nothing but notes stands between the beginnings of
// two stretches.
func (b *CoreBinding) onlyNotes(x, y columns.Extent) bool {
	if x.Line == 0 || y.Line < x.Line || y.Line-x.Line > maxNoteLines || int(y.Line) > len(b.Lines) {
		return false
	}
	for n := x.Line; n <= y.Line; n++ {
		text := []rune(b.Lines[n-1].Text)
		if n == y.Line {
			text = text[:min(len(text), int(max(y.Col, 1))-1)]
		}
		if n == x.Line {
			text = text[min(len(text), int(max(x.Col, 1))-1):]
		}
		for _, word := range strings.Fields(string(text)) {
			if !strings.HasPrefix(word, "src<") || !strings.HasSuffix(word, ">") {
				return false
			}
		}
	}
	return true
}

// coreOf reports whether a Core was made from an element.
func (p *Profile) coreOf(id columns.CoreID, e *Element) bool {
	c := p.Core(id)
	b := &p.Symbols.Bindings[c.Binding]
	switch {
	case e.Kind == KindCategory:
		return false
	case e.Level == LevelBinding:
		return e.Binding != 0 && b.Source == p.Symbols.Bindings[e.Binding].Source
	case e.Level == LevelFile:
		return c.File != 0 && c.File == e.FileID
	case e.Level == LevelModule:
		return b.Module == e.Module && b.Package == e.Package
	case e.Level == LevelPackage:
		return b.Package == e.Package
	}
	return false
}

// spanOf reports whether a span belongs to an element.
func (p *Profile) spanOf(id columns.SpanID, e *Element) bool {
	sp := &p.Symbols.Spans[id]
	b := &p.Symbols.Bindings[sp.Binding]
	switch {
	case id == 0 || e.Kind == KindCategory:
		return false
	case e.Level == LevelBinding:
		return sp.Binding != 0 && e.Binding != 0 && b.Source == p.Symbols.Bindings[e.Binding].Source
	case e.Level == LevelFile:
		return sp.File == e.FileID
	case e.Level == LevelLine:
		return sp.File == e.FileID && sp.Line == e.Span.Line
	case e.Level == LevelSpan:
		return sp.File == e.FileID && sp.Extent == e.Span
	case e.Level == LevelModule:
		return b.Module == e.Module && b.Package == e.Package
	}
	return b.Package == e.Package
}
