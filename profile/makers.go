package profile

import (
	"cmp"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile/columns"
	"ccagent/profile/curry"
)

// Maker is a function of a functional-logic program for which one of the constructors that stand for non-determinism was made: the
// nearest one of the program on the stack where the constructor's code allocates.
type Maker struct {
	Constructor string // with its module: "Prelude.Bool (choice)"
	// Name is the function's with its module; all three are empty where no function of the program is on the stack.
	Name, Module, Package string
	Sites                 []columns.SiteID // whose samples are the constructor's, in ascending order
}

// Makers returns who had constructors of non-determinism made, by the samples of a selection whose event counts allocated bytes. It
// knows those alone that functions of the run-time system make: where GHC has put a constructor into a function of the program, its
// bytes cannot be told from the function's others.
func (s *Selection) Makers() []Maker {
	p := s.Profile
	if !p.IsCurry() {
		return nil
	}
	t := &costTable{p: p}
	type key struct{ constructor, name, module, pkg string }
	at := map[key]int{}
	var out []Maker
	for site, n := range s.Count {
		leaf := s.Leaf[site]
		if n == 0 || leaf == 0 {
			continue
		}
		of := &p.Symbols.Bindings[t.code(leaf)]
		constructor, _, ok := curry.Makes(of.Name)
		if !ok {
			continue
		}
		k := key{constructor: of.Module + "." + constructor}
		if b := t.searching(leaf); b != 0 {
			x := &p.Symbols.Bindings[b]
			k.name, k.module, k.pkg = x.QualifiedName(), x.Module, x.Package
		}
		i, known := at[k]
		if !known {
			i = len(out)
			at[k] = i
			out = append(out, Maker{Constructor: k.constructor, Name: k.name, Module: k.module, Package: k.pkg})
		}
		out[i].Sites = append(out[i].Sites, columns.SiteID(site))
	}
	slices.SortFunc(out, func(a, b Maker) int {
		return cmp.Or(cmp.Compare(a.Constructor, b.Constructor), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Package, b.Package))
	})
	return out
}

// Certain says of each of the makers of an event whose leaves are constructors' info tables whether its number is as exact as those of places: whether
// no place has values for it and for others too. Behind its leaf a stack has the place, and then the caller, by which values are counted apart where
// the leaf's kind says so (eventlog.SearchEvent).
func (s *Selection) Certain(makers []Maker) []bool {
	p := s.Profile
	type counted struct{ constructor, place, caller uint32 }
	of := map[counted]int{}
	loose := map[counted]bool{} // places that have values whose caller is not known
	certain := make([]bool, len(makers))
	for i := range certain {
		certain[i] = true
	}
	for i, m := range makers {
		for _, site := range m.Sites {
			var k counted
			n := p.Sites[site].Node
			k.constructor = p.Nodes.Place[n]
			if n = p.Nodes.Parent[n]; n != 0 {
				k.place = p.Nodes.Place[n]
				n = p.Nodes.Parent[n]
			}
			if n != 0 && p.Nodes.Kind[p.Sites[site].Node] == eventlog.FrameReturn {
				k.caller = p.Nodes.Place[n]
			} else if n == 0 {
				loose[k] = true
			}
			if other, known := of[k]; known && other != i {
				certain[i], certain[other] = false, false
			}
			of[k] = i
		}
	}
	for k, i := range of {
		if loose[counted{constructor: k.constructor, place: k.place}] {
			certain[i] = false
		}
	}
	return certain
}
