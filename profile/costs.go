package profile

import (
	"cmp"
	"slices"
	"strings"

	"ccagent/eventlog"
	"ccagent/internal/ghc"
	"ccagent/profile/columns"
	"ccagent/profile/curry"
)

// BindingCosts estimates from samples the parts that the evaluation of a binding consists
// of: the symbolic costs of Brassel et al. 2004, as far as sampling can measure them. All
// are weights of samples. Samples do not count how often something was done, so they do
// not give the cost of one operation.
type BindingCosts struct {
	Name    string
	Module  string
	Package string
	// Own is the weight of samples in the binding's code.
	Own uint64
	// Update is the weight of samples in the update of a thunk that the binding is
	// evaluating (U). Apply is that of samples in the generic application and
	// evaluation of unknown values for the binding (F, V).
	Update, Apply uint64
	// Cases is the weight of samples in which a case of the binding waits for its
	// scrutinee (C); Thunks is that of samples in which a thunk of its code is being
	// evaluated (V). A sample counts once for a binding.
	Cases, Thunks uint64
	// Made is the number of bytes that its code allocated (H), from MadeSamples
	// samples.
	Made, MadeSamples uint64
	// Search is the weight of samples in the run-time system of a functional-logic program
	// (N, B), and MadeSearch the bytes allocated there, for the binding: the nearest function
	// of the program on the stack.
	Search, MadeSearch uint64
	// Depth is the mean number of frames of search strategies below those of the samples that Own, Update, Apply and Search have that are above
	// one, by weight; 0 where none is. See Search.
	Depth float64
	deep  uint64 // the weight of those samples
}

// Costs are the estimates for all bindings of a selection.
type Costs struct {
	Rows []BindingCosts // ordered by Own, Made, Cases, largest first
	// Total is the selection's weight, Made that of the event that counts bytes; 0 if
	// the log has none.
	Total, Made uint64
}

// costKind is the operation that a leaf in the RTS performs for its caller.
type costKind uint8

const (
	costOther costKind = iota
	costUpdate
	costApply
	costSearch
)

// costOf returns the operation of a symbol of rts/Updates.cmm, Apply.cmm or
// AutoApply.cmm.
func costOf(symbol string) costKind {
	switch {
	case strings.HasPrefix(symbol, ghc.UpdateFrameName), strings.HasPrefix(symbol, ghc.CAFUpdateFrameName), strings.HasPrefix(symbol, ghc.MarkedUpdateFrameName):
		return costUpdate
	case strings.HasPrefix(symbol, "stg_ap_"), strings.HasPrefix(symbol, "stg_enter"), strings.HasPrefix(symbol, "stg_PAP"), strings.HasPrefix(symbol, "stg_AP"):
		return costApply
	}
	return costOther
}

// costTable collects the estimates by source binding.
type costTable struct {
	p    *Profile
	of   []int32 // by binding: 1 + its row
	rows []BindingCosts
	// Of functional-logic programs alone.
	strategy []bool
	waits    []bool
}

func (t *costTable) row(b columns.BindingID) *BindingCosts {
	if t.of[b] == 0 {
		x := &t.p.Symbols.Bindings[b]
		t.rows = append(t.rows, BindingCosts{Name: x.QualifiedName(), Module: x.Module, Package: x.Package})
		t.of[b] = int32(len(t.rows))
	}
	return &t.rows[t.of[b]-1]
}

// Costs estimates the costs of bindings from the selection's samples and, if made is not
// nil, from the samples in made, whose event counts allocated bytes.
func (s *Selection) Costs(made *Selection) *Costs {
	t := &costTable{p: s.Profile, of: make([]int32, len(s.Profile.Symbols.Bindings))}
	if s.Profile.IsCurry() {
		t.strategy = s.Profile.strategies()
	}
	out := &Costs{Total: s.Total}
	t.times(s)
	for i := range t.rows {
		if r := &t.rows[i]; r.Depth > 0 {
			r.Depth /= float64(r.deep)
		}
	}
	if made != nil {
		out.Made = made.Total
		for i, n := range made.Count {
			leaf := made.Leaf[i]
			if n == 0 || leaf == 0 {
				continue
			}
			b := t.code(leaf)
			switch {
			case b == 0:
			case t.p.Searches(b):
				if b := t.searching(leaf); b != 0 {
					r := t.row(b)
					r.MadeSearch = columns.SatAdd(r.MadeSearch, made.Weight[i])
				}
			default:
				r := t.row(b)
				r.Made, r.MadeSamples = columns.SatAdd(r.Made, made.Weight[i]), r.MadeSamples+n
			}
		}
	}
	out.Rows = t.rows
	slices.SortFunc(out.Rows, func(a, b BindingCosts) int {
		return cmp.Or(cmp.Compare(b.Own+b.Update+b.Apply+b.Search, a.Own+a.Update+a.Apply+a.Search), cmp.Compare(b.Made, a.Made), cmp.Compare(b.Cases, a.Cases), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// code returns the source binding of a node's code, 0 if it is not Haskell code.
func (t *costTable) code(n uint32) columns.BindingID {
	p := t.p
	if columns.Structural(p.Nodes.Kind[n]) || p.Locations[p.Nodes.Place[n]].Category != eventlog.CategoryHaskell {
		return 0
	}
	o := p.Owner(p.Nodes.Place[n])
	if o == 0 {
		return 0
	}
	return p.Symbols.Bindings[o].Source
}

// searching returns the nearest function of the program that a node of search is called by, 0 if
// there is none.
func (t *costTable) searching(n uint32) columns.BindingID {
	for ; n != 0; n = t.p.Nodes.Parent[n] {
		if t.p.Nodes.Kind[n] == eventlog.FrameContext {
			return 0
		}
		if b := t.code(n); b != 0 && !t.p.Searches(b) {
			if _, _, makes := curry.Makes(t.p.Symbols.Bindings[b].Name); makes {
				continue // a constructor's own code, which is of a module of the program
			}
			return b
		}
	}
	return 0
}

// times walks the stacks depth first. It adds the weight of all samples above a frame to
// the frame's binding, once for the outermost frame of each cost of the binding.
func (t *costTable) times(s *Selection) {
	p := s.Profile
	order := p.Order()
	above := make([]uint64, len(p.Nodes.Parent))
	for i, n := range s.Count {
		if n > 0 {
			above[p.Sites[i].Node] = columns.SatAdd(above[p.Sites[i].Node], s.Weight[i])
			t.leaf(s, uint32(i))
		}
	}
	for _, n := range slices.Backward(order.Pre) {
		up := p.Nodes.Caller(n)
		above[up] = columns.SatAdd(above[up], above[n])
	}
	type open struct {
		node         uint32
		binding      columns.BindingID
		cases, thunk bool // counted for this frame
		update       bool // an update frame, or only structural frames between it and one
	}
	waits, thunks := make([]bool, len(p.Symbols.Bindings)), make([]bool, len(p.Symbols.Bindings))
	var path []open
	for i := 0; i < len(order.Pre); {
		n := order.Pre[i]
		if above[n] == 0 {
			i = int(order.End[i])
			continue
		}
		i++
		up := p.Nodes.Caller(n)
		for len(path) > 0 && path[len(path)-1].node != up {
			last := &path[len(path)-1]
			waits[last.binding] = waits[last.binding] && !last.cases
			thunks[last.binding] = thunks[last.binding] && !last.thunk
			path = path[:len(path)-1]
		}
		at := open{node: n, binding: t.code(n)}
		onUpdate := len(path) > 0 && path[len(path)-1].update
		k := p.Nodes.Kind[n]
		at.update = k == eventlog.FrameUpdate || onUpdate && columns.Structural(k)
		if b := at.binding; b != 0 && !p.Searches(b) {
			if k == eventlog.FrameReturn && !waits[b] {
				waits[b], at.cases = true, true
				t.row(b).Cases = columns.SatAdd(t.row(b).Cases, above[n])
			}
			if onUpdate && !thunks[b] {
				thunks[b], at.thunk = true, true
				t.row(b).Thunks = columns.SatAdd(t.row(b).Thunks, above[n])
			}
		}
		path = append(path, at)
	}
}

// leaf adds the samples of a site to the binding whose code they hit, or to the nearest
// caller for RTS code.
func (t *costTable) leaf(s *Selection, site uint32) {
	p := t.p
	kind := costOther
	for n := p.Sites[site].Node; n != 0; n = p.Nodes.Parent[n] {
		k := p.Nodes.Kind[n]
		if k == eventlog.FrameContext || k == eventlog.FrameSkipped || k == eventlog.FrameKernel {
			return
		}
		if columns.Structural(k) {
			continue
		}
		if b := t.code(n); b != 0 {
			if t.p.Searches(b) {
				kind = costSearch
				continue
			}
			r, w := t.row(b), s.Weight[site]
			switch kind {
			case costSearch:
				r.Search = columns.SatAdd(r.Search, w)
			case costUpdate:
				r.Update = columns.SatAdd(r.Update, w)
			case costApply:
				r.Apply = columns.SatAdd(r.Apply, w)
			default:
				if n != p.Sites[site].Node {
					return
				}
				r.Own = columns.SatAdd(r.Own, w)
			}
			if t.strategy != nil {
				if d := t.depth(columns.SiteID(site), t.strategy, &t.waits); d.frames > 0 {
					r.Depth += float64(w) * d.frames
					r.deep = columns.SatAdd(r.deep, w)
				}
			}
			return
		}
		if n == p.Sites[site].Node {
			if o := p.Owner(p.Nodes.Place[n]); o != 0 {
				kind = costOf(p.Symbols.Bindings[o].Symbol)
			}
		}
	}
}
