package profile

import (
	"cmp"
	"slices"
	"strings"

	"ccagent/eventlog"
)

// CoreID is the id of a Core, dense from 1 in the order of the log; 0 is none.
type CoreID uint32

// Core is what GHC's optimiser made of a top-level binding, as the build's
// -ddump-simpl wrote it.
type Core struct {
	Binding BindingID // the procedure
	File    FileID    // the source file of its module; 0 if unknown
	Name    string    // the binder as printed: "$wgo_r1H6"
	Dump    string    // the dump file
	Line    uint32    // where Text begins in it, from 1
	Text    []byte
	Problem string      // why it is cut, or may not be what was compiled
	also    []BindingID // lifted out of it
	notes   [2]uint32
	size    uint64 // promised
}

// CoreNote is a source note in a Core's text: At is the stretch of the text
// that it scopes over, in lines and columns from 1.
type CoreNote struct {
	Span SpanID
	At   Extent
}

// Cores is one more than the highest CoreID: 1 in a log without Core.
func (p *Profile) Cores() int { return len(p.symbols.cores) }

// Core gives a Core; the zero Core for 0.
func (p *Profile) Core(id CoreID) *Core { return &p.symbols.cores[id] }

// CoreNotes are a Core's notes, in the order of its text.
func (p *Profile) CoreNotes(id CoreID) []CoreNote {
	c := &p.symbols.cores[id]
	return p.symbols.coreNotes[c.notes[0]:c.notes[1]]
}

func (b *builder) core(ev *eventlog.Core) {
	s := &b.p.symbols
	if _, ok := b.cores.add(ev.ID); !ok {
		b.p.Accounting.Redefined++
		return
	}
	c := Core{Binding: BindingID(ev.Binding), File: FileID(ev.File), Name: ev.Name, Dump: ev.Dump, Line: ev.Line, Problem: ev.Problem, size: ev.TextSize}
	c.notes[0] = uint32(len(s.coreNotes))
	for _, n := range ev.Notes {
		s.coreNotes = append(s.coreNotes, CoreNote{SpanID(n.Span), Extent{n.Line, n.Col, n.EndLine, n.EndCol}})
	}
	c.notes[1] = uint32(len(s.coreNotes))
	for _, b := range ev.Also {
		c.also = append(c.also, BindingID(b))
	}
	s.cores = append(s.cores, c)
}

// coreText appends a piece of text, as fileText does.
func (b *builder) coreText(ev *eventlog.CoreText) {
	a := &b.p.Accounting
	id, ok := b.cores.find(ev.Core)
	if !ok {
		a.Undefined.Cores++
		return
	}
	c := &b.p.symbols.cores[id]
	b.appendText(&c.Text, c.size, ev.Offset, ev.Text)
}

func (b *builder) resolveCores() {
	s, u := &b.p.symbols, &b.p.Accounting.Undefined
	for i := 1; i < len(s.cores); i++ {
		c := &s.cores[i]
		c.Binding = resolve(&b.bindings, c.Binding, &u.Bindings)
		c.File = resolve(&b.files, c.File, &u.Files)
		for j := range c.also {
			c.also[j] = resolve(&b.bindings, c.also[j], &u.Bindings)
		}
		if uint64(len(c.Text)) < c.size && c.Problem == "" {
			c.Problem = "the log holds only a part of this text"
		}
	}
	for i := range s.coreNotes {
		s.coreNotes[i].Span = resolve(&b.spans, s.coreNotes[i].Span, &u.Spans)
	}
}

// maxNesting bounds the notes that are followed over the lines of a Core.
const maxNesting = 64

// coreSpots gives for each place where in the Core its code is.
type coreSpots struct {
	core  []CoreID  // by place; 0 if its code has none
	notes [][]int32 // by place: of the Core's notes the innermost that are causes; none is the whole binding
}

func (p *Profile) coreSpots() *coreSpots {
	p.coreTable.once.Do(func() { p.coreTable.spots = p.buildCoreSpots() })
	return p.coreTable.spots
}

func (p *Profile) buildCoreSpots() *coreSpots {
	s := &p.symbols
	byBinding := make(map[BindingID]CoreID, len(s.cores))
	for i := len(s.cores) - 1; i > 0; i-- {
		for _, b := range s.cores[i].also {
			byBinding[b] = CoreID(i)
		}
	}
	for i := len(s.cores) - 1; i > 0; i-- {
		byBinding[s.cores[i].Binding] = CoreID(i)
	}
	delete(byBinding, 0)
	spots := &coreSpots{make([]CoreID, len(p.places)), make([][]int32, len(p.places))}
	if len(byBinding) == 0 {
		return spots
	}
	for id := range p.places {
		l := &p.locs[id]
		if l.quality == eventlog.QualityNear {
			continue
		}
		bl := &s.blocks[l.block]
		core := byBinding[p.owner(uint32(id))]
		for _, e := range s.enclosing[bl.enclosing[0]:bl.enclosing[1]] {
			if core != 0 {
				break
			}
			core = byBinding[e]
		}
		if core == 0 {
			continue
		}
		spots.core[id] = core
		spots.notes[id] = innermostNotes(p.CoreNotes(core), s.causes[bl.causes[0]:bl.causes[1]])
	}
	return spots
}

// innermostNotes finds where in a Core a block's code is: at the notes that are
// its nearest causes there, and of nested ones at the innermost. A note that
// GHC copied with its expression is in several places.
func innermostNotes(notes []CoreNote, causes []Cause) []int32 {
	distance := make(map[SpanID]uint32, len(causes))
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
	ID   CoreID
	Core *Core
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
	Notes           []CoreNote
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
	b := &p.symbols.bindings[binding]
	name := bindingName(b)
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
	own := make(map[CoreID]int)
	for id := CoreID(1); int(id) < p.Cores(); id++ {
		own[id] = -1
		switch {
		case p.coreOf(id, e):
			own[id] = 1
		case slices.ContainsFunc(p.CoreNotes(id), func(n CoreNote) bool { return p.spanOf(n.Span, e) }):
			own[id] = 0
		}
	}
	spots := p.coreSpots()
	ix := s.index(e.Level)
	at := make(map[CoreID]*CoreBinding)
	for id := CoreID(1); int(id) < p.Cores(); id++ {
		if own[id] >= 0 {
			at[id] = p.coreBinding(id, e)
			at[id].Own = own[id] == 1
		}
	}
	for site, n := range s.count {
		leaf := s.leaf[site]
		if n == 0 || leaf == 0 || p.sites[site].Kernel {
			continue
		}
		place := p.nodes.place[leaf]
		b := at[spots.core[place]]
		if b == nil {
			continue
		}
		w := s.weight[site]
		b.Weight, b.Samples = satAdd(b.Weight, w), b.Samples+n
		if ids, _ := s.leafElements(ix, site); slices.Contains(ids, e.ID) {
			b.WithWeight = satAdd(b.WithWeight, w)
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
		l.Weight, l.Samples = satAdd(l.Weight, w), l.Samples+n
	}
	if last == 0 && len(b.Lines) > 0 {
		l := &b.Lines[0]
		l.Weight, l.Samples = satAdd(l.Weight, w), l.Samples+n
	}
}

func (p *Profile) coreBinding(id CoreID, e *Element) *CoreBinding {
	c := p.Core(id)
	bd := &p.symbols.bindings[c.Binding]
	b := &CoreBinding{ID: id, Core: c, Name: bindingName(bd), Detail: bd.Detail, Notes: p.CoreNotes(id)}
	if bd.Parent != 0 && b.Detail != "" {
		b.Detail += " " + bindingName(&p.symbols.bindings[bd.Parent])
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
func (b *CoreBinding) onlyNotes(x, y Extent) bool {
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
func (p *Profile) coreOf(id CoreID, e *Element) bool {
	c := p.Core(id)
	b := &p.symbols.bindings[c.Binding]
	switch {
	case e.Kind == KindCategory:
		return false
	case e.Level == LevelBinding:
		return e.Binding != 0 && b.Source == p.symbols.bindings[e.Binding].Source
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
func (p *Profile) spanOf(id SpanID, e *Element) bool {
	sp := &p.symbols.spans[id]
	b := &p.symbols.bindings[sp.Binding]
	switch {
	case id == 0 || e.Kind == KindCategory:
		return false
	case e.Level == LevelBinding:
		return sp.Binding != 0 && e.Binding != 0 && b.Source == p.symbols.bindings[e.Binding].Source
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
