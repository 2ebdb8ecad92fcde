package profile

import (
	"cmp"
	"slices"

	"ccagent/eventlog"
)

// Unnoted is a package's Haskell code without source notes that a selection
// hit.
type Unnoted struct {
	Package string // "containers-0.6.4.1"; "main" for the program's own modules
	Modules []string
	Weight  uint64
	Share   float64
}

// Unnoted lists the packages whose code was hit and has no source notes, by
// weight, largest first; each with its modules, likewise. A module that has
// notes is not listed for code of its own that GHC made of nothing in the
// source.
func (s *Selection) Unnoted() []Unnoted {
	p := s.Profile
	noted := map[[2]string]bool{}
	for i := range p.symbols.spans {
		if b := &p.symbols.bindings[p.symbols.spans[i].Binding]; p.symbols.spans[i].File != 0 {
			noted[[2]string{b.Package, b.Module}] = true
		}
	}
	modules := map[[2]string]uint64{}
	for site, n := range s.count {
		leaf := s.leaf[site]
		if n == 0 || leaf == 0 || p.sites[site].Kernel {
			continue
		}
		id := p.nodes.place[leaf]
		l := &p.locs[id]
		b := &p.symbols.bindings[p.owner(id)]
		k := [2]string{b.Package, b.Module}
		if l.category == eventlog.CategoryHaskell && b.Package != "" && !noted[k] && !p.hasCauses(id) {
			modules[k] = satAdd(modules[k], s.weight[site])
		}
	}
	of := map[string]*Unnoted{}
	keys := make([][2]string, 0, len(modules))
	for k, w := range modules {
		keys = append(keys, k)
		if of[k[0]] == nil {
			of[k[0]] = &Unnoted{Package: k[0]}
		}
		of[k[0]].Weight = satAdd(of[k[0]].Weight, w)
	}
	slices.SortFunc(keys, func(a, b [2]string) int {
		return cmp.Or(cmp.Compare(modules[b], modules[a]), cmp.Compare(a[1], b[1]))
	})
	var out []Unnoted
	for _, k := range keys {
		of[k[0]].Modules = append(of[k[0]].Modules, k[1])
	}
	for _, u := range of {
		u.Share = s.Fraction(u.Weight)
		out = append(out, *u)
	}
	slices.SortFunc(out, func(a, b Unnoted) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Package, b.Package))
	})
	return out
}

func (p *Profile) hasCauses(id uint32) bool {
	bl := &p.symbols.blocks[p.locs[id].block]
	return bl.causes[1] > bl.causes[0]
}
