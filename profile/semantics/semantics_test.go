package semantics

import (
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

func parse(t *testing.T, src string) *Program {
	t.Helper()
	p, err := Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// run evaluates a program's main deeply.
func run[M comparable](t *testing.T, src string, sem Semantics[M]) (*Machine[M], string) {
	t.Helper()
	m := New(parse(t, src), sem)
	v, mark, err := m.Run()
	if err != nil {
		t.Fatal(err)
	}
	_ = mark
	s, err := m.Show(sem.Main(), v, 50)
	if err != nil {
		t.Fatal(err)
	}
	return m, s
}

// programs calls f with generated programs whose evaluation ends with a value.
func programs(t *testing.T, style Style, n int, f func(seed uint64, p *Program)) {
	t.Helper()
	ran := 0
	for seed := range uint64(n) {
		p := Generate(rand.New(rand.NewPCG(seed, uint64(style))), style)
		m := New(p, Lexical{})
		m.Fuel = 20000
		_, _, err := m.Run()
		switch {
		case err == nil:
			ran++
			f(seed, p)
		case errors.Is(err, ErrStuck):
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
	if ran < n/2 {
		t.Fatalf("only %d of %d generated programs end with a value", ran, n)
	}
	t.Logf("%d programs", ran)
}

func centres(a Attribution[string]) []string { return slices.Sorted(maps.Keys(a)) }

// Generated programs terminate, and together they do enough work in all centres to be
// useful for tests.
func TestGenerated(t *testing.T) {
	for _, style := range []Style{HigherOrder, FirstOrder, FlatLogic} {
		most := 0
		seen := make(map[string]bool)
		programs(t, style, 400, func(seed uint64, p *Program) {
			m := New(p, Lexical{})
			if _, _, err := m.Run(); err != nil {
				t.Fatal(err)
			}
			most = max(most, m.Costs.Total().Time())
			for _, cc := range centres(m.Costs) {
				seen[cc] = true
			}
		})
		if most < 100 || len(seen) < len(Centres) {
			t.Errorf("style %d: programs cost at most %d and use %d centres", style, most, len(seen))
		}
	}
}
