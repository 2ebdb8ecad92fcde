package profile

import (
	"math/rand/v2"
	"testing"

	"ccagent/profile/logtest"
)

// The blocks of an element share its samples out: each is in one.
func TestBlocksSumToTheElement(t *testing.T) {
	for seed := range uint64(20) {
		s := mustLoad(t, logtest.Random(rand.New(rand.NewPCG(seed, 8)))).Select(Filter{})
		for _, level := range []Level{LevelLine, LevelBinding} {
			for _, r := range s.Hot(level).Rows {
				if r.Element.Kind == KindCategory {
					continue
				}
				var weight, samples uint64
				for _, b := range s.Blocks(level, r.Element.ID) {
					weight += b.Weight
					samples += b.Samples
				}
				if weight != r.ShareWeight || samples != r.Samples {
					t.Fatalf("seed %d: the blocks of %s have %d of %d samples", seed, r.Element.Name, samples, r.Samples)
				}
			}
		}
	}
}
