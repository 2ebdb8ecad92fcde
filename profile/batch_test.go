package profile_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"ccagent/profile"
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
				for _, level := range profile.Levels {
					rows := s.Hot(level).Rows
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
