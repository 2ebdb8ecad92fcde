package semantics

import (
	"slices"
	"testing"
)

// §4.4: ⟨α let { f = ⟨β λx. e₁ } in e₂: costs of e₁ are caused by α and β, for the
// let binds f and the λ is what is applied.
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

// §2.4: a let does not cause what its body does without its variables; §2.3: a
// case with a choice causes what its branch does, and so does what it matched.
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

// §4.1: the centre that Sansom & Peyton Jones charge, where it encloses the code
// statically and within its closure, is one of the causes.
func TestCentresAreCauses(t *testing.T) {
	programs(t, HigherOrder, 200, func(seed uint64, p *Program) {
		own := OwnScopes(p)
		c := &Causality{}
		m := New(p, c)
		m.Seen = func(s Step[Causes]) {
			sc := own[s.At]
			if s.Kind == EvalLam || s.Kind == EvalCon || len(sc) == 0 {
				return // a value looked up again is caused where it was made
			}
			// An scc annotates the expression right under it.
			if sc[0].Body == s.At && !c.Cause(sc[0].CC).Within(s.Bearer) {
				t.Fatalf("seed %d: %v without %s", seed, c.Names(s.Bearer), sc[0].CC)
			}
		}
		if _, _, err := m.Run(); err != nil {
			t.Fatal(err)
		}
	})
}
