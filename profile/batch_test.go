package profile_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/interval"
	"ccagent/profile/logtest"
)

// At every level and under filters, each row's interval holds its share, effective samples
// are at most the samples, and the batches add up to the selection.
func TestEveryRowHasAnInterval(t *testing.T) {
	for seed := range uint64(10) {
		p, err := profile.Load(bytes.NewReader(logtest.Random(rand.New(rand.NewPCG(seed, 4)))))
		if err != nil {
			t.Fatal(err)
		}
		for event := range p.Events {
			for _, f := range []profile.Filter{{}, {Range: profile.Range{From: 50, To: 120}}, {Caps: []uint32{1}}, {Threads: []uint64{1, 2}}} {
				s := p.Select(f.WithEvent(event))
				b := s.Batched()
				sum := 0.0
				for _, w := range b.Batch {
					sum += w
				}
				if b.Samples != s.Samples || b.Weight != float64(s.Total) || sum != b.Weight || b.Effective() > float64(s.Samples) {
					t.Errorf("seed %d event %d: %d samples of %v in batches of %v; the selection has %d of %d", seed, event, b.Samples, b.Weight, sum, s.Samples, s.Total)
				}
				for i, sure := range s.SureCategories() {
					if c := s.Categories()[i]; !holds(sure, c.Share) {
						t.Errorf("seed %d event %d: category %s has %v: %+v", seed, event, c.Name, c.Share, sure)
					}
				}
				for _, level := range profile.Levels {
					rows := s.Hot(level).Rows
					ids := make([]profile.ElementID, len(rows))
					for i := range rows {
						ids[i] = rows[i].Element.ID
					}
					for i, parts := range s.SurePartsOf(level, ids, s.SureOf(level, ids)) {
						r := &rows[i]
						if !holds(parts.Only, r.Only) || !holds(parts.Inclusive, r.Inclusive) || r.Inclusive == 0 && parts.Inclusive.Effective > 0 {
							t.Errorf("seed %d event %d %v: %s has only %v, inclusive %v: %+v", seed, event, level, r.Element.Name, r.Only, r.Inclusive, parts)
						}
					}
					for i, sure := range s.Sure(level, len(rows)) {
						r := &rows[i]
						if !(0 <= sure.Low && sure.Low <= r.Share && r.Share <= sure.High && sure.High <= 1) || sure.Effective > float64(r.Samples) || math.IsNaN(sure.High) {
							t.Errorf("seed %d event %d %v: %s has a share of %v of %d samples: %+v", seed, event, level, r.Element.Name, r.Share, r.Samples, sure)
						}
					}
				}
			}
		}
	}
}

func holds(i interval.Interval, share float64) bool {
	return 0 <= i.Low && i.Low <= share && share <= i.High && i.High <= 1
}

// The interval of Inclusive is that of the samples with the element on their stack.
func TestIntervalOfInclusive(t *testing.T) {
	level := profile.LevelBinding
	for seed := range uint64(10) {
		p, err := profile.Load(bytes.NewReader(logtest.Random(rand.New(rand.NewPCG(seed, 5)))))
		if err != nil {
			t.Fatal(err)
		}
		s := p.Select(profile.Filter{})
		on := map[profile.ElementID][]columns.SiteID{}
		for site, n := range s.Count {
			if n == 0 {
				continue
			}
			with := map[profile.ElementID]bool{}
			at := p.Sites[site]
			if s.Leaf[site] == 0 || at.Kernel {
				for _, id := range s.LeafElements(level, site) {
					with[id] = true
				}
			}
			for n := at.Node; n != 0; n = p.Nodes.Caller(n) {
				if columns.Structural(p.Nodes.Kind[n]) {
					continue
				}
				for _, c := range s.CauseLines(nil, level, columns.PlaceID(p.Nodes.Place[n])) {
					with[c.Element.ID] = true
				}
			}
			for id := range with {
				on[id] = append(on[id], columns.SiteID(site))
			}
		}
		for _, r := range s.Hot(level).Rows {
			ids := []profile.ElementID{r.Element.ID}
			want := s.Batched().List([][]columns.SiteID{on[ids[0]]})[0]
			got := s.SurePartsOf(level, ids, s.SureOf(level, ids))[0].Inclusive
			if math.Abs(got.Low-want.Low) > 1e-9 || math.Abs(got.High-want.High) > 1e-9 {
				t.Errorf("seed %d: %s, inclusive %v: %+v, want %+v", seed, r.Element.Name, r.Inclusive, got, want.Interval)
			}
		}
	}
}
