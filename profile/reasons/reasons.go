package reasons

import (
	"cmp"
	"slices"
	"strings"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/curry"
)

// The elements that have no source.
const (
	GC         = "(GC)"
	GCWaiting  = "(GC waiting)"
	RTS        = "(RTS)"
	STG        = "(STG)"
	Search     = "(search)" // the run-time system of a functional-logic program
	Foreign    = "(foreign)"
	Kernel     = "(kernel)"
	Unresolved = "(unresolved)"
)

// Part is a part of a selection's total.
type Part struct {
	Name string
	// Functions are the names of the largest functions that the part is in, at most three.
	Functions []string
	Weight    uint64  // in the unit of Reason.Event
	Share     float64 // of the total of Reason.Event
}

// Reason explains an element without source.
type Reason struct {
	Element string
	Share   float64 // of the selection
	Weight  uint64
	Parts   []Part // what it consists of, largest first
	// Causes are the functions that cause it, largest first. If By is set, they are parts of that
	// event, which counts allocated bytes; else parts of the selection.
	Causes []Part
	By     string
	Advice []string // sentences
}

// most is the number of parts and of causes that are kept.
const most = 12

// Explains reports whether an element is one that Of explains.
func Explains(element string) bool {
	switch element {
	case GC, GCWaiting, RTS, STG, Search, Foreign, Kernel, Unresolved:
		return true
	}
	return false
}

// Of explains an element of a selection; nil if it is none that has no source, or has no samples.
func Of(s *profile.Selection, element string) *Reason {
	if !Explains(element) {
		return nil
	}
	p := s.Profile
	r := &Reason{Element: element}
	elements := p.Elements(profile.LevelBinding)
	w := newWalk(s)
	parts, causes := tally{}, tally{}
	for site, n := range s.Count {
		if n == 0 || !slices.ContainsFunc(s.LeafElements(profile.LevelBinding, site), func(id profile.ElementID) bool {
			return int(id) < len(elements) && elements[id].Name == element
		}) {
			continue
		}
		weight := s.Weight[site]
		r.Weight = columns.SatAdd(r.Weight, weight)
		part, function := w.part(element, site)
		parts.add(part, function, weight)
		causes.add(w.cause(site), "", weight)
	}
	if r.Weight == 0 {
		return nil
	}
	r.Share = s.Fraction(r.Weight)
	r.Parts, r.Causes = parts.sorted(s.Total), causes.sorted(s.Total)
	if element == GC || element == GCWaiting {
		r.By, r.Causes = allocation(s)
	}
	if element != Unresolved || !pending(s) {
		r.Advice = advice(r)
	}
	return r
}

// allocation returns who allocated in the time of a selection, by the log's event of allocated
// bytes; nothing if it has none.
func allocation(s *profile.Selection) (event string, by []Part) {
	p := s.Profile
	for i := range p.Events {
		if e := &p.Events[i]; e.Unit != "bytes" || e.Samples == 0 {
			continue
		}
		f := profile.Filter{Range: s.Filter.Range, Hide: s.Filter.Hide, Merge: s.Filter.Merge, Collapse: s.Filter.Collapse}
		made := p.Select(f.WithEvent(i))
		w, t := newWalk(made), tally{}
		for site, n := range made.Count {
			if n > 0 {
				t.add(w.cause(site), "", made.Weight[site])
			}
		}
		return p.Events[i].Name(), t.sorted(made.Total)
	}
	return "", nil
}

// walk looks at the stacks of a selection's sites.
type walk struct {
	s          *profile.Selection
	frames     *profile.Frames
	collecting []uint8
}

func newWalk(s *profile.Selection) *walk {
	return &walk{s, s.Frames(), s.Profile.Collecting()}
}

// frame returns a node's frame; nil if it only structures the stack.
func (w *walk) frame(n uint32) *profile.Frame {
	nodes := &w.s.Profile.Nodes
	if columns.Structural(nodes.Kind[n]) || nodes.Kind[n] == eventlog.FrameSkipped || nodes.Kind[n] == eventlog.FrameContext {
		return nil
	}
	return &w.frames.List[w.frames.Of[nodes.Place[n]]]
}

// The causes that are no function.
const (
	byCollector = "the collector"
	byRTS       = "the run-time system itself"
	byNobody    = "no Haskell code on the stack"
)

// cause returns the function that causes a site's samples.
func (w *walk) cause(site int) string {
	p := w.s.Profile
	node := p.Sites[site].Node
	if w.collecting[node]&profile.InGC != 0 {
		return byCollector
	}
	near, rts := "", false
	for n := node; n != 0; n = p.Nodes.Parent[n] {
		f := w.frame(n)
		switch {
		case f == nil:
		case f.Category == eventlog.CategoryRTS:
			rts = true
		case f.Category != eventlog.CategoryHaskell || f.Kind == profile.KindCategory || f.Search:
		case f.File != "":
			return f.Name
		case near == "":
			near = f.Name
		}
	}
	switch {
	case near != "":
		return near
	case rts:
		return byRTS
	}
	return byNobody
}

// part returns what a site's samples are a part of, and the function that they are in.
func (w *walk) part(element string, site int) (part, function string) {
	p := w.s.Profile
	leaf := w.s.Leaf[site]
	if element == Kernel {
		return w.kernelPart(site)
	}
	if leaf == 0 {
		return unnamed, ""
	}
	f := w.frame(leaf)
	if f == nil {
		return unnamed, ""
	}
	function = f.Name
	if f.Kind == profile.KindCategory {
		return cmp.Or(f.Module, unnamed), ""
	}
	switch element {
	case GC, GCWaiting:
		if w.collecting[p.Sites[site].Node]&profile.GCWaiting != 0 {
			return waiting, function
		}
		return find(collector, function, "other work of the collector"), function
	case RTS:
		return find(runtime, function, "other work of the run-time system"), function
	case STG:
		return find(machine, function, "other primitives"), function
	case Search:
		if !f.Search {
			return inlined, function
		}
		return curry.Part(f.Module, strings.TrimPrefix(function, f.Module+".")), function
	}
	return function, ""
}

// kernelPart returns the system call or trap of a site in the kernel, if kernel stacks were
// recorded, or else the user code that was interrupted or called the kernel.
func (w *walk) kernelPart(site int) (part, function string) {
	p := w.s.Profile
	for n := p.Sites[site].Node; n != 0; n = p.Nodes.Parent[n] {
		f := w.frame(n)
		if f == nil {
			continue
		}
		if p.Nodes.Kind[n] == eventlog.FrameKernel {
			if function == "" {
				function = f.Name
			}
			if entry := kernelEntry(f.Name); entry != "" {
				return entry, function
			}
			continue
		}
		switch {
		case w.collecting[p.Sites[site].Node]&profile.InGC != 0:
			part = "for the collector: page faults on what it copies to, memory taken and given back"
		case f.Category == eventlog.CategoryRTS:
			part = "for the run-time system"
		case f.Category == eventlog.CategoryForeign:
			name, _, _ := strings.Cut(f.Name, "@") // a symbol's version
			part = "called from " + strings.TrimLeft(name, "_")
		default:
			part = "page faults and interrupts of Haskell code"
		}
		return part, cmp.Or(function, f.Name)
	}
	return cmp.Or(function, "without a user stack"), ""
}

// kernelEntry names the system call or trap that a function of the kernel is the entry of; empty if
// it is none.
func kernelEntry(name string) string {
	for _, prefix := range []string{"__x64_sys_", "__arm64_sys_", "__ia32_sys_"} {
		if call, ok := strings.CutPrefix(name, prefix); ok {
			return "system call " + call
		}
	}
	switch {
	case strings.Contains(name, "page_fault"), name == "do_mem_abort":
		return "page faults"
	case strings.Contains(name, "sysvec_"), strings.Contains(name, "_interrupt"):
		return "interrupts"
	}
	return ""
}

// tally adds up weights by name.
type tally map[string]*tallied

type tallied struct {
	weight    uint64
	functions map[string]uint64
}

func (t tally) add(name, function string, w uint64) {
	x := t[name]
	if x == nil {
		x = &tallied{functions: map[string]uint64{}}
		t[name] = x
	}
	x.weight = columns.SatAdd(x.weight, w)
	if function != "" {
		x.functions[function] = columns.SatAdd(x.functions[function], w)
	}
}

// sorted returns the largest parts of a total.
func (t tally) sorted(total uint64) []Part {
	var out []Part
	for name, x := range t {
		q := Part{Name: name, Weight: x.weight}
		if total > 0 {
			q.Share = float64(x.weight) / float64(total)
		}
		for f := range x.functions {
			q.Functions = append(q.Functions, f)
		}
		slices.SortFunc(q.Functions, func(a, b string) int {
			return cmp.Or(cmp.Compare(x.functions[b], x.functions[a]), cmp.Compare(a, b))
		})
		q.Functions = q.Functions[:min(3, len(q.Functions))]
		out = append(out, q)
	}
	slices.SortFunc(out, func(a, b Part) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Name, b.Name))
	})
	return out[:min(most, len(out))]
}
