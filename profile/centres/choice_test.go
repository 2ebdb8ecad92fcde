package centres

import (
	"math/rand/v2"
	"reflect"
	"testing"

	"ccagent/profile"
	"ccagent/profile/logtest"
)

// Dropping centres changes no total, is the same as never having chosen them,
// and as the set that Chosen writes.
func TestWithout(t *testing.T) {
	for seed := range uint64(80) {
		rng := rand.New(rand.NewPCG(seed, 5))
		p := load(t, logtest.Random(rng))
		s := p.Select(profile.Filter{})
		set := Set{Patterns: [][]Pattern{
			{{Preset: PresetBindings}}, {{Preset: PresetModules}, {Preset: PresetBindings}}, {{Glob: "*", Level: profile.LevelBinding, HasLevel: true}},
			{{Name: "one", Glob: "M0.*"}, {Preset: PresetPackages}}, {{Glob: "A.hs:1-9"}, {Preset: PresetBindings}},
		}[rng.IntN(5)]}
		all := Find(p, set)
		dropped := make(map[string]bool)
		for i := range all.List {
			if rng.IntN(2) == 0 {
				dropped[all.List[i].Name] = true
			}
		}
		kept := all.Without(dropped)
		text := all.Chosen(set, dropped).Format()
		if len(dropped) == len(all.List) {
			continue // a set of nothing is none
		}
		again, err := ParseSet(text)
		if err != nil {
			t.Fatalf("seed %d: %v in\n%s", seed, err, text)
		}
		fresh := Find(p, again)
		for mode := ModeLexical; mode <= ModeStacks; mode++ {
			a, b := Attribute(s, kept, mode), Attribute(s, fresh, mode)
			sum := uint64(0)
			for i := range a.Rows {
				sum += a.Rows[i].Individual
				if dropped[a.Rows[i].Centre.Name] && !a.Rows[i].Centre.Pseudo {
					t.Fatalf("seed %d: %s was dropped and has a row", seed, a.Rows[i].Centre.Name)
				}
			}
			if sum != s.Total {
				t.Fatalf("seed %d, %v: the figures sum to %d of %d", seed, mode, sum, s.Total)
			}
			if x, y := figuresByName(a), figuresByName(b); !reflect.DeepEqual(x, y) {
				t.Fatalf("seed %d, %v: without\n%v\nfrom the set\n%v\n%s", seed, mode, x, y, text)
			}
		}
	}
}

func figuresByName(c *Costs) map[string][2]uint64 {
	out := make(map[string][2]uint64)
	for i := range c.ByCentre {
		r := &c.ByCentre[i]
		out[r.Centre.Name] = [2]uint64{r.Individual, r.Inherited}
	}
	return out
}
