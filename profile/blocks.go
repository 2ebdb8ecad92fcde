package profile

import (
	"cmp"
	"slices"

	"ccagent/profile/columns"
)

// BlockShare is a code block with the weight of its samples that share an element. Each
// sample lies in one block, so the shares of an element's blocks add up to its share.
type BlockShare struct {
	Procedure string // linkage name: "Main.$wgo"
	Symbol    string // raw
	Detail    string // how GHC derived it, and from which binding
	Module    uint32
	Lo, Hi    uint64 // module addresses; 0 for code without blocks
	// Own is set if the block has source notes of its own; otherwise its causes are
	// those of enclosing blocks.
	Own     bool
	Weight  uint64
	Share   float64
	Samples uint64
	// Sites are where these samples are, in ascending order.
	Sites []columns.SiteID
}

// Blocks returns the code blocks that an element is a cause of, largest share first. Code
// without blocks counts as one block for each procedure.
func (s *Selection) Blocks(level Level, e ElementID) []BlockShare {
	p, ix := s.Profile, s.index(level)
	type key struct {
		block uint32
		owner columns.BindingID
	}
	at := make(map[key]int)
	var out []BlockShare
	for site, n := range s.Count {
		if n == 0 || p.Sites[site].Kernel || s.Leaf[site] == 0 {
			continue
		}
		if ids, _ := s.leafElements(ix, site); !slices.Contains(ids, e) {
			continue
		}
		place := p.Nodes.Place[s.Leaf[site]]
		k := key{p.Locations[place].Block, p.Owner(place)}
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			b := &p.Symbols.Bindings[k.owner]
			bs := BlockShare{Procedure: b.QualifiedName(), Symbol: b.Symbol, Detail: b.Detail, Module: p.Places[place].Module}
			if k.block != 0 {
				bl := &p.Symbols.Blocks[k.block]
				bs.Lo, bs.Hi = bl.Lo, bl.Hi
				if c := p.Symbols.Causes(bl); len(c) > 0 {
					bs.Own = c[0].Distance == 0
				}
			}
			out = append(out, bs)
		}
		out[i].Weight = columns.SatAdd(out[i].Weight, s.Weight[site])
		out[i].Samples += n
		out[i].Sites = append(out[i].Sites, columns.SiteID(site))
	}
	for i := range out {
		out[i].Share = s.Fraction(out[i].Weight)
	}
	slices.SortFunc(out, func(a, b BlockShare) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), cmp.Compare(a.Lo, b.Lo), cmp.Compare(a.Procedure, b.Procedure))
	})
	return out
}
