package profile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
)

// naive computes share, only and inclusive from the definitions, one sample at
// a time.
func naive(s *Selection, level Level) (share, only, inclusive, samples map[ElementID]uint64, total uint64) {
	p, ix := s.Profile, s.index(level)
	share, only, inclusive, samples = map[ElementID]uint64{}, map[ElementID]uint64{}, map[ElementID]uint64{}, map[ElementID]uint64{}
	for i := range p.Samples() {
		if !s.pred.keep(p.Chunks[i/columns.ChunkSize], i%columns.ChunkSize) {
			continue
		}
		sm := p.Sample(i)
		total += sm.Weight
		var leaf []ElementID
		bytes := s.CountsBytes()
		on := map[ElementID]bool{}
		settled, sawSome := false, false
		beyond := false // frames rootwards of what was skipped are no leaf
		for n := sm.Site.Node; n != 0 && p.Nodes.Kind[n] != eventlog.FrameContext; n = p.Nodes.Parent[n] {
			if p.Nodes.Kind[n] == eventlog.FrameSkipped {
				beyond = true
			}
			if columns.Structural(p.Nodes.Kind[n]) {
				continue
			}
			pl := p.Nodes.Place[n]
			ids := ix.of(pl)
			for _, id := range ids {
				on[id] = true
			}
			if len(ids) == 0 || settled || beyond {
				continue
			}
			haskell := p.Locations[pl].Category == eventlog.CategoryHaskell
			if !sawSome || bytes && haskell {
				leaf = ids
			}
			sawSome = true
			settled = !bytes || haskell
		}
		if sm.Site.Kernel {
			leaf = []ElementID{ix.category[eventlog.CategoryKernel]}
		}
		if leaf == nil {
			leaf = []ElementID{ix.category[eventlog.CategoryUnresolved]}
			if s.hide != nil && p.LeafCategory(sm.Site) != eventlog.CategoryUnresolved {
				leaf = []ElementID{ix.hidden}
			}
		}
		for _, id := range leaf {
			on[id] = true
			share[id] += sm.Weight
			samples[id]++
		}
		if len(leaf) == 1 {
			only[leaf[0]] += sm.Weight
		}
		for id := range on {
			inclusive[id] += sm.Weight
		}
	}
	return share, only, inclusive, samples, total
}

// For random logs and filters, the figures of all queries agree with their definitions.
func TestProperties(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 7))
		p, err := Load(bytes.NewReader(logtest.Random(rng)))
		if err != nil {
			t.Fatal(err)
		}
		filters := []Filter{
			{}, Filter{}.WithEvent(1),
			{Focus: []*regexp.Regexp{regexp.MustCompile("M1")}},
			{Ignore: []*regexp.Regexp{regexp.MustCompile(`f[0-3]$|c2`)}},
			{Hide: []*regexp.Regexp{regexp.MustCompile(`f[0-4]$|\(STG\)`)}},
			Filter{Hide: []*regexp.Regexp{regexp.MustCompile(`A\.hs|GC`)}}.WithEvent(1),
			{Range: Range{20, 150}, Caps: []uint32{0, 2}},
		}
		for i, f := range filters {
			s := p.Select(f)
			for level := range levels {
				checkRows(t, fmt.Sprintf("seed %d, filter %d, %v", seed, i, level), s, level)
			}
			checkIdempotent(t, fmt.Sprintf("seed %d, filter %d", seed, i), p, s)
		}
	}
}

func checkRows(t *testing.T, name string, s *Selection, level Level) {
	share, only, inclusive, samples, total := naive(s, level)
	if total != s.Total {
		t.Fatalf("%s: total %d, want %d", name, s.Total, total)
	}
	h := s.Hot(level)
	var sum, onlySum uint64
	seen := map[ElementID]bool{}
	for _, r := range h.Rows {
		id := r.Element.ID
		if seen[id] {
			t.Errorf("%s: %s twice", name, r.Element.Name)
		}
		seen[id] = true
		if r.ShareWeight != share[id] || r.OnlyWeight != only[id] || r.InclusiveWeight != inclusive[id] || r.Samples != samples[id] {
			t.Errorf("%s: %s: share %d only %d inclusive %d samples %d; by the definitions %d %d %d %d", name, r.Element.Name,
				r.ShareWeight, r.OnlyWeight, r.InclusiveWeight, r.Samples, share[id], only[id], inclusive[id], samples[id])
		}
		if r.OnlyWeight > r.ShareWeight || r.ShareWeight > r.InclusiveWeight || r.InclusiveWeight > total || r.NearWeight > r.ShareWeight {
			t.Errorf("%s: %s: only %d ≤ share %d ≤ inclusive %d ≤ total %d does not hold", name, r.Element.Name, r.OnlyWeight, r.ShareWeight, r.InclusiveWeight, total)
		}
		sum += r.ShareWeight
		onlySum += r.OnlyWeight
	}
	if sum < total || onlySum > total {
		t.Errorf("%s: shares sum to %d and what is alone to %d of %d", name, sum, onlySum, total)
	}
	for id := range inclusive {
		if inclusive[id] > 0 && !seen[id] {
			t.Errorf("%s: element %d has no row", name, id)
		}
	}
}

// checkIdempotent: a filter given twice keeps what it keeps given once.
func checkIdempotent(t *testing.T, name string, p *Profile, s *Selection) {
	f := s.Filter
	f.Focus = append(append([]*regexp.Regexp{}, f.Focus...), f.Focus...)
	f.Ignore = append(append([]*regexp.Regexp{}, f.Ignore...), f.Ignore...)
	f.Hide = append(append([]*regexp.Regexp{}, f.Hide...), f.Hide...)
	f.Caps = append(append([]uint32{}, f.Caps...), f.Caps...)
	again := p.Select(f)
	if again.Total != s.Total || again.Samples != s.Samples {
		t.Errorf("%s: filtered again %d of %d samples", name, again.Samples, s.Samples)
	}
	a, b := s.Hot(LevelBinding), again.Hot(LevelBinding)
	if len(a.Rows) != len(b.Rows) {
		t.Fatalf("%s: %d rows, filtered again %d", name, len(a.Rows), len(b.Rows))
	}
	for i := range a.Rows {
		x, y := a.Rows[i], b.Rows[i]
		if x.Element.Name != y.Element.Name || x.ShareWeight != y.ShareWeight || x.InclusiveWeight != y.InclusiveWeight {
			t.Errorf("%s: row %d changed when filtered again: %+v, %+v", name, i, x, y)
		}
	}
}

func mustLoad(t testing.TB, log []byte) *Profile {
	t.Helper()
	p, err := Load(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return p
}
