package source

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/interval"
)

// View is a source file with its costs.
type View struct {
	File    columns.FileID
	Path    string
	Problem string // why the text is missing or may differ from what was compiled; empty if neither
	// Binding and its extent are set if the query named a binding; zero for a file.
	Binding columns.BindingID
	Name    string
	Extent  columns.Extent
	Lines   []Line
	// Spans are the spans of the file that samples share, ordered by share.
	Spans []Span
	// Share, Only and Inclusive are those of the file or binding, as in Hot.
	Share, Only, Inclusive float64
	Samples                uint64
	Sure                   profile.Sure // of Share
	level                  profile.Level
	element                profile.ElementID
	described              bool // level and element are set
	// Also has the elements outside of this file or binding that share its samples.
	Also []profile.Overlap
}

// Line is a line with the samples whose narrowest spans begin on it.
type Line struct {
	Number                 uint32 // 1-based
	Text                   string // without the line's end; empty where the log has no text
	Share, Only, Inclusive float64
	Samples                uint64
	Sure                   profile.Sure // of Share; zero without samples
	element                profile.ElementID
	costly                 bool // it has an element
	// Spans that touch the line, as indices of View.Spans.
	Spans []int
}

// Span is a span with its figures.
type Span struct {
	profile.Row
	Binding string // the source binding that contains it; may be empty
	Sure    profile.Sure
}

// LookupError is the error for a query that names no source, or several.
type LookupError struct {
	Query      string
	Candidates []string // if ambiguous, all matches; otherwise the nearest names
	Ambiguous  bool
	NoNotes    bool // the binding exists, but no source note gives its position
}

func (e *LookupError) Error() string {
	var b strings.Builder
	switch {
	case e.NoNotes:
		fmt.Fprintf(&b, "no source note of this log lies in %s: its module was compiled without -g3, or all of its code was inlined elsewhere", e.Query)
	case e.Ambiguous:
		fmt.Fprintf(&b, "%q names several sources", e.Query)
	default:
		fmt.Fprintf(&b, "no file or binding of this log is named %q", e.Query)
	}
	if n := len(e.Candidates); n > 0 {
		shown := e.Candidates[:min(n, 8)]
		if e.Ambiguous {
			b.WriteString(": ")
		} else {
			b.WriteString("; there are ")
		}
		b.WriteString(strings.Join(shown, ", "))
		if n > len(shown) {
			fmt.Fprintf(&b, ", … (%d in all)", n)
		}
	}
	return b.String()
}

// lookup finds the file or binding that a query names: a path or the end of one,
// "Module.binding" or only a binding's name. If the error, a *LookupError, is nil,
// exactly one of the two ids is not 0.
func lookup(p *profile.Profile, query string) (columns.FileID, columns.BindingID, error) {
	s := &p.Symbols
	for i := 1; i < len(s.Files); i++ {
		if s.Files[i].Path == query {
			return columns.FileID(i), 0, nil
		}
	}
	bindings := make(map[string]columns.BindingID)
	bare := make(map[string]columns.BindingID)
	for i := 1; i < len(s.Bindings); i++ {
		b := &s.Bindings[i]
		if b.Source != columns.BindingID(i) {
			continue
		}
		name := b.QualifiedName()
		bindings[name] = columns.BindingID(i)
		if b.Name == query {
			bare[name] = columns.BindingID(i)
		}
	}
	if b, ok := bindings[query]; ok {
		return 0, b, nil
	}
	files := make(map[string]columns.FileID)
	suffix := "/" + strings.TrimPrefix(path.Clean("/"+query), "/")
	for i := 1; i < len(s.Files); i++ {
		if strings.HasSuffix("/"+strings.TrimPrefix(s.Files[i].Path, "./"), suffix) {
			files[s.Files[i].Path] = columns.FileID(i)
		}
	}
	switch len(files) + len(bare) {
	case 0:
		return 0, 0, &LookupError{Query: query, Candidates: nearest(p, query, bindings)}
	case 1:
		for _, f := range files {
			return f, 0, nil
		}
		for _, b := range bare {
			return 0, b, nil
		}
	}
	e := &LookupError{Query: query, Ambiguous: true}
	for name := range files {
		e.Candidates = append(e.Candidates, name)
	}
	for name := range bare {
		e.Candidates = append(e.Candidates, name)
	}
	slices.Sort(e.Candidates)
	return 0, 0, e
}

// nearest returns names that contain the query, or else the program's own files.
func nearest(p *profile.Profile, query string, bindings map[string]columns.BindingID) []string {
	var names []string
	low := strings.ToLower(query)
	for i := 1; i < len(p.Symbols.Files); i++ {
		if f := p.Symbols.Files[i].Path; strings.Contains(strings.ToLower(f), low) {
			names = append(names, f)
		}
	}
	for name := range bindings {
		if strings.Contains(strings.ToLower(name), low) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		for i := 1; i < len(p.Symbols.Files); i++ {
			names = append(names, p.Symbols.Files[i].Path)
		}
	}
	slices.SortFunc(names, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return slices.Compact(names)
}

// Find returns the source that a query names, with the selection's costs.
func Find(s *profile.Selection, query string) (*View, error) {
	file, binding, err := lookup(s.Profile, query)
	if err != nil {
		return nil, err
	}
	if binding != 0 {
		return OfBinding(s, binding)
	}
	return OfFile(s, file), nil
}

// OfBinding returns the file that a binding lies in. The error is a *LookupError if no
// span gives its position.
func OfBinding(s *profile.Selection, id columns.BindingID) (*View, error) {
	p := s.Profile
	id = p.Symbols.Bindings[id].Source
	elements := p.Elements(profile.LevelBinding)
	name := p.Symbols.Bindings[id].QualifiedName()
	var at *profile.Element
	for i := range elements {
		if e := &elements[i]; e.Kind == profile.KindSource && e.Name == name && e.Package == p.Symbols.Bindings[id].Package {
			at = e
		}
	}
	var x columns.Extent
	var file columns.FileID
	if at != nil {
		x, file = at.Span, at.FileID
	}
	for i := 1; i < len(p.Symbols.Spans) && file == 0; i++ {
		if sp := &p.Symbols.Spans[i]; p.Symbols.Bindings[sp.Binding].Source == id {
			x, file = sp.Extent, sp.File
		}
	}
	if file == 0 {
		return nil, &LookupError{Query: name, NoNotes: true}
	}
	v := view(s, file, x)
	v.Binding, v.Name, v.Extent = id, name, x
	if at != nil {
		describe(s, v, profile.LevelBinding, at.ID, func(e *profile.Element) bool { return e.Name == name })
	}
	return v, nil
}

// OfFile returns a file with its costs.
func OfFile(s *profile.Selection, file columns.FileID) *View {
	v := view(s, file, columns.Extent{})
	elements := s.Profile.Elements(profile.LevelFile)
	for i := range elements {
		if e := &elements[i]; e.File == v.Path {
			describe(s, v, profile.LevelFile, e.ID, func(e *profile.Element) bool { return e.File == v.Path })
		}
	}
	return v
}

func describe(s *profile.Selection, v *View, level profile.Level, id profile.ElementID, inside func(*profile.Element) bool) {
	if r, ok := s.Hot(level).Row(id); ok {
		v.Share, v.Only, v.Inclusive, v.Samples = r.Share, r.Only, r.Inclusive, r.Samples
	}
	v.level, v.element, v.described = level, id, true
	v.Sure = s.SureOf(level, []profile.ElementID{id})[0]
	for _, o := range s.Overlaps(level, id, profile.LevelBinding) {
		if !inside(o.Element) {
			v.Also = append(v.Also, o)
		}
	}
}

// Parts says how sure Only and Inclusive are of a view, its lines and its spans, in their order.
// They are zero of a line without samples.
type Parts struct {
	Whole        profile.SureParts
	Lines, Spans []profile.SureParts
}

// SureParts returns how sure the further figures of a view of the selection are.
func (v *View) SureParts(s *profile.Selection) Parts {
	out := Parts{Lines: make([]profile.SureParts, len(v.Lines)), Spans: make([]profile.SureParts, len(v.Spans))}
	if v.described {
		out.Whole = s.SurePartsOf(v.level, []profile.ElementID{v.element}, []profile.Sure{v.Sure})[0]
	}
	at, ids, sure := v.costly()
	for k, parts := range s.SurePartsOf(profile.LevelLine, ids, sure) {
		out.Lines[at[k]] = parts
	}
	ids, sure = make([]profile.ElementID, len(v.Spans)), make([]profile.Sure, len(v.Spans))
	for i := range v.Spans {
		ids[i], sure[i] = v.Spans[i].Element.ID, v.Spans[i].Sure
	}
	copy(out.Spans, s.SurePartsOf(profile.LevelSpan, ids, sure))
	return out
}

// costly returns the lines with samples: their places, their elements and how sure their shares are.
func (v *View) costly() (at []int, ids []profile.ElementID, sure []profile.Sure) {
	for i := range v.Lines {
		if l := &v.Lines[i]; l.costly {
			at, ids, sure = append(at, i), append(ids, l.element), append(sure, l.Sure)
		}
	}
	return at, ids, sure
}

// SureOnly returns how sure Only of each line is; it is zero of a line without samples.
func (v *View) SureOnly(s *profile.Selection) []interval.Interval {
	out := make([]interval.Interval, len(v.Lines))
	at, ids, sure := v.costly()
	for k, only := range s.SureOnlyOf(profile.LevelLine, ids, sure) {
		out[at[k]] = only
	}
	return out
}

// maxLine bounds the number of lines that are invented for a file without text.
const maxLine = 1 << 20

// view returns a file with the spans that overlap an extent, or all of them for the zero
// Extent.
func view(s *profile.Selection, file columns.FileID, within columns.Extent) *View {
	p := s.Profile
	f := &p.Symbols.Files[file]
	v := &View{File: file, Path: f.Path, Problem: f.Problem}
	switch {
	case v.Problem != "":
	case f.Cut:
		v.Problem = "the log holds only a part of this file's text"
	case len(f.Text) == 0:
		v.Problem = "the log does not hold this file's text"
	}
	rows := make(map[uint32]*profile.Row)
	hot := s.Hot(profile.LevelLine)
	for i := range hot.Rows {
		if e := hot.Rows[i].Element; e.File == f.Path {
			rows[e.Span.Line] = &hot.Rows[i]
		}
	}
	for _, r := range s.Hot(profile.LevelSpan).Rows {
		x := r.Element.Span
		if r.Element.File == f.Path && (within == columns.Extent{} || x.Line <= within.EndLine && x.EndLine >= within.Line) {
			v.Spans = append(v.Spans, Span{Row: r, Binding: spanBinding(p, r.Element)})
		}
	}
	spans := make([]profile.ElementID, len(v.Spans))
	for i := range v.Spans {
		spans[i] = v.Spans[i].Element.ID
	}
	for i, sure := range s.SureOf(profile.LevelSpan, spans) {
		v.Spans[i].Sure = sure
	}
	v.Lines = lines(f.Text, rows, v.Spans)
	var costly []*Line
	var elements []profile.ElementID
	for i := range v.Lines {
		if r := rows[v.Lines[i].Number]; r != nil {
			l := &v.Lines[i]
			l.Share, l.Only, l.Inclusive, l.Samples = r.Share, r.Only, r.Inclusive, r.Samples
			l.element, l.costly = r.Element.ID, true
			costly, elements = append(costly, l), append(elements, r.Element.ID)
		}
	}
	for i, sure := range s.SureOf(profile.LevelLine, elements) {
		costly[i].Sure.Interval = sure.Interval // lines are not in the order of their shares
	}
	at := make(map[uint32]int, len(v.Lines))
	for i := range v.Lines {
		at[v.Lines[i].Number] = i
	}
	for j := range v.Spans {
		x := v.Spans[j].Element.Span
		if len(v.Lines) == 0 {
			break
		}
		first, last := max(x.Line, v.Lines[0].Number), min(x.EndLine, v.Lines[len(v.Lines)-1].Number)
		for n := first; n <= last && n != 0; n++ {
			if i, ok := at[n]; ok {
				v.Lines[i].Spans = append(v.Lines[i].Spans, j)
			}
		}
	}
	return v
}

func spanBinding(p *profile.Profile, e *profile.Element) string {
	if e.Binding == 0 {
		return ""
	}
	return p.Symbols.Bindings[e.Binding].QualifiedName()
}

// lines splits a text into lines. Without text it returns the lines that have costs.
func lines(text []byte, rows map[uint32]*profile.Row, spans []Span) []Line {
	var out []Line
	if len(text) > 0 {
		for n := uint32(1); len(text) > 0; n++ {
			line, rest, _ := bytes.Cut(text, []byte{'\n'})
			out = append(out, Line{Number: n, Text: string(bytes.TrimSuffix(line, []byte{'\r'}))})
			text = rest
		}
	}
	last := uint32(len(out))
	extra := make(map[uint32]bool)
	for n := range rows {
		extra[n] = n > last
	}
	for i := range spans {
		extra[spans[i].Element.Span.Line] = spans[i].Element.Span.Line > last
	}
	for n, is := range extra {
		if is && n < maxLine {
			out = append(out, Line{Number: n})
		}
	}
	slices.SortFunc(out, func(a, b Line) int { return cmp.Compare(a.Number, b.Number) })
	return out
}
