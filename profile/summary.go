package profile

import (
	"cmp"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile/columns"
	"ccagent/profile/interval"
)

// Summary is the figures of a selection that a viewer always shows.
type Summary struct {
	Event      string // its name
	Title      string // its name for readers
	Unit       string
	Samples    uint64 // number of samples kept
	Total      uint64 // their weight
	AllSamples uint64 // samples of the event in the whole log
	AllTotal   uint64
	// Lost and Throttled are those of the event in the whole log. They cannot be
	// filtered, because lost samples have no stacks.
	Lost, Throttled uint64
	// Unresolved is the fraction of the selection whose leaf is unresolved.
	Unresolved float64
	// Pending is the part of Unresolved that may still be resolved because the log is
	// being written.
	Pending float64
	Stacks  Stacks
}

// Stacks counts samples by the way their stacks ended.
type Stacks struct {
	Complete  uint64 // the stack reaches its root
	Truncated uint64 // the walk's budget was spent
	Failed    uint64 // the walk failed
	None      uint64 // there was no Haskell stack: C threads, exiting tasks
	Reasons   map[string]uint64
	// TopsByCFI and TopsScanned count how the topmost Haskell frame was found, for
	// samples that hit Haskell code or C code called from it. For the remaining
	// samples, Sp pointed to it.
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

// Summary returns a selection's figures.
func (s *Selection) Summary() Summary {
	e := s.EventDef()
	sum := Summary{
		Event: e.Name(), Title: e.Title(), Unit: e.Unit, Samples: s.Samples, Total: s.Total,
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

// byCategory returns the weight of each category of leaf.
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

// Category is the part of a selection that a category has.
type Category struct {
	Name   string // name of the eventlog.Category
	Weight uint64
	Share  float64
}

// Categories returns the parts of the selection by the category of the leaf, in the order
// of eventlog.Category. Each sample has exactly one category.
func (s *Selection) Categories() []Category {
	var out []Category
	for c, w := range s.byCategory() {
		out = append(out, Category{eventlog.Category(c).String(), w, s.Fraction(w)})
	}
	return out
}

// SureCategories returns how sure the shares of Categories are, in the same order.
func (s *Selection) SureCategories() []interval.Interval {
	b := s.Batched()
	var sites [Categories][]columns.SiteID
	for site, n := range s.Count {
		if n > 0 {
			c := min(s.Profile.LeafCategory(s.Profile.Sites[site]), eventlog.CategoryKernel)
			sites[c] = append(sites[c], columns.SiteID(site))
		}
	}
	out := make([]interval.Interval, Categories)
	var part interval.Part
	for c := range out {
		b.Sum(&part, sites[c])
		out[c] = b.Share(&part)
	}
	return out
}

// Stacks counts the samples of all events by the way their stacks ended.
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

// Function is a procedure or function of a category, identified by its symbol because it
// is not a source element.
type Function struct {
	Name    string
	Weight  uint64
	Share   float64
	Samples uint64
}

// CategoryFunctions returns the functions at the leaf of a category's samples, largest
// first.
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
		if !slices.ContainsFunc(ids, func(id ElementID) bool {
			return ix.elements[id].Kind == KindCategory && ix.elements[id].Name == category
		}) {
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
