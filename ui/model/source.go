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
	text := Recall(e, f.Path, func() fileText {
		lines, tokens := syntax.Lines(f.Path, string(f.Text))
		return fileText{lines, tokens}
	})
	out := &Source{File: id, Path: v.Path, Problem: v.Problem, Lines: text.lines, Tokens: text.tokens, Heat: make(map[int]LineHeat)}
	keys := bindingKeys(sel)
	only := v.SureOnly(sel)
	for i := range v.Lines {
		l := &v.Lines[i]
		h := LineHeat{Share: l.Share, Only: l.Only}
		if l.Share > 0 {
			h.PlusMinus, h.OnlyPlusMinus = l.Sure.PlusMinus(l.Share), only[i].PlusMinus(l.Only)
		}
		h.Causes = causes(v, l, keys)
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
func causes(v *source.View, l *source.Line, keys map[string]Key) (out []Cause) {
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
		out = append(out, Cause{Name: name, Share: s.Share, PlusMinus: s.Sure.PlusMinus(s.Share), Span: s.Element.Span, Key: Key{profile.LevelSpan, s.Element.ID}, Binding: binding})
	}
	slices.SortStableFunc(out, func(a, b Cause) int {
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Span.Col, b.Span.Col), cmp.Compare(b.Span.EndLine, a.Span.EndLine))
	})
	out = out[:min(len(out), MaxCauses)]
	for i := range out {
		out[i].Letter = string(rune('A' + i))
	}
	return out
}
