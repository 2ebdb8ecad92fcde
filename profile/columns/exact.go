package columns

import (
	"maps"
	"slices"

	"ccagent/eventlog"
)

// ExactStacks counts the samples that carry a cost-centre stack, which programs built
// with -prof keep at run time.
type ExactStacks struct {
	Centres, Stacks int
	// Samples counts the samples whose cost-centre stack is known down to its bottom.
	Samples uint64
	// Unknown counts the samples without one: no Haskell thread ran, or its registers
	// could not be read.
	Unknown uint64
	// Problems counts the samples whose stack is incomplete, by
	// eventlog.CentreProblem.
	Problems map[string]uint64
}

// exactState collects the cost-centre stacks of a capture, by the log's ids.
type exactState struct {
	defs    map[uint32]eventlog.CentreDef
	stacks  map[uint32]eventlog.CentreStack
	samples map[uint32]uint64
}

func (t *stackTable) centreDef(ev *eventlog.CentreDef) {
	if _, twice := t.exact.defs[ev.ID]; twice || ev.ID == 0 {
		t.p.Accounting.Redefined++
		return
	}
	if t.exact.defs == nil {
		t.exact.defs = make(map[uint32]eventlog.CentreDef)
	}
	t.exact.defs[ev.ID] = *ev
}

func (t *stackTable) centreStack(ev *eventlog.CentreStack) {
	if _, twice := t.exact.stacks[ev.ID]; twice || ev.ID == 0 {
		t.p.Accounting.Redefined++
		return
	}
	if t.exact.stacks == nil {
		t.exact.stacks = make(map[uint32]eventlog.CentreStack)
	}
	t.exact.stacks[ev.ID] = *ev
}

func (t *stackTable) centreSamples(id uint32, n uint64) {
	if id == 0 {
		return
	}
	if t.exact.samples == nil {
		t.exact.samples = make(map[uint32]uint64)
	}
	t.exact.samples[id] += n
}

// exactModule is the module id of places that stand for cost centres. No log defines a
// module with this id.
const exactModule = ^uint32(0)

// exactTable builds nodes for cost-centre stacks, after everything else is resolved. The
// node of a stack refers to a place that stands for the stack's topmost centre.
type exactTable struct {
	*exactState
	p       *Log
	places  map[uint32]uint32 // by CentreDef.ID
	gap     uint32            // root node of stacks whose lower part is unknown
	nodes   map[[2]uint32]uint32
	of      map[uint32]exactNode // by CentreStack.ID
	sources map[[2]string]BindingID
	files   map[string]FileID
}

type exactNode struct {
	node    uint32
	problem eventlog.CentreProblem // of this stack or one below it
}

// finishExact resolves the cost-centre stacks of sites.
func (st *stackTable) finishExact() {
	p := st.p
	p.noted = len(p.Symbols.causes) > 0
	if len(st.exact.samples) == 0 {
		return
	}
	t := &exactTable{
		exactState: &st.exact, p: p, places: make(map[uint32]uint32), nodes: make(map[[2]uint32]uint32), of: make(map[uint32]exactNode),
	}
	p.Exact.Problems = make(map[string]uint64)
	for _, id := range slices.Sorted(maps.Keys(st.exact.samples)) {
		n := t.stack(id)
		switch {
		case n.problem != eventlog.CentreWhole:
			p.Exact.Problems[n.problem.String()] += st.exact.samples[id]
		default:
			p.Exact.Samples += st.exact.samples[id]
		}
	}
	for i := range p.Sites {
		p.Sites[i].Centres = t.of[p.Sites[i].Centres].node
	}
	p.Exact.Unknown = uint64(p.nsamples) - p.Exact.Samples
	for _, n := range p.Exact.Problems {
		p.Exact.Unknown -= n
	}
	p.Exact.Centres, p.Exact.Stacks = len(t.places), len(t.nodes)
}

// stack returns a stack's node, or 0 if nothing is known of it. It builds the stacks
// below first. A cycle in the log ends the stack there as incomplete.
func (t *exactTable) stack(id uint32) exactNode {
	var path []eventlog.CentreStack
	at := exactNode{problem: eventlog.CentreWhole}
	for id != 0 {
		if known, ok := t.of[id]; ok {
			at = known
			break
		}
		st, ok := t.stacks[id]
		if !ok {
			at = exactNode{0, eventlog.CentreLost}
			t.of[id] = at
			break
		}
		t.of[id] = exactNode{0, eventlog.CentreImplausible} // marks a stack whose lower part is being built
		path = append(path, st)
		id = st.Parent
	}
	for i := len(path) - 1; i >= 0; i-- {
		st := &path[i]
		if st.Problem != eventlog.CentreWhole {
			at = exactNode{0, min(st.Problem, eventlog.CentreLost)}
		}
		if def, ok := t.defs[st.Centre]; ok {
			if at.node == 0 && at.problem != eventlog.CentreWhole {
				at.node = t.missing()
			}
			at.node = t.node(at.node, eventlog.FramePC, t.place(st.Centre, &def))
		} else if at.problem == eventlog.CentreWhole {
			at.problem = eventlog.CentreUnreadable
		}
		t.of[st.ID] = at
	}
	return at
}

// missing returns the node that stands for the unknown lower part of a stack.
func (t *exactTable) missing() uint32 {
	if t.gap == 0 {
		t.gap = t.append(0, eventlog.FrameSkipped, t.newPlace(Place{Class: PlaceSkipped}, Location{}))
	}
	return t.gap
}

func (t *exactTable) node(parent uint32, kind eventlog.FrameKind, pl uint32) uint32 {
	k := [2]uint32{parent, pl}
	id, ok := t.nodes[k]
	if !ok {
		id = t.append(parent, kind, pl)
		t.nodes[k] = id
	}
	return id
}

func (t *exactTable) append(parent uint32, kind eventlog.FrameKind, pl uint32) uint32 {
	n := &t.p.Nodes
	n.Parent, n.Kind, n.Place = append(n.Parent, parent), append(n.Kind, kind), append(n.Place, pl)
	return uint32(len(n.Parent) - 1)
}

func (t *exactTable) newPlace(pl Place, l Location) uint32 {
	t.p.Places, t.p.Locations = append(t.p.Places, pl), append(t.p.Locations, l)
	return uint32(len(t.p.Places) - 1)
}

// place returns the place that stands for a cost centre: a block of the binding that is
// the centre's label, with the centre's source position as its source note.
func (t *exactTable) place(id uint32, def *eventlog.CentreDef) uint32 {
	if pl, ok := t.places[id]; ok {
		return pl
	}
	s := &t.p.Symbols
	l := Location{Quality: eventlog.QualityExact, Category: centreCategory(def.Label, def.Module), found: true}
	l.Binding = t.binding(def, l.Category)
	if file, x, ok := parseSrcLoc(def.SrcLoc); ok && l.Category == eventlog.CategoryHaskell {
		s.Spans = append(s.Spans, Span{File: t.file(file), Binding: l.Binding, Extent: x})
		bl := Block{Module: exactModule, Lo: uint64(id), Hi: uint64(id) + 1, Binding: l.Binding}
		bl.causes = [2]uint32{uint32(len(s.causes)), uint32(len(s.causes)) + 1}
		bl.enclosing = [2]uint32{uint32(len(s.enclosing)), uint32(len(s.enclosing))}
		s.causes = append(s.causes, Cause{Span: SpanID(len(s.Spans) - 1)})
		l.Block = uint32(len(s.Blocks))
		s.Blocks = append(s.Blocks, bl)
	}
	pl := t.newPlace(Place{Class: PlaceUser, Module: exactModule, Addr: uint64(id)}, l)
	t.places[id] = pl
	return pl
}

// binding returns the source binding that a centre's label names, and creates it if
// needed.
func (t *exactTable) binding(def *eventlog.CentreDef, c eventlog.Category) BindingID {
	s := &t.p.Symbols
	if t.sources == nil {
		t.sources = make(map[[2]string]BindingID)
		for i := len(s.Bindings) - 1; i > 0; i-- {
			if b := &s.Bindings[i]; b.Source == BindingID(i) && b.Module != "" {
				t.sources[[2]string{b.Module, b.Name}] = BindingID(i)
				t.sources[[2]string{b.Module, ""}] = BindingID(i)
			}
		}
	}
	b := Binding{Symbol: def.Label, Module: centreModule(def.Label, def.Module), Name: def.Label, Category: c}
	key := [2]string{b.Module, b.Name}
	if id, ok := t.sources[key]; ok && b.Module != "" {
		return id
	}
	if of, ok := t.sources[[2]string{b.Module, ""}]; ok && b.Module != "" {
		b.Package = s.Bindings[of].Package
	}
	id := BindingID(len(s.Bindings))
	b.Source = id
	s.Bindings = append(s.Bindings, b)
	t.sources[key] = id
	return id
}

func (t *exactTable) file(path string) FileID {
	s := &t.p.Symbols
	if t.files == nil {
		t.files = make(map[string]FileID)
		for i := len(s.Files) - 1; i > 0; i-- {
			t.files[s.Files[i].Path] = FileID(i)
		}
	}
	id, ok := t.files[path]
	if !ok {
		id = FileID(len(s.Files))
		s.Files = append(s.Files, File{Path: path})
		t.files[path] = id
	}
	return id
}

// HasCostCentreStacks reports whether the log's samples carry the running cost-centre
// stack of a -prof binary: captures of such binaries do, and logs of the RTS's own time
// profiler.
func (p *Log) HasCostCentreStacks() bool { return p.Exact.Stacks > 0 || p.IsCentreLog() }

// IsCentreLog reports whether the log comes from the RTS's own time profiler. The stacks
// of such a log are themselves cost-centre stacks.
func (p *Log) IsCentreLog() bool {
	return !p.HaveCapture && slices.ContainsFunc(p.Modules, func(m Module) bool { return m.ID == costCentreModule })
}
