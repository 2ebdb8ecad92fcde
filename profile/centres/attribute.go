package centres

import (
	"fmt"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
)

// Mode is how samples are attributed to cost centres.
type Mode uint8

const (
	// ModeLexical: the innermost centre that statically encloses the code; where
	// none does, that of the nearest caller which has one (Sansom & Peyton Jones
	// 1997).
	ModeLexical Mode = iota
	// ModeEvaluation: the nearest procedure on the stack that is a centre's
	// (§8.1 of the same).
	ModeEvaluation
	// ModeStacks: cost-centre stacks, compressed (Morgan & Jarvis 1998). The
	// centres are those of ModeLexical.
	ModeStacks
	// ModeExact is ModeStacks on the cost-centre stacks that a -prof binary kept
	// itself: see Profile.HasCostCentreStacks.
	ModeExact
	modes
)

var modeNames = [modes]string{"lexical", "evaluation", "stacks", "exact"}

// Stacks reports whether the mode gives figures of stacks.
func (m Mode) Stacks() bool { return m == ModeStacks || m == ModeExact }

func (m Mode) String() string { return modeNames[min(m, modes-1)] }

// ParseMode reads a mode's name.
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
	centreMain       = "MAIN" // what nothing chosen claims
	centreCAF        = "CAF"  // a CAF's evaluation, as far as no centre claims it
	centreGC         = "(GC)"
	centreSTG        = "(STG)"
	centreForeign    = "(foreign)"
	centreKernel     = "(kernel)"
	centreUnresolved = "(unresolved)"
)

// Costs is a selection's weight by cost centre. Each sample belongs to
// exactly one, whatever centres are chosen: the individual weights sum to Total.
type Costs struct {
	Mode    Mode
	Centres *Found
	Total   uint64
	Samples uint64
	// How samples came to their centres; the four sum to Total.
	Own      uint64 // the code lies in a centre
	Subsumed uint64 // a caller does
	Forced   uint64 // so does one who forced a thunk, which it need not have built
	Pseudo   uint64 // none does
	// Deep is the weight in stacks of more centres than are kept: the centres
	// right below the topmost are left out of them.
	Deep uint64
	// Gap is the part of Subsumed and Forced that went past frames which were
	// not recorded.
	Gap uint64

	// Rows has a row for each centre by individual weight, largest first; in
	// ModeStacks one for each stack, depth first: a stack comes after the one that
	// it stands on. MAIN is at the bottom of all stacks but those of CAFs and of
	// what is no Haskell thread's. What no sample has is left out.
	Rows []Row
	// ByCentre has a row for each centre in every mode, by inherited weight,
	// largest first.
	ByCentre []Row
}

// Row is a centre or a stack with its figures. Weights are in the event's
// unit.
type Row struct {
	Centre *Centre // of a stack: the topmost
	// Parent is the position of the stack that it stands on; −1 if there is none.
	Parent int
	figures
}

type figures struct {
	// Individual is the weight of the samples attributed to it; Inherited of
	// those that have it anywhere on their stack, each counted once. A stack
	// inherits from the stacks above it.
	Individual, Inherited uint64
	// Forced and InheritedForced are the parts that came across an update frame:
	// the centre forced the thunk that cost it, and need not have built it.
	Forced, InheritedForced uint64
	Samples                 uint64

	seen bool
}

// Arc is that one centre stands on another in stacks.
type Arc struct {
	From, To *Centre
	Stacks   int    // distinct stacks that have it
	Weight   uint64 // of the samples of these
}

// standing is what is known of a stack node besides its centre stack.
type standing struct {
	haskell bool // a Haskell frame is on the stack
	own     bool // the node's code lies in a centre
	update  bool // the node is an update frame, or stands on one by structural frames alone
	undo    int  // of the centre stack's log, before the node
	node    uint32
}

// attribution is one query's work.
type attribution struct {
	s       *profile.Selection
	p       *profile.Profile
	ch      *chains
	centres []Centre // chosen ones, then pseudo-centres
	pseudo  map[string]int32
	stack   stack
	rows    rows
	out     *Costs
	exact   bool // nodes stand for cost centres
	carried bool // of stacks that samples have beside their own
}

// Attribute attributes a selection's samples to the centres that were found.
func Attribute(s *profile.Selection, c *Found, mode Mode) *Costs {
	scope := scopeLexical
	if mode == ModeEvaluation {
		scope = scopeProcedure
	}
	a := &attribution{s: s, p: s.Profile, ch: c.chains(scope), centres: slices.Clone(c.List), pseudo: make(map[string]int32),
		out: &Costs{Mode: mode, Centres: c, Total: s.Total, Samples: s.Samples}}
	a.rows.stacks = mode.Stacks()
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

// walk goes depth first through the stacks that have samples and keeps the
// cost-centre stack of where it is.
func (a *attribution) walk() {
	p := a.p
	sites, first := a.sites()
	order := p.Order()
	sampled := make([]bool, len(p.Nodes.Parent)) // the node or something on top of it
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
	a.samples(sites[first[0]:first[1]], &here) // those without any frame
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

// root is the centre at the bottom of stacks: MAIN, which the program's own
// stacks have for a centre like any other.
func (a *attribution) root() int32 {
	if a.out.Mode == ModeExact {
		if i := slices.IndexFunc(a.out.Centres.List, func(c Centre) bool { return c.Name == centreMain }); i >= 0 {
			return int32(i)
		}
	}
	return a.pseudoCentre(centreMain, "MAIN")
}

// enter takes a node on the path.
func (a *attribution) enter(st *standing, cafs *cafs, visible []int8) {
	p := a.p
	place := p.Nodes.Place[st.node]
	switch k := p.Nodes.Kind[st.node]; {
	case k == eventlog.FrameContext: // the root of a tree of its own
	case k == eventlog.FrameSkipped && a.exact: // the stack's way down is not known
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
				a.stack.base(a.pseudoCentre(centreSTG, ""))
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

// sites lists the sampled sites by the node that bears their cost: those of node
// n are sites[first[n]:first[n+1]].
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

// samples attributes the samples of sites whose cost the current node bears.
func (a *attribution) samples(sites []uint32, st *standing) {
	for _, i := range sites {
		w, n := a.s.Weight[i], a.s.Count[i]
		a.out.deep(a.stack.depth >= maxStackDepth, w)
		top, forced, gap := a.stack.nearest()
		claimed := !a.centres[top].Pseudo
		if a.carried && st.node == 0 || !claimed && top == a.stack.root && !a.mains(i, st) {
			a.out.Pseudo = columns.SatAdd(a.out.Pseudo, w)
			a.rows.alone(a, a.pseudoCentre(a.category(i, st), ""), w, n)
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
		a.rows.add(a, w, n)
	}
}

func (c *Costs) deep(deep bool, w uint64) {
	if deep {
		c.Deep = columns.SatAdd(c.Deep, w)
	}
}

// mains reports whether samples without any centre are MAIN's: a Haskell thread
// ran, and all of its stack is known.
func (a *attribution) mains(site uint32, st *standing) bool {
	return st.haskell && !columns.Incomplete(a.p.Sites[site].Stop)
}

// category names the pseudo-centre of samples that are no Haskell thread's, or
// of one whose stack's root is not known.
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
	default:
		return centreSTG
	}
}
