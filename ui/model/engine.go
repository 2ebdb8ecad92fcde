package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"ccagent/profile"
	"ccagent/profile/centres"
	"ccagent/profile/columns"
)

// Engine computes Data. It is for one goroutine at a time.
type Engine struct {
	p          *profile.Profile
	files      map[string]columns.FileID // by path; made when first asked for
	selections cache[*profile.Selection]
	hot        cache[*Hot]
	summary    cache[*Summary]
	source     cache[*Source]
	timeline   cache[*Timeline]
	overlap    cache[map[Key]float64]
	line       cache[*Line]
	tree       cache[*Tree]
	trees      treePair
	cores      cache[*Core]
	sandwiches cache[*Sandwich]
	text       cache[fileText]
	centres    cache[*centreData]
	attributed cache[*centres.Costs]
	centreRows cache[*CostCentres]
	compared   *Compared // nil if one log is open
	diff       cache[*Diff]
	heaps      cache[*Heap]
	schedulers cache[*Scheduler]
}

// NewEngine gives an engine on a profile.
func NewEngine(p *profile.Profile) *Engine { return &Engine{p: p} }

// cache keeps the latest values by key. It is small: a key is a whole screen's
// part, and what users come back to is what they saw last.
type cache[V any] struct {
	mu   sync.Mutex
	keys []string
	vals []V
}

const cacheSize = 8

func (c *cache[V]) get(key string, make func() V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i := slices.Index(c.keys, key); i >= 0 {
		k, v := c.keys[i], c.vals[i]
		c.keys = append(slices.Delete(c.keys, i, i+1), k)
		c.vals = append(slices.Delete(c.vals, i, i+1), v)
		return v
	}
	v := make()
	if len(c.keys) == cacheSize {
		c.keys, c.vals = slices.Delete(c.keys, 0, 1), slices.Delete(c.vals, 0, 1)
	}
	c.keys, c.vals = append(c.keys, key), append(c.vals, v)
	return v
}

// Equal reports whether two needs ask for the same.
func (n *Need) Equal(o *Need) bool {
	return n.Event == o.Event && slices.Equal(n.Stack, o.Stack) && n.Selected == o.Selected &&
		n.File == o.File && n.Line == o.Line && n.Detail == o.Detail &&
		n.From == o.From && n.To == o.To && n.Cols == o.Cols &&
		n.Tree == o.Tree && n.Invert == o.Invert &&
		n.Centres == o.Centres &&
		n.Sandwich == o.Sandwich && n.Core == o.Core &&
		n.Diff == o.Diff &&
		n.Heap == o.Heap
}

// Compute answers a need.
func (e *Engine) Compute(n Need) *Data {
	d := &Data{Need: n}
	base := fmt.Sprintf("%d %q", n.Event, n.Stack)
	sel, err := e.selection(n.Event, n.Stack)
	if err != nil {
		d.Problem = err.Error()
		sel, _ = e.selection(n.Event, nil)
		base += " failed"
	}
	d.Summary = e.summary.get(base, func() *Summary { return e.summarise(sel) })
	// The parts that look at all samples or stacks are computed side by side.
	var parts sync.WaitGroup
	if n.Cols > 0 && n.To > n.From {
		parts.Go(func() {
			d.Timeline = e.timeline.get(fmt.Sprint(base, n.Selected, n.From, n.To, n.Cols), func() *Timeline { return e.activity(n) })
		})
	}
	if n.File != 0 && int(n.File) < e.p.Files() {
		parts.Go(func() {
			d.Source = e.source.get(fmt.Sprint(base, n.File), func() *Source { return e.file(sel, n.File) })
			if n.Detail {
				d.Line = e.line.get(fmt.Sprint(base, n.File, n.Line), func() *Line { return e.about(sel, d.Source, n.Line) })
			}
		})
	}
	defer parts.Wait()
	d.Hot = e.hot.get(base, func() *Hot { return hot(sel) })
	if n.Selected != NoKey {
		d.Overlap = e.overlap.get(fmt.Sprint(base, n.Selected), func() map[Key]float64 { return overlap(sel, n.Selected) })
	}
	if n.Tree {
		d.Tree = e.tree.get(fmt.Sprint(base, n.Invert), func() *Tree { return modelTree(sel, e.callTree(sel, base, n.Invert), n.Invert) })
	}
	if n.Core {
		d.Core = e.cores.get(fmt.Sprint(base, n.Selected), func() *Core { return e.coreOf(sel, n.Selected) })
	}
	if n.Sandwich != (Function{}) {
		d.Sandwich = e.sandwiches.get(fmt.Sprintf("%s %q", base, n.Sandwich), func() *Sandwich { return e.sandwich(sel, base, n.Sandwich) })
	}
	if n.Centres.On {
		d.Centres = e.centreRows.get(fmt.Sprint(base, n.Centres), func() *CostCentres {
			cc, err := e.costCentres(sel, base, n.Centres)
			if err != nil {
				d.Problem = err.Error()
			}
			return cc
		})
	}
	if n.Heap.On && n.Cols > 0 && n.To > n.From {
		d.Heap = e.heaps.get(fmt.Sprint(n.Heap, n.From, n.To, n.Cols), func() *Heap { return e.heap(n) })
	}
	if n.Diff.On && e.compared != nil {
		d.Diff = e.diff.get(fmt.Sprint(base, n.Diff), func() *Diff { return e.compare(n) })
	}
	return d
}

func (e *Engine) selection(event int, ts []Transform) (*profile.Selection, error) {
	f, err := Filter(event, ts)
	if err != nil {
		return nil, err
	}
	return e.selections.get(fmt.Sprintf("%d %q", event, ts), func() *profile.Selection { return e.p.Select(f) }), nil
}

func (e *Engine) summarise(sel *profile.Selection) *Summary {
	s := sel.Summary()
	ev := sel.EventDef()
	out := &Summary{
		Event: s.Event, Unit: s.Unit, Samples: s.AllSamples, Kept: s.Samples, AllWeight: s.AllTotal, Weight: s.Total,
		Duration: e.p.Duration, Lost: s.Lost, Throttled: s.Throttled,
		Truncated: s.Stacks.Truncated, Failed: s.Stacks.Failed, Unresolved: s.Unresolved, Pending: s.Pending, Events: len(e.p.Events),
	}
	if ev.Granted != "" && ev.Granted != ev.Requested {
		out.Granted = ev.Granted
	}
	a := &e.p.Accounting
	switch {
	case a.Malformed > 0:
		out.Damaged = fmt.Sprintf("damaged: %d bytes unreadable", a.Passed)
	case a.Growing:
		out.Nameless = !e.p.Symbolised
	case !a.Complete || !e.p.HaveEnd && e.p.HaveCapture:
		out.Damaged = "cut off: the log has no end"
	case !e.p.Symbolised && e.p.HaveCapture:
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
			Symbol:  sel.Profile.Binding(el.Binding).Symbol,
			Samples: r.Samples, Category: el.Kind == profile.KindCategory, Module: el.Module, Collapsed: el.Kind == profile.KindCollapsed,
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
		// A file all of whose bindings are collapsed is told by its module.
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
	return out
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
