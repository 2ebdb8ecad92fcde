package semantics

import (
	"slices"
	"testing"
)

// In ⟨α let { f = ⟨β λx. e₁ } in e₂ the costs of e₁ are caused by α and β (§4.4): the let
// binds f, and the λ is applied.
func TestStaticLexicalScope(t *testing.T) {
	c := &Causality{}
	p := parse(t, `main = scc "alpha" let f = scc "beta" \x -> scc "e1" Box x in let z = Z in scc "app" f z;`)
	m := New(p, c)
	if _, mark, err := m.Run(); err != nil {
		t.Fatal(err)
	} else if got := c.Names(mark); !slices.Equal(got, []string{"alpha", "app", "beta", "e1"}) {
		t.Errorf("the value is caused by %v", got)
	}
	found := false
	for causes, costs := range m.Costs {
		if costs[EvalCon] > 0 {
			names := c.Names(causes)
			found = found || slices.Contains(names, "alpha") && slices.Contains(names, "beta") && slices.Contains(names, "e1")
		}
	}
	if !found {
		t.Errorf("costs of e1: %v", show(c, m.Costs))
	}
}

// A let causes only what its body does with its variables (§2.4). A case with a choice,
// and the value that it matches, cause what the branch does (§2.3).
func TestLetAndCase(t *testing.T) {
	for _, c := range []struct {
		src  string
		want []string
	}{
		{`main = scc "let" let x = Z in scc "body" C;`, []string{"body"}},
		{`main = scc "let" let x = Z in scc "body" C x;`, []string{"body", "let"}},
		{`main = scc "case" case scc "scrut" T of { T -> scc "branch" A; F -> B };`, []string{"branch", "case", "scrut"}},
		{`main = scc "case" case scc "scrut" T y of { T z -> scc "branch" A }; y = Z;`, []string{"branch"}},
		{`main = scc "case" case scc "scrut" T y of { T z -> scc "branch" A z }; y = Z;`, []string{"branch", "case", "scrut"}},
		{`main = scc "call" f y; f = scc "f" \x -> A; y = Z;`, []string{"call", "f"}},
	} {
		sem := &Causality{}
		m := New(parse(t, c.src), sem)
		_, mark, err := m.Run()
		if err != nil {
			t.Fatal(err)
		}
		if got := sem.Names(mark); !slices.Equal(got, c.want) {
			t.Errorf("%s: the value is caused by %v, want %v", c.src, got, c.want)
		}
	}
}

// The centre that Sansom & Peyton Jones charge is one of the causes, if it statically
// encloses the code within its closure (§4.1).
func TestCentresAreCauses(t *testing.T) {
	programs(t, HigherOrder, 200, func(seed uint64, p *Program) {
		own := OwnScopes(p)
		c := &Causality{}
		m := New(p, c)
		m.Seen = func(s Step[Causes]) {
			sc := own[s.At]
			if s.Kind == EvalLam || s.Kind == EvalCon || len(sc) == 0 {
				return // a value that is looked up again keeps the causes of its creation
			}
			// An scc annotates its body.
			if sc[0].Body == s.At && !c.Cause(sc[0].CC).Within(s.Bearer) {
				t.Fatalf("seed %d: %v without %s", seed, c.Names(s.Bearer), sc[0].CC)
			}
		}
		if _, _, err := m.Run(); err != nil {
			t.Fatal(err)
		}
	})
}
