package source

import (
	"slices"

	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/ui/model"
	"ccagent/ui/screen/pane"
)

// part is what the screen shows of the line under the cursor, and the selection's Core.
type part struct {
	line int // 1-based; 0 = none
	core bool
}

// answer answers a part.
type answer struct {
	line *Line
	core *pane.Core
}

// Compute implements model.Part.
func (p part) Compute(in *model.Input) (any, error) {
	out := &answer{}
	if src := in.Source(); src != nil {
		type key struct {
			model.Samples
			file columns.FileID
			line int
		}
		out.line = model.Recall(in.Engine, key{in.Samples, src.File, p.line}, func() *Line { return about(in.Selection, src, p.line) })
	}
	if p.core {
		out.core = pane.CoreOf(in)
	}
	return out, nil
}

// Line is what is known of the line under the cursor.
type Line struct {
	File   columns.FileID
	Number int
	Share  float64
	// PlusMinus is how far Share's 95 % interval reaches to its further side.
	PlusMinus float64
	Samples   uint64
	Causes    []model.Cause // its spans
	Lines     []model.Cause // other lines that share its samples
	Also      []model.Cause // bindings that share its samples
	Blocks    []Block       // that its samples lie in
}

// Block is a stretch of machine code that was compiled from a line.
type Block struct {
	Name   string // the procedure
	Detail string
	Symbol string
	Lo, Hi uint64 // 0 of code without blocks
	Own    bool   // it has notes of its own
	Share  float64
	// PlusMinus is how far Share's 95 % interval reaches to its further side.
	PlusMinus float64
}

// about computes the tables about one line.
func about(sel *profile.Selection, src *model.Source, number int) *Line {
	out := &Line{File: src.File, Number: number, PlusMinus: src.Heat[number].PlusMinus, Causes: src.Heat[number].Causes}
	b := sel.Batched()
	var id profile.ElementID = profile.NoElement
	for _, r := range sel.Hot(profile.LevelLine).Rows {
		if r.Element.File == src.Path && int(r.Element.Span.Line) == number {
			id = r.Element.ID
			out.Share, out.Samples = r.Share, r.Samples
		}
	}
	if id == profile.NoElement {
		return out
	}
	for _, o := range sel.Blocks(profile.LevelLine, id) {
		block := Block{Name: o.Procedure, Detail: o.Detail, Symbol: o.Symbol, Lo: o.Lo, Hi: o.Hi, Own: o.Own, Share: o.Share}
		block.PlusMinus = b.Of(o.Sites).PlusMinus(o.Share)
		out.Blocks = append(out.Blocks, block)
	}
	for _, o := range sel.Overlaps(profile.LevelLine, id, profile.LevelBinding) {
		if slices.ContainsFunc(out.Causes, func(c model.Cause) bool { return c.Name == o.Element.Name }) {
			continue
		}
		out.Also = append(out.Also, shared(b, &o))
	}
	for _, o := range sel.Overlaps(profile.LevelLine, id, profile.LevelLine) {
		if o.Element.Name != "" && len(out.Lines) < 64 {
			out.Lines = append(out.Lines, shared(b, &o))
		}
	}
	return out
}

// shared is what an element has in common with the line.
func shared(b *profile.Batched, o *profile.Overlap) model.Cause {
	return model.Cause{Name: o.Element.Name, Share: o.Share, PlusMinus: b.Of(o.Sites).PlusMinus(o.Share), Key: model.Key{Level: o.Element.Level, ID: o.Element.ID}}
}
