package model

import (
	"ccagent/profile"
	"ccagent/profile/source"
)

// Core is the optimiser's output of the bindings that the selected element's
// code is in, one after the other.
type Core struct {
	Of      Key
	Name    string
	Problem string // why there is none; empty if there is
	Lines   []CoreLine
	Hottest []int // lines by falling share
}

// CoreLine is a line of Core, or with Head a binding's heading.
type CoreLine struct {
	Text   string
	Head   bool
	Number int // in its dump's binding
	Share  float64
	Of     bool // made from the element itself
}

func (e *Engine) coreOf(sel *profile.Selection, k Key) *Core {
	out := &Core{Of: k}
	elements := e.p.Elements(k.Level)
	if k.ID < 0 || int(k.ID) >= len(elements) {
		out.Problem = "nothing is selected"
		return out
	}
	el := &elements[k.ID]
	v := source.CoreOf(sel, el)
	out.Name, out.Problem = el.Name, v.Problem
	for i := range v.Bindings {
		b := &v.Bindings[i]
		head := b.Name
		if b.Detail != "" {
			head += "  " + b.Detail
		}
		out.Lines = append(out.Lines, CoreLine{Text: head, Head: true, Share: b.Share})
		if b.Core.Problem != "" {
			out.Lines = append(out.Lines, CoreLine{Text: b.Core.Problem, Head: true})
		}
		for j := range b.Lines {
			l := &b.Lines[j]
			if l.Share > 0 {
				out.Hottest = append(out.Hottest, len(out.Lines))
			}
			out.Lines = append(out.Lines, CoreLine{Text: l.Text, Number: int(l.Number), Share: l.Share, Of: l.Of})
		}
	}
	return out
}
