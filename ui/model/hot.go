package model

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"ccagent/profile"
	"ccagent/profile/reasons"
)

func (e *Engine) summarise(sel *profile.Selection) *Summary {
	s := sel.Summary()
	out := &Summary{
		Event: s.Event, Title: s.Title, Samples: s.AllSamples, Kept: s.Samples, Effective: sel.Batched().Effective(), AllWeight: s.AllTotal, Weight: s.Total,
		Duration: e.p.Lasted(), Lost: s.Lost,
		Truncated: s.Stacks.Truncated, Failed: s.Stacks.Failed, Unresolved: s.Unresolved, Pending: s.Pending, Events: len(e.p.Events),
	}
	a := &e.p.Accounting
	switch {
	case a.Malformed > 0:
		out.Damaged = fmt.Sprintf("damaged: %d bytes unreadable", a.Passed)
	case a.Growing:
		out.Nameless = !e.p.Symbolised
	case !a.Complete || !e.p.HaveEnd && e.p.HaveCapture:
		out.Damaged = "cut off: the log has no end"
	case !e.p.Symbolised && e.p.HaveCapture && len(e.p.Sites) > 0: // without code there is nothing to name
		out.Damaged = "no symbols: run ccagent symbolize"
	}
	return out
}

// hot makes the tree of files and bindings. Code that is in no file is grouped
// by its module; categories stand alone.
func hot(sel *profile.Selection) *Hot {
	bindings := sel.Hot(profile.LevelBinding)
	out := &Hot{LeafSum: bindings.Sum}
	add := func(r *profile.Row, parent int) *Row {
		el := r.Element
		out.Rows = append(out.Rows, Row{
			Key: Key{el.Level, el.ID}, Name: el.Name, Full: el.Name, Package: el.Package, File: el.FileID, Path: el.File,
			Line: int(el.Span.Line), Parent: parent, Share: r.Share, Only: r.Only, Inclusive: r.Inclusive,
			Symbol:   sel.Profile.Binding(el.Binding).Symbol,
			Category: el.Kind == profile.KindCategory, Module: el.Module, Collapsed: el.Kind == profile.KindCollapsed,
		})
		return &out.Rows[len(out.Rows)-1]
	}
	group := func(g *profile.Group, members []profile.Row) {
		i := len(out.Rows)
		top := add(&g.Row, -1)
		top.Kids, top.Line = len(members), 0
		if g.Element.Level == profile.LevelModule {
			top.File, top.Path = 0, ""
		}
		for j := range members {
			add(&members[j], i).Name = short(members[j].Element)
		}
	}
	modules := sel.Groups(profile.LevelModule, profile.LevelBinding)
	whole := wholeModules(modules)
	for _, g := range sel.Groups(profile.LevelFile, profile.LevelBinding) {
		// A file all of whose bindings are collapsed is listed as its module.
		if g.Element.File == "" || len(g.Members) == 0 {
			continue
		}
		m, ok := whole[g.Element.File]
		if !ok {
			group(&g, g.Members)
			continue
		}
		top := len(out.Rows)
		group(m, m.Members)
		r := &out.Rows[top]
		r.Name, r.File, r.Path = g.Element.Name, g.Element.FileID, g.Element.File
	}
	for _, g := range modules {
		homeless := slices.DeleteFunc(slices.Clone(g.Members), func(r profile.Row) bool { return r.Element.File != "" })
		if g.Element.Kind != profile.KindSource || len(homeless) == 0 || homeless[0].Element.Kind == profile.KindCollapsed {
			continue
		}
		if m := whole[fileOf(&g)]; m == nil || m.Element.ID != g.Element.ID {
			group(&g, homeless)
		}
	}
	for i := range bindings.Rows {
		if k := bindings.Rows[i].Element.Kind; k == profile.KindCategory || k == profile.KindCollapsed {
			add(&bindings.Rows[i], -1)
		}
	}
	alike := sel.Alike(profile.LevelBinding)
	for i := range out.Rows {
		if k := out.Rows[i].Key; k.Level == profile.LevelBinding {
			out.Rows[i].Alike = alike[k.ID]
		}
	}
	out.sure(sel)
	return out
}

// sure sets how sure the rows are, each compared with its sibling before in the order of
// shares.
func (h *Hot) sure(sel *profile.Selection) {
	kids := make([][]int, len(h.Rows)+1)
	unseen := sel.Batched().Unseen()
	for i := range h.Rows {
		if r := &h.Rows[i]; r.Share > 0 {
			kids[r.Parent+1] = append(kids[r.Parent+1], i)
		} else {
			r.PlusMinus = unseen
		}
	}
	var order []int
	var rows []profile.ElementAt
	for _, of := range kids {
		slices.SortStableFunc(of, func(a, b int) int {
			x, y := &h.Rows[a], &h.Rows[b]
			return cmp.Or(cmp.Compare(y.Share, x.Share), strings.Compare(x.Full, y.Full))
		})
		for i, at := range of {
			order = append(order, at)
			rows = append(rows, profile.ElementAt{Level: h.Rows[at].Key.Level, ID: h.Rows[at].Key.ID, First: i == 0})
		}
	}
	for i, s := range sel.SureEach(rows) {
		r := &h.Rows[order[i]]
		r.PlusMinus, r.Tied = s.PlusMinus(r.Share), s.Tied
	}
}

// reason explains an element without source; nil for others.
func (h *Hot) reason(sel *profile.Selection, k Key) *reasons.Reason {
	for i := range h.Rows {
		if r := &h.Rows[i]; r.Key == k && r.Category {
			return reasons.Of(sel, r.Full)
		}
	}
	return nil
}

// wholeModules gives, by the file's path, the modules that have code of one file
// and code in no file. There the file stands for the module, as there would be two
// rows otherwise for what a programmer takes for one.
func wholeModules(modules []profile.Group) map[string]*profile.Group {
	out := make(map[string]*profile.Group)
	taken := make(map[string]int) // modules that have code of the file
	for i := range modules {
		g := &modules[i]
		if g.Element.Kind != profile.KindSource {
			continue
		}
		files := make(map[string]bool)
		for _, r := range g.Members {
			files[r.Element.File] = true
		}
		for f := range files {
			taken[f]++
		}
		if f := fileOf(g); f != "" && files[""] && len(files) == 2 {
			out[f] = g
		}
	}
	maps.DeleteFunc(out, func(f string, _ *profile.Group) bool { return taken[f] > 1 })
	return out
}

// fileOf is the file of the first of a group's members that has one.
func fileOf(g *profile.Group) string {
	for _, r := range g.Members {
		if r.Element.File != "" {
			return r.Element.File
		}
	}
	return ""
}

// short is a binding's name below its file or module.
func short(el *profile.Element) string {
	rest, ok := strings.CutPrefix(el.Name, el.Module)
	// "Data.Map.insert", "Data.Map (instance Show Map)"
	if ok && el.Module != "" && len(rest) > 1 && (rest[0] == '.' || rest[0] == ' ') {
		return rest[1:]
	}
	return el.Name
}

// overlap gives for every row of the hot list the part of the total that it
// shares with the selected element.
func overlap(sel *profile.Selection, k Key) map[Key]float64 {
	out := make(map[Key]float64)
	for _, other := range []profile.Level{profile.LevelBinding, profile.LevelFile, profile.LevelModule} {
		for _, o := range sel.Overlaps(k.Level, k.ID, other) {
			out[Key{o.Element.Level, o.Element.ID}] = o.Share
		}
	}
	return out
}
