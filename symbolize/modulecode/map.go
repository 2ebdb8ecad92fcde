package modulecode

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"strings"

	"ccagent/symbolize/elffile"
)

// Module is a Haskell module: "containers-0.6.4.1", "Data.Map.Internal".
type Module struct{ Unit, Name string }

// Home says whose code is from Lo up to Hi, module addresses.
type Home struct {
	Lo, Hi uint64
	// First and Last are the same where the module is known. Else the code is of one of them, or of a module that
	// is linked between them; where First is empty, of Last or of one that is linked before it.
	First, Last Module
	// Unit is the package's unit of all of these; empty if they are of several.
	Unit string
}

// Known reports whether it is known which module's code it is.
func (h *Home) Known() bool { return h.First == h.Last }

// Map says which module code is of.
type Map struct{ bounds []bound } // in the order in which modules are linked

// bound is what is known of where a module's code lies, as module addresses.
type bound struct {
	module Module
	// Code from since on is this module's or one's that is linked later, code up to until this one's or an earlier one's.
	since, until uint64
	// closed is set if the module's code ends with until.
	closed bool
}

// Find reads the marks of a file. The map is empty if there are none, or too many, or their order is not that of the code.
// profiled says that the code is of the profiling way.
func Find(ctx context.Context, f *elffile.File, profiled bool) (*Map, error) {
	im, ok, err := readImage(ctx, f, profiled)
	if err != nil {
		return nil, err
	}
	if !ok {
		return &Map{}, nil
	}
	return &Map{im.bounds()}, nil
}

// At says whose code an address is; false if that is not known at all.
func (m *Map) At(addr uint64) (Home, bool) {
	// The first module that it can be of is the last with code before it, the last one the first with code behind it.
	first := sort.Search(len(m.bounds), func(i int) bool { return m.bounds[i].since > addr }) - 1
	last := sort.Search(len(m.bounds), func(i int) bool { return m.bounds[i].until >= addr })
	if last == len(m.bounds) || first > last {
		return Home{}, false // behind the last module, whose end is not known, lies the run-time system's own code
	}
	h := Home{Hi: m.bounds[last].until + 1, Last: m.bounds[last].module}
	if first < last {
		h.Hi = min(h.Hi, m.bounds[first+1].since)
	}
	if last > 0 {
		h.Lo = m.bounds[last-1].until + 1
	}
	if first < 0 {
		return h, true
	}
	f := &m.bounds[first]
	h.Lo = max(h.Lo, f.since)
	if first == last || !f.closed {
		h.First = f.module
	}
	if f.module.Unit == h.Last.Unit {
		h.Unit = h.Last.Unit
	}
	return h, true
}

// Around narrows a stretch of addresses around one to those of which At says the same.
func (m *Map) Around(addr, lo, hi uint64) (uint64, uint64) {
	h, ok := m.At(addr)
	switch n := len(m.bounds); {
	case ok:
		return max(lo, h.Lo), min(hi, h.Hi)
	case n > 0:
		lo = max(lo, m.bounds[n-1].until+1)
	}
	return lo, hi
}

// mark is a place that is known to be a module's: in the order of code, between lo and hi.
type mark struct {
	lo, hi uint64 // the code of static closures beside it; a constructor's info pointer itself
	module Module
	con    bool
}

// bounds joins the marks to what is known of each module.
func (im *image) bounds() []bound {
	data, ok := im.inData()
	if !ok {
		return nil
	}
	var out []bound
	for _, k := range im.withConstructors(data) {
		if n := len(out); n > 0 && out[n-1].module == k.module {
			b := &out[n-1]
			b.since = min(b.since, k.hi)
			if k.lo >= b.until {
				b.until, b.closed = k.lo, k.con
			}
			continue
		}
		out = append(out, bound{k.module, k.hi, k.lo, k.con})
	}
	return consistent(out)
}

// consistent leaves out modules that come several times, which contradict each other, and those that contradict what was before them.
func consistent(all []bound) []bound {
	times := map[Module]int{}
	for _, b := range all {
		times[b.module]++
	}
	var last bound
	return slices.DeleteFunc(all, func(b bound) bool {
		if times[b.module] > 1 || !b.follows(last) {
			return true
		}
		last = b
		return false
	})
}

// follows reports whether a module can be linked behind another one.
func (b bound) follows(before bound) bool {
	return b.since >= before.since && b.until >= before.until && b.since > before.until && b.until+1 != 0
}

// inOrder is the least part of functions' static closures that lie in the order of their code. All do where nothing was
// moved; words that only look like such closures do not.
const inOrder = 0.99

// inData finds the marks in the data, and where they lie in the code; false if data and code have not the same order.
func (im *image) inData() ([]mark, bool) {
	var order []static // functions and top-level thunks
	modules := map[uint64]Module{}
	var described []uint64 // closures that say which module they are of
	for _, s := range im.statics {
		switch t, ok := im.tables[s.info]; {
		case !ok:
		case t.constructor == "":
			order = append(order, s)
		case isType(t.constructor, "Module"):
			unit, name := im.name(im.field(s.at, 0)), im.name(im.field(s.at, 1))
			if m := (Module{unit, name}); m.valid() {
				modules[s.at] = m
			}
			described = append(described, s.at)
		case isType(t.constructor, "TyCon"):
			described = append(described, s.at)
		}
	}
	rising := longestRising(order)
	if len(rising) == 0 || float64(len(rising)) < inOrder*float64(len(order)) {
		return nil, false
	}
	var marks []mark
	at := func(addr uint64, m Module) {
		i, _ := slices.BinarySearchFunc(rising, addr, func(s static, a uint64) int { return cmp.Compare(s.at, a) })
		if i > 0 && i < len(rising) {
			marks = append(marks, mark{lo: rising[i-1].info, hi: rising[i].info, module: m})
		}
	}
	for _, closure := range described {
		if m, ok := modules[closure]; ok {
			at(closure, m)
		} else if m, ok := modules[im.field(closure, 0)]; ok {
			at(closure, m)
		}
	}
	return marks, true
}

// isType reports whether a constructor is that of a type of GHC.Types, by which modules and types are described.
func isType(full, name string) bool {
	unit, rest, _ := strings.Cut(full, ":")
	return (strings.HasPrefix(unit, "ghc-prim") || strings.HasPrefix(unit, "ghc-internal")) && strings.HasSuffix(rest, ".Types."+name)
}

// name reads the text that a static TrName leads to.
func (im *image) name(closure uint64) string { return im.text(im.payload(closure, 0)) }

// withConstructors adds the constructors' info tables to the marks in the data, by place in the code. One that lies among
// another module's marks says nothing, and neither does one of a module without other marks whose constructors lie apart.
func (im *image) withConstructors(data []mark) []mark {
	type bounds struct{ first, last int } // of the marks in the data before and after which a module's code lies
	homes := map[Module]bounds{}
	for i, k := range data {
		b, ok := homes[k.module]
		if !ok {
			b.first = i
		}
		b.last = i + 1
		homes[k.module] = b
	}
	before := func(info uint64) int {
		i, _ := slices.BinarySearchFunc(data, info, func(k mark, a uint64) int { return cmp.Compare(k.hi, a) })
		return i
	}
	apart := map[Module]bool{}
	all := data[:len(data):len(data)]
	for info, t := range im.tables {
		m, ok := moduleOf(t.constructor)
		if !ok {
			continue
		}
		at := before(info)
		b, marked := homes[m]
		switch {
		case !marked:
			homes[m] = bounds{at, at}
		case at < b.first || at > b.last:
			apart[m] = apart[m] || b.first == b.last
			continue
		}
		all = append(all, mark{info, info, m, true})
	}
	all = slices.DeleteFunc(all, func(k mark) bool { return apart[k.module] })
	slices.SortStableFunc(all, func(a, b mark) int { return cmp.Or(cmp.Compare(a.lo, b.lo), cmp.Compare(a.hi, b.hi)) })
	return all
}

// longestRising gives a longest sequence of static closures, in their order, whose code rises too.
func longestRising(all []static) []static {
	var ends []int // by length less one: the index of the lowest code that a sequence of that length ends with
	before := make([]int32, len(all))
	for i, s := range all {
		n, _ := slices.BinarySearchFunc(ends, s.info, func(j int, a uint64) int {
			if all[j].info <= a {
				return -1
			}
			return 1
		})
		before[i] = -1
		if n > 0 {
			before[i] = int32(ends[n-1])
		}
		if n == len(ends) {
			ends = append(ends, i)
		} else {
			ends[n] = i
		}
	}
	out := make([]static, len(ends))
	if len(ends) == 0 {
		return nil
	}
	for i, at := len(out)-1, ends[len(ends)-1]; i >= 0; i, at = i-1, int(before[at]) {
		out[i] = all[at]
	}
	return out
}
