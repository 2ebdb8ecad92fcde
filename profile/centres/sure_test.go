package centres

import (
	"math"
	"math/rand/v2"
	"testing"

	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/interval"
	"ccagent/profile/logtest"
)

// In every mode, the interval of a row's inherited figure is that of the samples with the centre,
// or the stack, below them, added up one by one; and holds the figure.
func TestIntervalOfInherited(t *testing.T) {
	for seed := range uint64(10) {
		p := load(t, logtest.Random(rand.New(rand.NewPCG(seed, 6))))
		s := p.Select(profile.Filter{})
		for _, mode := range []Mode{ModeLexical, ModeEvaluation, ModeStacks} {
			c := Attribute(s, centres(t, p, "@bindings"), mode)
			rows := make([]int, len(c.Rows))
			for i := range rows {
				rows[i] = i
			}
			b := s.Batched()
			for i, sure := range c.Sure(s, rows) {
				r := &c.Rows[i]
				var part interval.Part
				b.Reset(&part)
				for site, stack := range c.at {
					with := false
					for id := stack - 1; id >= 0; id = c.stacks[id].below {
						with = with || id == r.id && mode.Stacks() || c.stacks[id].centre == r.id && !mode.Stacks()
					}
					if with {
						b.Add(&part, columns.SiteID(site))
					}
				}
				if part.Weight != float64(r.Inherited) {
					t.Errorf("seed %d %v: %s inherits %d, its samples weigh %v", seed, mode, r.Centre.Name, r.Inherited, part.Weight)
				}
				want := b.Share(&part)
				if got := sure.Inherited; math.Abs(got.Low-want.Low)+math.Abs(got.High-want.High) > 1e-9 {
					t.Errorf("seed %d %v: %s inherits %v to %v, want %v to %v", seed, mode, r.Centre.Name, got.Low, got.High, want.Low, want.High)
				}
			}
		}
	}
}
