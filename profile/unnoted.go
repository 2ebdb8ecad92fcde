package profile

import (
	"cmp"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// Unnoted is a package with code in a selection that has no source notes.
type Unnoted struct {
	Package string // "containers-0.6.4.1"; "main" for the program's own modules
	Modules []string
	Weight  uint64
	Share   float64
}

// Unnoted returns the packages with samples in code without source notes, largest weight
// first, each with its modules in the same order. A module that has notes is not listed,
// although GHC may generate code in it that corresponds to no source.
func (s *Selection) Unnoted() []Unnoted {
	p := s.Profile
	noted := map[[2]string]bool{}
	for i := range p.Symbols.Spans {
		if b := &p.Symbols.Bindings[p.Symbols.Spans[i].Binding]; p.Symbols.Spans[i].File != 0 {
			noted[[2]string{b.Package, b.Module}] = true
		}
	}
	modules := map[[2]string]uint64{}
	for site, n := range s.Count {
		leaf := s.Leaf[site]
		if n == 0 || leaf == 0 || p.Sites[site].Kernel {
			continue
		}
		id := p.Nodes.Place[leaf]
		l := &p.Locations[id]
		b := &p.Symbols.Bindings[p.Owner(id)]
		k := [2]string{b.Package, b.Module}
		if l.Category == eventlog.CategoryHaskell && b.Package != "" && !noted[k] && !p.hasCauses(id) {
			modules[k] = columns.SatAdd(modules[k], s.Weight[site])
		}
	}
	of := map[string]*Unnoted{}
	keys := make([][2]string, 0, len(modules))
	for k, w := range modules {
		keys = append(keys, k)
		if of[k[0]] == nil {
			of[k[0]] = &Unnoted{Package: k[0]}
		}
		of[k[0]].Weight = columns.SatAdd(of[k[0]].Weight, w)
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
	return len(p.Symbols.Causes(&p.Symbols.Blocks[p.Locations[id].Block])) > 0
}
