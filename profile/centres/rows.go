package centres

import (
	"cmp"
	"slices"

	"ccagent/profile/columns"
)

// rows collects the figures of centres, and also of stacks if the mode has them.
type rows struct {
	stacks  bool
	centres []figures  // by centre
	tree    []stackOf  // by stack; update marks do not make stacks differ
	rows    []stackRow // by stack, if the mode has stacks
	index   pairTable  // maps a row and the centre on top of it to the row of both
	items   []int32    // of the current stack, topmost first, without marks
	forced  []bool     // by item: an update frame lies above it
	path    []uint32   // rows of the current stack, from its bottom
	at      []int32    // by site: 1 + the row of the stack that has its samples
}

// stackRow is the figures of a stack while samples are added.
type stackRow struct {
	figures
	forcedFrom uint64 // weight of the samples whose topmost item below an update frame is this stack's top
}

func (r *rows) centre(a *attribution, item int32) *figures {
	if n := len(a.centres); len(r.centres) < n {
		r.centres = append(r.centres, make([]figures, n-len(r.centres))...)
	}
	return &r.centres[item]
}

// add adds samples of the current stack.
func (r *rows) add(a *attribution, site uint32) {
	r.items, r.forced = r.items[:0], r.forced[:0]
	crossed := false
	for i := a.stack.top; i >= 0; i = a.stack.cells[i].prev {
		switch x := a.stack.cells[i].item; x {
		case itemForced:
			crossed = true
		case itemGap:
		default:
			r.items, r.forced = append(r.items, x), append(r.forced, crossed)
		}
	}
	r.take(a, site)
}

// alone adds samples of a pseudo-centre that is not on a stack.
func (r *rows) alone(a *attribution, item int32, site uint32) {
	r.items, r.forced = append(r.items[:0], item), append(r.forced[:0], false)
	r.take(a, site)
}

func (r *rows) take(a *attribution, site uint32) {
	w, n := a.s.Weight[site], a.s.Count[site]
	for i, x := range r.items {
		r.centre(a, x).inherit(w, r.forced[i])
	}
	r.centre(a, r.items[0]).own(w, n, r.forced[0])
	// Consecutive stacks of the walk share most of their items.
	at, shared := -1, true
	for i := len(r.items) - 1; i >= 0; i-- {
		item, depth := r.items[i], len(r.items)-1-i
		if shared = shared && depth < len(r.path) && r.tree[r.path[depth]].centre == item; shared {
			at = int(r.path[depth])
		} else {
			r.path = append(r.path[:depth], uint32(r.row(at, item)))
			at = int(r.path[depth])
		}
	}
	r.path = r.path[:len(r.items)]
	r.at[site] = int32(at) + 1
	if !r.stacks {
		return
	}
	r.rows[at].own(w, n, r.forced[0])
	// The rows below inherit later: see inherit. An update frame lies above an item
	// and all items below that one, or above none.
	if i := slices.Index(r.forced, true); i >= 0 {
		x := &r.rows[r.path[len(r.items)-1-i]]
		x.forcedFrom = columns.SatAdd(x.forcedFrom, w)
	}
}

// inherit adds to each stack the weights of the stacks above it. A row comes before the
// rows above it.
func (r *rows) inherit() {
	for i := range r.rows {
		x := &r.rows[i]
		x.seen, x.Inherited, x.InheritedForced = true, x.Individual, x.forcedFrom
	}
	for i := len(r.rows) - 1; i >= 0; i-- {
		x := &r.rows[i]
		if parent := r.tree[i].below; parent >= 0 {
			up := &r.rows[parent]
			up.Inherited = columns.SatAdd(up.Inherited, x.Inherited)
			up.InheritedForced = columns.SatAdd(up.InheritedForced, x.InheritedForced)
		}
	}
}

// row returns the row of an item on top of a row's stack, and creates it if needed.
func (r *rows) row(on int, item int32) int {
	k := pair(uint32(on+1), uint32(item))
	id, ok := r.index.get(k)
	if !ok {
		id = uint32(len(r.tree))
		r.tree = append(r.tree, stackOf{int32(on), item})
		if r.stacks {
			r.rows = append(r.rows, stackRow{})
		}
		r.index.put(k, id)
	}
	return int(id)
}

func (c *figures) own(w, n uint64, forced bool) {
	c.Individual = columns.SatAdd(c.Individual, w)
	c.Samples += n
	if forced {
		c.Forced = columns.SatAdd(c.Forced, w)
	}
}

func (c *figures) inherit(w uint64, forced bool) {
	c.seen = true
	c.Inherited = columns.SatAdd(c.Inherited, w)
	if forced {
		c.InheritedForced = columns.SatAdd(c.InheritedForced, w)
	}
}

func compareRows(a, b *Row) int {
	return cmp.Or(cmp.Compare(b.Individual, a.Individual), cmp.Compare(b.Inherited, a.Inherited), cmp.Compare(a.Centre.Name, b.Centre.Name))
}

func (r *rows) finish(a *attribution) {
	out := a.out
	out.at, out.stacks = r.at, slices.Clone(r.tree)
	for i := range r.centres {
		if r.centres[i].seen {
			out.ByCentre = append(out.ByCentre, Row{Centre: &a.centres[i], Parent: -1, id: int32(i), figures: r.centres[i]})
		}
	}
	slices.SortFunc(out.ByCentre, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.Inherited, a.Inherited), compareRows(&a, &b))
	})
	if r.stacks {
		r.inherit()
		out.Rows = r.byDepth(a)
		return
	}
	out.Rows = slices.Clone(out.ByCentre)
	slices.SortFunc(out.Rows, func(a, b Row) int { return compareRows(&a, &b) })
}

// byDepth orders stacks depth first, and the stacks directly above one by inherited
// weight.
func (r *rows) byDepth(a *attribution) []Row {
	// The stacks directly above a row form a linked list: first[row], then next of
	// each.
	first, next := make([]int32, len(r.rows)+1), make([]int32, len(r.rows))
	for i := range first {
		first[i] = -1
	}
	for i := len(r.rows) - 1; i >= 0; i-- {
		up := &first[r.tree[i].below+1]
		next[i], *up = *up, int32(i)
	}
	out := make([]Row, 0, len(r.rows))
	todo := make([][2]int32, 1, 1024) // a row, and its parent's position in out
	todo[0] = [2]int32{-1, -1}
	var above []int32
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		self := int32(-1)
		if at[0] >= 0 {
			self = int32(len(out))
			out = append(out, Row{Centre: &a.centres[r.tree[at[0]].centre], Parent: int(at[1]), id: at[0], figures: r.rows[at[0]].figures})
		}
		above = above[:0]
		for i := first[at[0]+1]; i >= 0; i = next[i] {
			above = append(above, i)
		}
		if len(above) > 1 {
			slices.SortFunc(above, func(i, j int32) int {
				x, y := &r.rows[i], &r.rows[j]
				return cmp.Or(cmp.Compare(x.Inherited, y.Inherited), cmp.Compare(a.centres[r.tree[j].centre].Name, a.centres[r.tree[i].centre].Name))
			})
		}
		for _, i := range above {
			todo = append(todo, [2]int32{i, self})
		}
	}
	return out
}

// Stack returns the centres of a row's stack, topmost first.
func (c *Costs) Stack(i int) []*Centre {
	var out []*Centre
	for ; i >= 0; i = c.Rows[i].Parent {
		out = append(out, c.Rows[i].Centre)
	}
	return out
}

// MostExpensive returns the row of the stack with the largest individual weight; −1 if
// there is none.
func (c *Costs) MostExpensive() int {
	best := -1
	for i := range c.Rows {
		if best < 0 || c.Rows[i].Individual > c.Rows[best].Individual {
			best = i
		}
	}
	return best
}

// Arcs returns the edges of the call graph: pairs of adjacent centres in stacks with
// individual weight. Only ModeStacks has them.
func (c *Costs) Arcs() []Arc {
	index := make(map[[2]*Centre]int)
	var out []Arc
	for i := range c.Rows {
		row := &c.Rows[i]
		if row.Individual == 0 {
			continue
		}
		for j := i; c.Rows[j].Parent >= 0; j = c.Rows[j].Parent {
			k := [2]*Centre{c.Rows[c.Rows[j].Parent].Centre, c.Rows[j].Centre}
			at, ok := index[k]
			if !ok {
				at = len(out)
				out = append(out, Arc{From: k[0], To: k[1]})
				index[k] = at
			}
			out[at].Stacks++
			out[at].Weight = columns.SatAdd(out[at].Weight, row.Individual)
		}
	}
	slices.SortFunc(out, func(a, b Arc) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.From.Name, b.From.Name), cmp.Compare(a.To.Name, b.To.Name))
	})
	return out
}
