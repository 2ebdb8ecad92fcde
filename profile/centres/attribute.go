package centres

import (
	"fmt"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// Mode is the rule by which samples are attributed to cost centres.
type Mode uint8

const (
	// ModeLexical attributes to the innermost centre that statically encloses the
	// code, or if none does, to that of the nearest caller that has one (Sansom &
	// Peyton Jones 1997).
	ModeLexical Mode = iota
	// ModeEvaluation attributes to the nearest procedure on the stack that belongs to
	// a centre (§8.1 of the same paper).
	ModeEvaluation
	// ModeStacks attributes to compressed cost-centre stacks (Morgan & Jarvis 1998).
	// The centres are those of ModeLexical.
	ModeStacks
	// ModeExact is ModeStacks on the cost-centre stacks that a -prof binary keeps
	// itself: see Profile.HasCostCentreStacks.
	ModeExact
	modes
)

var modeNames = [modes]string{"lexical", "evaluation", "stacks", "exact"}

// Stacks reports whether the mode attributes to stacks of centres.
func (m Mode) Stacks() bool { return m == ModeStacks || m == ModeExact }

func (m Mode) String() string { return modeNames[min(m, modes-1)] }

// ParseMode parses a mode's name.
func ParseMode(s string) (Mode, error) {
	for m, name := range modeNames {
		if s == name {
			return Mode(m), nil
		}
	}
	return 0, fmt.Errorf("unknown mode %q: choose lexical, evaluation, stacks or exact", s)
}

// Pseudo-centres.
const (
	centreMain       = "MAIN" // cost of no chosen centre
	centreCAF        = "CAF"  // evaluation of a CAF, if in no centre
	centreGC         = "(GC)"
	centreSTG        = "(STG)"
	centreRTS        = "(RTS)"
	centreForeign    = "(foreign)"
	centreKernel     = "(kernel)"
	centreUnresolved = "(unresolved)"
)

// Costs is a selection's weight by cost centre. Each sample belongs to exactly one
// centre, so the individual weights add up to Total.
type Costs struct {
	Mode    Mode
	Centres *Found
	Total   uint64
	Samples uint64
	// Weights by the way in which samples were attributed; the four add up to Total.
	Own      uint64 // the code is in a centre
	Subsumed uint64 // the code of a caller is
	Forced   uint64 // the code of a caller that forced a thunk is; it need not have built the thunk
	Pseudo   uint64 // neither is
	// Deep is the weight in stacks with more centres than the limit. The centres
	// directly below the topmost are left out of these stacks.
	Deep uint64
	// Gap is the part of Subsumed and Forced for which the centre was found beyond
	// frames that were not recorded.
	Gap uint64

	// Rows has a row for each centre, largest individual weight first. In ModeStacks
	// it has a row for each stack, depth first: a stack comes after the one below it.
	// MAIN is at the bottom of all stacks, except those of CAFs and of code that no
	// Haskell thread ran. Rows without samples are left out.
	Rows []Row
	// ByCentre has a row for each centre in every mode, largest inherited weight
	// first.
	ByCentre []Row

	at     []int32 // by site: 1 + the stack that has its samples; 0 if none has
	stacks []stackOf
}

// stackOf is a stack: a centre on top of another stack, or of none (−1).
type stackOf struct{ below, centre int32 }

// Row is the figures of a centre or a stack. Weights are in the event's unit.
type Row struct {
	Centre *Centre // for a stack its topmost centre
	// Parent is the position of the row of the stack below; −1 if there is none.
	Parent int
	id     int32 // of the stack in Costs.stacks, or without stacks of the centre
	figures
}

type figures struct {
	// Individual is the weight of the samples attributed to the row; Inherited is
	// that of the samples with the centre anywhere on their stack, each counted once.
	// A stack inherits from the stacks above it.
	Individual, Inherited uint64
	// Forced and InheritedForced are the parts attributed across an update frame: the
	// centre forced the thunk that caused the cost, but may not have built it.
	Forced, InheritedForced uint64
	Samples                 uint64

	seen bool
}

// Arc is an edge of the call graph: a centre directly above another in stacks.
type Arc struct {
	From, To *Centre
	Stacks   int    // number of distinct stacks that contain it
	Weight   uint64 // weight of the samples of these stacks
}

// standing is the state of the walk at a stack node, besides its centre stack.
type standing struct {
	haskell bool // there is a Haskell frame on the stack
	own     bool // the node's code is in a centre
	update  bool // an update frame, or only structural frames between it and one
	undo    int  // length of the centre stack's undo log before the node
	node    uint32
}

// attribution is the state of one call of Attribute.
type attribution struct {
	s       *profile.Selection
	p       *profile.Profile
	ch      *chains
	centres []Centre // the chosen ones, then pseudo-centres
	pseudo  map[string]int32
	stack   stack
	rows    rows
	out     *Costs
	exact   bool // nodes stand for cost centres
	carried bool // cost-centre stacks come with the samples, separately from their stacks
}

// Attribute attributes a selection's samples to the centres that Find found.
func Attribute(s *profile.Selection, c *Found, mode Mode) *Costs {
	scope := scopeLexical
	if mode == ModeEvaluation {
		scope = scopeProcedure
	}
	a := &attribution{s: s, p: s.Profile, ch: c.chains(scope), centres: slices.Clone(c.List), pseudo: make(map[string]int32),
		out: &Costs{Mode: mode, Centres: c, Total: s.Total, Samples: s.Samples}}
	a.rows.stacks, a.rows.at = mode.Stacks(), make([]int32, len(s.Count))
	a.carried = mode == ModeExact && s.Profile.Exact.Stacks > 0
	a.exact = a.carried || mode == ModeExact && s.Profile.IsCentreLog()
	a.walk()
	a.rows.finish(a)
	return a.out
}

func (a *attribution) pseudoCentre(name, module string) int32 {
	id, ok := a.pseudo[name]
	if !ok {
		id = int32(len(a.centres))
		a.centres = append(a.centres, Centre{Name: name, Module: module, Pseudo: true})
		a.pseudo[name] = id
	}
	return id
}

// walk visits the stacks that have samples, depth first, and maintains the cost-centre
// stack of the current node.
func (a *attribution) walk() {
	p := a.p
	sites, first := a.sites()
	order := p.Order()
	sampled := make([]bool, len(p.Nodes.Parent)) // by node: it or a node above it has samples
	for n := range sampled {
		sampled[n] = first[n] != first[n+1]
	}
	for n := len(sampled) - 1; n > 0; n-- {
		if up := p.Nodes.Caller(uint32(n)); sampled[n] {
			sampled[up] = true
		}
	}
	a.stack.reset(a.root())
	visible := make([]int8, len(p.Places))
	cafs := a.out.Centres.cafs()
	var path []standing
	here := standing{}
	a.samples(sites[first[0]:first[1]], &here) // samples without any frame
	for i := 0; i < len(order.Pre); {
		n := order.Pre[i]
		if !sampled[n] {
			i = int(order.End[i])
			continue
		}
		i++
		up := p.Nodes.Caller(n)
		for len(path) > 0 && path[len(path)-1].node != up {
			a.stack.undo(path[len(path)-1].undo)
			path = path[:len(path)-1]
		}
		here = standing{}
		if len(path) > 0 {
			here = path[len(path)-1]
		}
		here.node, here.own, here.undo = n, false, a.stack.mark()
		a.enter(&here, cafs, visible)
		a.samples(sites[first[n]:first[n+1]], &here)
		path = append(path, here)
	}
}

// root returns the centre at the bottom of stacks: MAIN. In the program's own cost-centre
// stacks MAIN is an ordinary centre.
func (a *attribution) root() int32 {
	if a.out.Mode == ModeExact {
		if i := slices.IndexFunc(a.out.Centres.List, func(c Centre) bool { return c.Name == centreMain }); i >= 0 {
			return int32(i)
		}
	}
	return a.pseudoCentre(centreMain, "MAIN")
}

// enter adds a node to the current path.
func (a *attribution) enter(st *standing, cafs *cafs, visible []int8) {
	p := a.p
	place := p.Nodes.Place[st.node]
	switch k := p.Nodes.Kind[st.node]; {
	case k == eventlog.FrameContext: // the root of a separate tree
	case k == eventlog.FrameSkipped && a.exact: // the lower part of the stack is unknown
		a.stack.base(a.pseudoCentre(centreUnresolved, ""))
	case k == eventlog.FrameSkipped:
		a.stack.push(itemGap)
		st.update = false
	case k == eventlog.FrameUpdate:
		st.update = true
		if cafs.boundary[place] {
			a.stack.base(a.pseudoCentre(centreCAF, ""))
		} else {
			a.stack.push(itemForced)
		}
	case columns.Structural(k):
	default:
		owner := p.Owner(place)
		if st.update && cafs.code[owner] {
			b := &p.Symbols.Bindings[p.Symbols.Bindings[owner].Source]
			a.stack.base(a.pseudoCentre(centreCAF+":"+b.QualifiedName(), b.Module))
		}
		st.update = false
		if c := p.Locations[place].Category; c == eventlog.CategoryHaskell || c == eventlog.CategorySTG {
			st.haskell = true
		}
		chain := a.ch.of[place]
		if a.exact && chain == 0 {
			switch p.Locations[place].Category {
			case eventlog.CategoryGC:
				a.stack.base(a.pseudoCentre(centreGC, ""))
			case eventlog.CategoryRTS:
				a.stack.base(a.pseudoCentre(centreRTS, ""))
			}
		}
		if chain != 0 && a.s.Visible(place, visible) {
			st.own = true
			for _, c := range slices.Backward(a.ch.list[chain]) {
				a.stack.push(c)
			}
		}
	}
}

// sites returns the sampled sites sorted by the node that their cost is attributed to:
// those of node n are sites[first[n]:first[n+1]].
func (a *attribution) sites() (sites []uint32, first []uint32) {
	p := a.p
	bytes := a.s.CountsBytes()
	node := func(i int) uint32 {
		if a.carried {
			return p.Sites[i].Centres
		}
		if leaf := a.s.Leaf[i]; bytes && leaf != 0 {
			return leaf
		}
		return p.Sites[i].Node
	}
	first = make([]uint32, len(p.Nodes.Parent)+1)
	for i, n := range a.s.Count {
		if n > 0 {
			first[node(i)+1]++
		}
	}
	for n := range len(first) - 1 {
		first[n+1] += first[n]
	}
	sites = make([]uint32, first[len(first)-1])
	at := slices.Clone(first)
	for i, n := range a.s.Count {
		if n > 0 {
			sites[at[node(i)]] = uint32(i)
			at[node(i)]++
		}
	}
	return sites, first
}

// samples attributes the samples of the sites of the current node.
func (a *attribution) samples(sites []uint32, st *standing) {
	for _, i := range sites {
		w := a.s.Weight[i]
		a.out.deep(a.stack.depth >= maxStackDepth, w)
		top, forced, gap := a.stack.nearest()
		claimed := !a.centres[top].Pseudo
		if a.carried && st.node == 0 || !claimed && top == a.stack.root && !a.mains(i, st) {
			a.out.Pseudo = columns.SatAdd(a.out.Pseudo, w)
			a.rows.alone(a, a.pseudoCentre(a.category(i, st), ""), i)
			continue
		}
		switch {
		case !claimed:
			a.out.Pseudo = columns.SatAdd(a.out.Pseudo, w)
		case forced:
			a.out.Forced = columns.SatAdd(a.out.Forced, w)
		case st.own:
			a.out.Own = columns.SatAdd(a.out.Own, w)
		default:
			a.out.Subsumed = columns.SatAdd(a.out.Subsumed, w)
		}
		if gap && claimed {
			a.out.Gap = columns.SatAdd(a.out.Gap, w)
		}
		a.rows.add(a, i)
	}
}

func (c *Costs) deep(deep bool, w uint64) {
	if deep {
		c.Deep = columns.SatAdd(c.Deep, w)
	}
}

// mains reports whether samples without any centre belong to MAIN: a Haskell thread was
// running, and its whole stack is known.
func (a *attribution) mains(site uint32, st *standing) bool {
	return st.haskell && !columns.Incomplete(a.p.Sites[site].Stop)
}

// category returns the pseudo-centre of samples outside of Haskell threads, and of
// samples whose stack's root is unknown.
func (a *attribution) category(site uint32, st *standing) string {
	switch c := a.p.LeafCategory(a.p.Sites[site]); {
	case c == eventlog.CategoryGC:
		return centreGC
	case c == eventlog.CategoryKernel:
		return centreKernel
	case c == eventlog.CategoryForeign:
		return centreForeign
	case c == eventlog.CategoryUnresolved, st.haskell, a.carried:
		return centreUnresolved
	case c == eventlog.CategoryRTS:
		return centreRTS
	default:
		return centreSTG
	}
}
