package source

import (
	"cmp"
	"slices"
	"strings"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// maxNesting bounds the number of nested notes that are tracked over a Core's lines.
const maxNesting = 64

// cores maps each binding to the Core that contains its code.
type cores map[columns.BindingID]columns.CoreID

func coresOf(l *columns.Log) cores {
	of := make(cores, l.Cores())
	all := l.Symbols.Cores
	for i := len(all) - 1; i > 0; i-- {
		for _, b := range all[i].Also {
			of[b] = columns.CoreID(i)
		}
	}
	for i := len(all) - 1; i > 0; i-- {
		of[all[i].Binding] = columns.CoreID(i)
	}
	delete(of, 0)
	return of
}

// at returns the Core that contains a place's code; 0 if there is none.
func (c cores) at(l *columns.Log, place uint32) columns.CoreID {
	at := &l.Locations[place]
	if at.Quality == eventlog.QualityNear {
		return 0
	}
	core := c[l.Owner(place)]
	for _, e := range l.Symbols.Enclosing(&l.Symbols.Blocks[at.Block]) {
		if core != 0 {
			break
		}
		core = c[e]
	}
	return core
}

// innermostNotes returns the position of a block's code in a Core: the notes that are its
// nearest causes, and of nested notes the innermost. A note that GHC copied with its
// expression is in several positions.
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
		// Notes are in the order of the text: an enclosing note came earlier.
		for len(at) > 0 && notes[at[len(at)-1]].At.Contains(n.At) {
			at = at[:len(at)-1]
		}
		at = append(at, int32(i))
	}
	return at
}

// CoreView is the Core of an element, with a selection's costs.
type CoreView struct {
	Element  *profile.Element
	Bindings []CoreBinding // ordered by the weight they share with the element
	// Problem says why there is no Core, and what to do about it; empty otherwise.
	Problem string
}

// CoreBinding is a top-level binding of Core.
type CoreBinding struct {
	ID   columns.CoreID
	Core *columns.Core
	// Name is the procedure's name as shown for elements, "Main.$wgo"; Detail is how
	// GHC derived it, and from which binding: "worker of Main.go".
	Name, Detail string
	// Own is set if the binding was derived from the element itself. Otherwise it
	// only contains code that was inlined from there.
	Own bool
	// Weight, Share and Samples count the samples in this binding's code; each sample
	// is in one binding. With counts those that also have the element as a cause.
	Weight, Samples uint64
	Share           float64
	WithWeight      uint64
	With            float64
	Lines           []CoreLine
	Notes           []columns.CoreNote
}

// CoreLine is a line of Core. A sample counts on the line on which the expression of its
// nearest note begins, on the first line if the text has none of its notes, and on
// several lines if GHC copied the expression.
type CoreLine struct {
	Number  uint32 // in the text, from 1
	Text    string // without the line's end
	Weight  uint64
	Share   float64 // of the selection's total
	Samples uint64
	// Notes are the notes that apply at the line's start, innermost last, or begin on
	// it, as indices of CoreBinding.Notes.
	Notes []int
	// Of is set if an innermost note of the line belongs to the element.
	Of bool
}

// FindCore returns the Core for a query, as lookup resolves it. The error is a
// *LookupError.
func FindCore(s *profile.Selection, query string) (*CoreView, error) {
	p := s.Profile
	file, binding, err := lookup(p, query)
	if err != nil {
		return nil, err
	}
	if binding == 0 {
		f := p.File(file)
		e := elementWith(p, profile.LevelFile, func(e *profile.Element) bool { return e.FileID == file })
		if e == nil {
			e = &profile.Element{Level: profile.LevelFile, Name: f.Path, File: f.Path, FileID: file}
		}
		return CoreOf(s, e), nil
	}
	b := &p.Symbols.Bindings[binding]
	name := b.QualifiedName()
	e := elementWith(p, profile.LevelBinding, func(e *profile.Element) bool {
		return e.Kind == profile.KindSource && e.Name == name && e.Package == b.Package
	})
	if e == nil {
		e = &profile.Element{Level: profile.LevelBinding, Name: name, Module: b.Module, Package: b.Package, Binding: binding}
	}
	return CoreOf(s, e), nil
}

func elementWith(p *profile.Profile, level profile.Level, is func(*profile.Element) bool) *profile.Element {
	es := p.Elements(level)
	if i := slices.IndexFunc(es, func(e profile.Element) bool { return is(&e) }); i >= 0 {
		return &es[i]
	}
	return nil
}

// CoreOf returns the Core that contains an element's code. If the log has no Core for the
// element, Problem is set.
func CoreOf(s *profile.Selection, e *profile.Element) *CoreView {
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
		case madeFrom(p, id, e):
			own[id] = 1
		case slices.ContainsFunc(p.CoreNotes(id), func(n columns.CoreNote) bool { return spanOf(p, n.Span, e) }):
			own[id] = 0
		}
	}
	cores := coresOf(p.Log)
	spots := make(map[uint32][]int32) // by place: the innermost notes that are causes; none means the whole binding
	at := make(map[columns.CoreID]*CoreBinding)
	for id := columns.CoreID(1); int(id) < p.Cores(); id++ {
		if own[id] >= 0 {
			at[id] = coreBinding(p, id, e)
			at[id].Own = own[id] == 1
		}
	}
	for site, n := range s.Count {
		leaf := s.Leaf[site]
		if n == 0 || leaf == 0 || p.Sites[site].Kernel {
			continue
		}
		place := p.Nodes.Place[leaf]
		core := cores.at(p.Log, place)
		b := at[core]
		if b == nil {
			continue
		}
		notes, known := spots[place]
		if !known {
			notes = innermostNotes(p.CoreNotes(core), p.Symbols.Causes(&p.Symbols.Blocks[p.Locations[place].Block]))
			spots[place] = notes
		}
		w := s.Weight[site]
		b.Weight, b.Samples = columns.SatAdd(b.Weight, w), b.Samples+n
		if slices.Contains(s.LeafElements(e.Level, site), e.ID) {
			b.WithWeight = columns.SatAdd(b.WithWeight, w)
		}
		b.add(notes, w, n)
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

// add adds samples to the lines of their notes, once to each line.
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

func coreBinding(p *profile.Profile, id columns.CoreID, e *profile.Element) *CoreBinding {
	c := p.Core(id)
	bd := &p.Symbols.Bindings[c.Binding]
	b := &CoreBinding{ID: id, Core: c, Name: bd.QualifiedName(), Detail: bd.Detail, Notes: p.CoreNotes(id)}
	if bd.Parent != 0 && b.Detail != "" {
		b.Detail += " " + p.Symbols.Bindings[bd.Parent].QualifiedName()
	}
	for _, l := range lines(c.Text, nil, nil) {
		b.Lines = append(b.Lines, CoreLine{Number: l.Number, Text: l.Text})
	}
	// One pass finds the notes that apply to each line, because notes are in the
	// text's order.
	var open []int
	next := 0
	group := b.groups()
	of := make([]bool, len(b.Notes)) // by group: whether one of its notes is the element's
	for i, n := range b.Notes {
		of[group[i]] = of[group[i]] || spanOf(p, n.Span, e)
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

// groups returns for each note the first of the notes that apply to the same expression:
// "src<…> src<…> e".
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

// maxNoteLines bounds the number of lines that a sequence of notes can take.
const maxNoteLines = 32

// onlyNotes reports whether there are only notes between the beginnings of two extents.
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

// madeFrom reports whether a Core was derived from an element.
func madeFrom(p *profile.Profile, id columns.CoreID, e *profile.Element) bool {
	c := p.Core(id)
	b := &p.Symbols.Bindings[c.Binding]
	switch {
	case e.Kind == profile.KindCategory || e.Kind == profile.KindNoFile:
		return false
	case e.Level == profile.LevelBinding:
		return e.Binding != 0 && b.Source == p.Symbols.Bindings[e.Binding].Source
	case e.Level == profile.LevelFile:
		return c.File != 0 && c.File == e.FileID
	case e.Level == profile.LevelModule:
		return b.Module == e.Module && b.Package == e.Package
	case e.Level == profile.LevelPackage:
		return b.Package == e.Package
	}
	return false
}

// spanOf reports whether a span belongs to an element.
func spanOf(p *profile.Profile, id columns.SpanID, e *profile.Element) bool {
	sp := &p.Symbols.Spans[id]
	b := &p.Symbols.Bindings[sp.Binding]
	switch {
	case id == 0 || e.Kind == profile.KindCategory || e.Kind == profile.KindNoFile:
		return false
	case e.Level == profile.LevelBinding:
		return sp.Binding != 0 && e.Binding != 0 && b.Source == p.Symbols.Bindings[e.Binding].Source
	case e.Level == profile.LevelFile:
		return sp.File == e.FileID
	case e.Level == profile.LevelLine:
		return sp.File == e.FileID && sp.Line == e.Span.Line
	case e.Level == profile.LevelSpan:
		return sp.File == e.FileID && sp.Extent == e.Span
	case e.Level == profile.LevelModule:
		return b.Module == e.Module && b.Package == e.Package
	}
	return b.Package == e.Package
}
