package semantics_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/profile/semantics"
)

// derivations runs a program once for each sequence of choices, in the order of depth-first search. each is called for every cost that no
// earlier derivation has had, with the choices made so far and the numbers of their alternatives, and leaf at the end of each
// derivation. It reports false if there are more derivations than most, or one of them has no end.
func derivations(p *semantics.Program, most int, each func(made, of []int, weight int), leaf func(made []int, failed bool)) bool {
	var script []int
	for range most {
		var made, of []int
		m := semantics.New(p, semantics.Lexical{})
		m.Fuel = 20000
		m.Choose = func(n int) int {
			c := 0
			if len(made) < len(script) {
				c = script[len(made)]
			}
			made, of = append(made, c), append(of, n)
			return c
		}
		known := len(script)
		m.Seen = func(s semantics.Step[string]) {
			if len(made) >= known && s.N > 0 { // what comes before the last choice is an earlier derivation's
				each(made, of, s.N)
			}
		}
		_, _, err := m.Run()
		if err == semantics.ErrFuel {
			return false
		}
		leaf(made, err != nil)
		for len(made) > 0 && made[len(made)-1] == of[len(made)-1]-1 {
			made = made[:len(made)-1]
		}
		if len(made) == 0 {
			return true
		}
		made[len(made)-1]++
		script = append([]int{}, made...)
	}
	return false
}

// Of generated programs with choices, the depth of search in a log that a sampler would have written is the number of choices with
// alternatives left that the semantics has made, and branches that fail take no more than search does.
func TestSampledDepth(t *testing.T) {
	programs, failing, deepest := 0, 0.0, uint64(0)
	for seed := range uint64(300) {
		p := semantics.Generate(rand.New(rand.NewPCG(seed, 7)), semantics.FlatLogic)
		l := logtest.New()
		code := func(module, name string) logtest.Frame {
			return l.Code(l.Binding("main", module, name, 0), eventlog.QualityExact, eventlog.CategoryHaskell)
		}
		dfs, try := code("Search", "dfs").As(eventlog.FrameReturn), code("Curry_P", "try (instance NonDet C_Nat)").As(eventlog.FrameReturn)
		f, printing := code("Curry_P", "nd_C_f"), code("Main", "print")
		succeeds := map[string]bool{}
		at := map[string]float64{} // weight by node of the search tree
		key := func(made []int) string {
			b := make([]byte, len(made))
			for i, c := range made {
				b[i] = byte(c)
			}
			return string(b)
		}
		var time, most uint64
		var sum, below, searching, outside float64
		ended := derivations(p, 60, func(made, of []int, weight int) {
			stack, open := []logtest.Frame{printing.As(eventlog.FrameReturn)}, 0
			for i, c := range made {
				if c < of[i]-1 {
					stack, open = append(stack, dfs), open+1
				}
			}
			time++
			l.Sample(time, uint64(weight), l.Stack(append(stack, try, f)...))
			at[key(made)] += float64(weight)
			searching += float64(weight)
			if most = max(most, uint64(open)); open > 0 {
				sum, below = sum+float64(open*weight), below+float64(weight)
			}
		}, func(made []int, failed bool) {
			for i := range len(made) + 1 {
				succeeds[key(made[:i])] = succeeds[key(made[:i])] || !failed
			}
			if !failed {
				time++
				outside += 7
				l.Sample(time, 7, l.Stack(printing))
			}
		})
		if !ended || most == 0 {
			continue
		}
		programs++
		deepest = max(deepest, most)
		prof, err := profile.Load(bytes.NewReader(l.End()))
		if err != nil {
			t.Fatal(err)
		}
		d := prof.Select(profile.Filter{}).Search()
		near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9*(1+b) }
		if d == nil || d.Deepest != most || !near(d.Depth, sum/below) || !near(d.Share, searching/(searching+outside)) || d.AtLeast != 0 {
			t.Fatalf("seed %d: %+v, want depth %v, %d at most, share %v", seed, d, sum/below, most, searching/(searching+outside))
		}
		if d.DepthSure.Low > d.Depth || d.DepthSure.High < d.Depth || d.Sure.Low > d.Share || d.Sure.High < d.Share {
			t.Fatalf("seed %d: intervals leave out what they are of: %+v", seed, d)
		}
		failed := 0.0
		for node, w := range at {
			if !succeeds[node] {
				failed += w
			}
		}
		if part := failed / (searching + outside); part > d.Share+1e-9 {
			t.Fatalf("seed %d: %v of the costs are in branches that fail, at most %v was said", seed, part, d.Share)
		}
		failing += failed
	}
	t.Logf("%d programs, %d deep at most, costs in branches that fail: %v", programs, deepest, failing)
	if programs < 60 || deepest < 3 || failing == 0 {
		t.Error("too little was compared")
	}
}
