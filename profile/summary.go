package profile

import (
	"cmp"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// Summary is what a viewer shows at all times of a selection.
type Summary struct {
	Event      string
	Unit       string
	Samples    uint64 // kept
	Total      uint64 // their weight
	AllSamples uint64 // of the event in the whole log
	AllTotal   uint64
	// Lost and Throttled are the event's in the whole log: what was lost has no
	// stack to filter by.
	Lost, Throttled uint64
	// Unresolved is the share of the kept samples whose leaf is unknown.
	Unresolved float64
	// Pending is the part of Unresolved that nobody has looked up yet: the log is
	// still being written.
	Pending float64
	Stacks  Stacks
}

// Stacks counts samples by how their stack ended.
type Stacks struct {
	Complete  uint64 // the root is known
	Truncated uint64 // a budget was spent
	Failed    uint64 // the walk went wrong
	None      uint64 // there was no Haskell stack to walk: C threads, exiting tasks
	Reasons   map[string]uint64
	// Of those that began at Haskell code or in C that it called: how the topmost
	// Haskell frame was found. The others' Sp was at it.
	TopsByCFI, TopsScanned uint64
}

func (st *Stacks) add(r eventlog.StopReason, n uint64) {
	switch {
	case n == 0:
		return
	case r.Complete():
		st.Complete += n
	case r.Truncated():
		st.Truncated += n
	case r == eventlog.StopNoHaskell || r == eventlog.StopNoUserContext:
		st.None += n
	default:
		st.Failed += n
	}
	if st.Reasons == nil {
		st.Reasons = make(map[string]uint64)
	}
	st.Reasons[r.String()] += n
}

// Summary gives a selection's figures.
func (s *Selection) Summary() Summary {
	e := s.EventDef()
	sum := Summary{
		Event: e.Name(), Unit: e.Unit, Samples: s.Samples, Total: s.Total,
		AllSamples: e.Samples, AllTotal: e.Weight, Lost: e.Lost, Throttled: e.Throttled,
		Unresolved: s.Fraction(s.byCategory()[eventlog.CategoryUnresolved]),
	}
	var pending uint64
	for site, n := range s.Count {
		st := s.Profile.Sites[site]
		sum.Stacks.add(st.Stop, n)
		if n > 0 && s.Profile.LeafPending(st) {
			pending = columns.SatAdd(pending, s.Weight[site])
		}
	}
	sum.Pending = s.Fraction(pending)
	return sum
}

// byCategory gives the weight of each category of leaf.
func (s *Selection) byCategory() [Categories]uint64 {
	var out [Categories]uint64
	for site, n := range s.Count {
		if n > 0 {
			c := min(s.Profile.LeafCategory(s.Profile.Sites[site]), eventlog.CategoryKernel)
			out[c] = columns.SatAdd(out[c], s.Weight[site])
		}
	}
	return out
}

// Category is a category's part of a selection.
type Category struct {
	Name   string // eventlog.Category's
	Weight uint64
	Share  float64
}

// Categories gives the parts of the selection by the category of the leaf, in
// the order of eventlog.Category. They partition: each sample has one.
func (s *Selection) Categories() []Category {
	var out []Category
	for c, w := range s.byCategory() {
		out = append(out, Category{eventlog.Category(c).String(), w, s.Fraction(w)})
	}
	return out
}

// Stacks counts the samples of all events by how their stacks ended.
func (p *Profile) Stacks() Stacks {
	var st Stacks
	for i := range p.Events {
		for r, n := range p.Events[i].Stops {
			st.add(eventlog.StopReason(r), n)
		}
		st.TopsByCFI += p.Events[i].TopsByCFI
		st.TopsScanned += p.Events[i].TopsScanned
	}
	return st
}

// Function is a procedure or function that is no source element: code of a
// category, told by its symbol.
type Function struct {
	Name    string
	Weight  uint64
	Share   float64
	Samples uint64
}

// CategoryFunctions tells what code a category's share at the leaf consists
// of, by symbol, largest first.
func (s *Selection) CategoryFunctions(category string) []Function {
	p := s.Profile
	ix := s.index(LevelBinding)
	t := s.Frames()
	acc := make(map[string]*Function)
	for site, n := range s.Count {
		if n == 0 || s.Leaf[site] == 0 || p.Sites[site].Kernel && p.Nodes.Kind[s.Leaf[site]] != eventlog.FrameKernel {
			continue
		}
		ids, _ := s.leafElements(ix, site)
		if len(ids) != 1 || ix.elements[ids[0]].Kind != KindCategory || ix.elements[ids[0]].Name != category {
			continue
		}
		f := &t.List[t.Of[p.Nodes.Place[s.Leaf[site]]]]
		name := f.Name
		if f.Kind == KindCategory {
			name = f.Module
		}
		if name == "" {
			continue
		}
		a := acc[name]
		if a == nil {
			a = &Function{Name: name}
			acc[name] = a
		}
		a.Weight = columns.SatAdd(a.Weight, s.Weight[site])
		a.Samples += n
	}
	return sortFunctions(s, acc)
}

func sortFunctions(s *Selection, acc map[string]*Function) []Function {
	out := make([]Function, 0, len(acc))
	for _, f := range acc {
		f.Share = s.Fraction(f.Weight)
		out = append(out, *f)
	}
	slices.SortFunc(out, func(a, b Function) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Name, b.Name))
	})
	return out
}
