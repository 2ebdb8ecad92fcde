package model

import (
	"cmp"
	"slices"

	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/source"
	"ccagent/ui/syntax"
)

// MaxCauses is how many causes of a line get a letter.
const MaxCauses = 4

// fileText is a file's text, coloured; it does not depend on a selection.
type fileText struct {
	lines  []string
	tokens [][]syntax.Token
}

// bindingKeys finds the elements of bindings by name.
func bindingKeys(sel *profile.Selection) map[string]Key {
	out := make(map[string]Key)
	for _, r := range sel.Hot(profile.LevelBinding).Rows {
		out[r.Element.Name] = Key{profile.LevelBinding, r.Element.ID}
	}
	return out
}

func (e *Engine) file(sel *profile.Selection, id columns.FileID) *Source {
	v := source.OfFile(sel, id)
	f := e.p.File(id)
	text := e.text.get(f.Path, func() fileText {
		lines, tokens := syntax.Lines(f.Path, string(f.Text))
		return fileText{lines, tokens}
	})
	out := &Source{File: id, Path: v.Path, Problem: v.Problem, Lines: text.lines, Tokens: text.tokens, Heat: make(map[int]LineHeat)}
	keys := bindingKeys(sel)
	for i := range v.Lines {
		l := &v.Lines[i]
		h := LineHeat{Share: l.Share, Only: l.Only}
		h.Causes, h.More = causes(v, l, keys)
		if l.Share > 0 || len(h.Causes) > 0 {
			out.Heat[int(l.Number)] = h
		}
		if l.Share > 0 {
			out.Hottest = append(out.Hottest, int(l.Number))
		}
	}
	slices.SortStableFunc(out.Hottest, func(a, b int) int { return cmp.Compare(out.Heat[b].Share, out.Heat[a].Share) })
	return out
}

// causes are the spans that begin on a line, by share; letters follow that
// order.
func causes(v *source.View, l *source.Line, keys map[string]Key) (out []Cause, more int) {
	for _, i := range l.Spans {
		s := &v.Spans[i]
		if s.Element.Span.Line != l.Number || s.Share == 0 {
			continue
		}
		name := s.Binding
		binding, ok := keys[name]
		if !ok {
			binding = NoKey
		}
		if name == "" {
			name = s.Element.Span.String()
		}
		out = append(out, Cause{Name: name, Share: s.Share, Only: s.Only, Span: s.Element.Span, Key: Key{profile.LevelSpan, s.Element.ID}, Binding: binding})
	}
	slices.SortStableFunc(out, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Span.Col, b.Span.Col), cmp.Compare(b.Span.EndLine, a.Span.EndLine))
	})
	if len(out) > MaxCauses {
		more = len(out) - MaxCauses
		out = out[:MaxCauses]
	}
	for i := range out {
		out[i].Letter = string(rune('A' + i))
	}
	return out, more
}

// about tells of one line what the tables of the source screen show.
func (e *Engine) about(sel *profile.Selection, src *Source, number int) *Line {
	out := &Line{File: src.File, Number: number, Causes: src.Heat[number].Causes}
	var id profile.ElementID = profile.NoElement
	for _, r := range sel.Hot(profile.LevelLine).Rows {
		if r.Element.File == src.Path && int(r.Element.Span.Line) == number {
			id = r.Element.ID
			out.Share, out.Only, out.Samples = r.Share, r.Only, r.Samples
		}
	}
	if id == profile.NoElement {
		return out
	}
	for _, b := range sel.Blocks(profile.LevelLine, id) {
		out.Blocks = append(out.Blocks, Block{Name: b.Procedure, Detail: b.Detail, Symbol: b.Symbol, Lo: b.Lo, Hi: b.Hi, Own: b.Own, Share: b.Share})
	}
	for _, o := range sel.Overlaps(profile.LevelLine, id, profile.LevelBinding) {
		if slices.ContainsFunc(out.Causes, func(c Cause) bool { return c.Name == o.Element.Name }) {
			continue
		}
		out.Also = append(out.Also, Cause{Name: o.Element.Name, Share: o.Share, Path: o.Element.File, Key: Key{o.Element.Level, o.Element.ID}})
	}
	for _, o := range sel.Overlaps(profile.LevelLine, id, profile.LevelLine) {
		if o.Element.Name != "" && len(out.Lines) < 64 {
			out.Lines = append(out.Lines, Cause{Name: o.Element.Name, Share: o.Share, Path: o.Element.File, Key: Key{o.Element.Level, o.Element.ID}})
		}
	}
	return out
}
