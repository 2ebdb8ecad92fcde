package profile

import (
	"bytes"
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"ccagent/profile/columns"
)

// SourceView is a source file with its costs.
type SourceView struct {
	File    columns.FileID
	Path    string
	Problem string // why there is no text, or that it may not be what was compiled; empty if all is well
	// Binding is the binding that was asked for and its extent; zero if a file was.
	Binding columns.BindingID
	Name    string
	Extent  columns.Extent
	Lines   []SourceLine
	// Spans are those of the file that samples share, by share.
	Spans []SourceSpan
	// Share is the file's or binding's own, as in Hot.
	Share, Only, Inclusive float64
	Samples                uint64
	// Also is what else the samples of this file or binding are attributed to:
	// bindings outside of it.
	Also []Overlap
}

// SourceLine is a line with the samples whose narrowest spans begin on it.
type SourceLine struct {
	Number                 uint32 // 1-based
	Text                   string // without the line's end; empty where the log has no text
	Share, Only, Inclusive float64
	Samples                uint64
	// Spans that touch the line, as indices of SourceView.Spans.
	Spans []int
}

// SourceSpan is a span with its figures.
type SourceSpan struct {
	Row
	Binding string // the source binding that contains it; may be empty
}

// LookupError tells that a query for a source names nothing, or too much.
type LookupError struct {
	Query      string
	Candidates []string // what it may have meant: of an ambiguous query all, else the nearest
	Ambiguous  bool
	NoNotes    bool // the binding is there, but no source note tells where it is
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

// Lookup finds the file or binding that a query names: a path or the end of
// one, "Module.binding" or a binding's bare name. Exactly one of the two ids is
// not 0 if the error, a *LookupError, is nil.
func (p *Profile) Lookup(query string) (columns.FileID, columns.BindingID, error) {
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
		return 0, 0, &LookupError{Query: query, Candidates: p.nearest(query, bindings)}
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

// nearest gives names that contain the query, else the program's own files.
func (p *Profile) nearest(query string, bindings map[string]columns.BindingID) []string {
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

// Source gives the source that a query names, with the selection's costs.
func (s *Selection) Source(query string) (*SourceView, error) {
	file, binding, err := s.Profile.Lookup(query)
	if err != nil {
		return nil, err
	}
	if binding != 0 {
		return s.SourceOfBinding(binding)
	}
	return s.SourceOfFile(file), nil
}

// SourceOfBinding gives the file that a binding lies in. The error is a
// *LookupError if no span tells where that is.
func (s *Selection) SourceOfBinding(id columns.BindingID) (*SourceView, error) {
	p := s.Profile
	id = p.Symbols.Bindings[id].Source
	ix := s.index(LevelBinding)
	name := p.Symbols.Bindings[id].QualifiedName()
	var at *Element
	for i := range ix.elements {
		if e := &ix.elements[i]; e.Kind == KindSource && e.Name == name && e.Package == p.Symbols.Bindings[id].Package {
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
	v := s.source(file, x)
	v.Binding, v.Name, v.Extent = id, name, x
	if at != nil {
		s.describe(v, LevelBinding, at.ID, func(e *Element) bool { return e.Name == name })
	}
	return v, nil
}

// SourceOfFile gives a file with its costs.
func (s *Selection) SourceOfFile(file columns.FileID) *SourceView {
	v := s.source(file, columns.Extent{})
	ix := s.index(LevelFile)
	for i := range ix.elements {
		if e := &ix.elements[i]; e.File == v.Path {
			s.describe(v, LevelFile, e.ID, func(e *Element) bool { return e.File == v.Path })
		}
	}
	return v
}

func (s *Selection) describe(v *SourceView, level Level, id ElementID, inside func(*Element) bool) {
	if r, ok := s.Hot(level).Row(id); ok {
		v.Share, v.Only, v.Inclusive, v.Samples = r.Share, r.Only, r.Inclusive, r.Samples
	}
	for _, o := range s.Overlaps(level, id, LevelBinding) {
		if !inside(o.Element) {
			v.Also = append(v.Also, o)
		}
	}
}

// maxLine bounds the lines that are made up for a file without text.
const maxLine = 1 << 20

// source gives a file with the spans that touch an extent, or all of them for
// the zero Extent.
func (s *Selection) source(file columns.FileID, within columns.Extent) *SourceView {
	p := s.Profile
	f := &p.Symbols.Files[file]
	v := &SourceView{File: file, Path: f.Path, Problem: f.Problem}
	switch {
	case v.Problem != "":
	case f.Cut:
		v.Problem = "the log holds only a part of this file's text"
	case len(f.Text) == 0:
		v.Problem = "the log does not hold this file's text"
	}
	rows := make(map[uint32]*Row)
	hot := s.Hot(LevelLine)
	for i := range hot.Rows {
		if e := hot.Rows[i].Element; e.File == f.Path {
			rows[e.Span.Line] = &hot.Rows[i]
		}
	}
	for _, r := range s.Hot(LevelSpan).Rows {
		x := r.Element.Span
		if r.Element.File == f.Path && (within == columns.Extent{} || x.Line <= within.EndLine && x.EndLine >= within.Line) {
			v.Spans = append(v.Spans, SourceSpan{r, p.spanBinding(r.Element)})
		}
	}
	v.Lines = lines(f.Text, rows, v.Spans)
	for i := range v.Lines {
		if r := rows[v.Lines[i].Number]; r != nil {
			l := &v.Lines[i]
			l.Share, l.Only, l.Inclusive, l.Samples = r.Share, r.Only, r.Inclusive, r.Samples
		}
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

func (p *Profile) spanBinding(e *Element) string {
	if e.Binding == 0 {
		return ""
	}
	return p.Symbols.Bindings[e.Binding].QualifiedName()
}

// lines splits a text; without one it gives the lines that bear costs.
func lines(text []byte, rows map[uint32]*Row, spans []SourceSpan) []SourceLine {
	var out []SourceLine
	if len(text) > 0 {
		for n := uint32(1); len(text) > 0; n++ {
			line, rest, _ := bytes.Cut(text, []byte{'\n'})
			out = append(out, SourceLine{Number: n, Text: string(bytes.TrimSuffix(line, []byte{'\r'}))})
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
			out = append(out, SourceLine{Number: n})
		}
	}
	slices.SortFunc(out, func(a, b SourceLine) int { return cmp.Compare(a.Number, b.Number) })
	return out
}
