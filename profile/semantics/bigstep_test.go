package semantics

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
)

// This file transcribes the papers' big-step rules as printed, with substitution and
// without a stack, and compares the machine with them: Theorem 4.2.1 of Sansom & Peyton
// Jones, and the equivalent for Wortmann & Duke.

var errDeep = errors.New("too deep")

// bigHeap is Γ.
type bigHeap[A any] struct {
	bound map[string]bigBinding[A]
	fresh int
	depth int
}

type bigBinding[A any] struct {
	e Expr
	a A // annotation
}

func (h *bigHeap[A]) name() string {
	h.fresh++
	return fmt.Sprintf("#%d", h.fresh)
}

func (h *bigHeap[A]) enter() error {
	if h.depth++; h.depth > 3000 {
		return errDeep
	}
	return nil
}

// rename returns e[y/x]. It annotates an expression that contains a renamed variable
// directly with causes.
func rename(e Expr, to map[string]string, causes []string) Expr {
	v := func(x string) string {
		if y, ok := to[x]; ok {
			return y
		}
		return x
	}
	annotate := func(e Expr, vars ...string) Expr {
		for _, x := range vars {
			if _, ok := to[x]; ok {
				for _, c := range causes {
					e = &SCC{c, e}
				}
				break
			}
		}
		return e
	}
	without := func(bound ...string) map[string]string {
		out := maps.Clone(to)
		for _, x := range bound {
			delete(out, x)
		}
		return out
	}
	switch e := e.(type) {
	case *Var:
		return annotate(&Var{v(e.Name)}, e.Name)
	case *Lam:
		return &Lam{e.Param, rename(e.Body, without(e.Param), causes)}
	case *App:
		return annotate(&App{rename(e.Fun, to, causes), v(e.Arg)}, e.Arg)
	case *Con:
		args := slices.Clone(e.Args)
		for i := range args {
			args[i] = v(args[i])
		}
		return annotate(&Con{e.Tag, args}, e.Args...)
	case *SCC:
		return &SCC{e.CC, rename(e.Body, to, causes)}
	case *Let:
		var names []string
		for _, b := range e.Binds {
			names = append(names, b.Name)
		}
		to := without(names...)
		out := &Let{Body: rename(e.Body, to, causes)}
		for _, b := range e.Binds {
			out.Binds = append(out.Binds, Bind{b.Name, rename(b.Rhs, to, causes)})
		}
		return out
	case *Case:
		out := &Case{Scrut: rename(e.Scrut, to, causes), Flex: e.Flex}
		for _, a := range e.Alts {
			out.Alts = append(out.Alts, Alt{a.Tag, a.Vars, rename(a.Body, without(a.Vars...), causes)})
		}
		return out
	}
	panic(fmt.Sprintf("%T", e))
}

// branch returns the alternative that matches a constructor.
func branch(alts []Alt, z Expr) (*Alt, *Con) {
	c, _ := z.(*Con)
	for i := range alts {
		if a := &alts[i]; a.Tag == "_" || c != nil && a.Tag == c.Tag {
			return a, c
		}
	}
	return nil, c
}

// fig4 is cc, Γ : e ⇓θ Δ : z, ccz with the changes of Fig. 7 or §8.1.
type fig4 struct {
	bigHeap[string]
	rules Lexical
	theta Attribution[string]
}

func (h *fig4) s(cc, ccz string, z Expr) string {
	_, lam := z.(*Lam)
	if ccz == "SUB" || h.rules.CAF == CAFSubsumed && lam && ccz == "CAF" {
		return cc
	}
	return ccz
}

func (h *fig4) eval(cc string, e Expr) (Expr, string, error) {
	if err := h.enter(); err != nil {
		return nil, "", err
	}
	defer func() { h.depth-- }()
	switch e := e.(type) {
	case *Lam, *Con:
		return e, cc, nil
	case *App:
		h.theta.add(cc, Apply, 1)
		f, ccl, err := h.eval(cc, e.Fun)
		if err != nil {
			return nil, "", err
		}
		if h.rules.Evaluation {
			ccl = cc
		}
		lam := f.(*Lam)
		return h.eval(ccl, rename(lam.Body, map[string]string{lam.Param: e.Arg}, nil))
	case *Var:
		h.theta.add(cc, Lookup, 1)
		b := h.bound[e.Name]
		if b.e == nil {
			return nil, "", ErrLoop
		}
		if isValue(b.e) {
			return b.e, h.s(cc, b.a, b.e), nil
		}
		h.bound[e.Name] = bigBinding[string]{}
		z, ccz, err := h.eval(b.a, b.e)
		if err != nil {
			return nil, "", err
		}
		h.theta.add(ccz, Update, 1)
		h.bound[e.Name] = bigBinding[string]{z, ccz}
		return z, h.s(cc, ccz, z), nil
	case *Let:
		h.theta.add(cc, Alloc, len(e.Binds))
		to := make(map[string]string)
		for _, b := range e.Binds {
			to[b.Name] = h.name()
		}
		for _, b := range e.Binds {
			h.bound[to[b.Name]] = bigBinding[string]{rename(b.Rhs, to, nil), cc}
		}
		return h.eval(cc, rename(e.Body, to, nil))
	case *Case:
		h.theta.add(cc, Match, 1)
		z, _, err := h.eval(cc, e.Scrut)
		if err != nil {
			return nil, "", err
		}
		a, c := branch(e.Alts, z)
		if a == nil {
			return nil, "", ErrFail
		}
		to := make(map[string]string)
		for i, x := range a.Vars {
			to[x] = c.Args[i]
		}
		return h.eval(cc, rename(a.Body, to, nil))
	case *SCC:
		h.theta.add(e.CC, Enter, 1)
		return h.eval(e.CC, e.Body)
	}
	panic(fmt.Sprintf("%T", e))
}

// The machine attributes costs as the published big-step rules do, on generated programs
// and for every variant of the rules.
func TestMachineIsBigStep(t *testing.T) {
	for name, rules := range map[string]Lexical{"fig4": {}, "fig7": {CAF: CAFSubsumed}, "evaluation": {Evaluation: true}} {
		t.Run(name, func(t *testing.T) {
			for _, style := range []Style{HigherOrder, FirstOrder} {
				compared := 0
				programs(t, style, 300, func(seed uint64, p *Program) {
					h := &fig4{rules: rules, theta: make(Attribution[string])}
					h.bound = make(map[string]bigBinding[string])
					for i := range p.Globals {
						b := &p.Globals[i]
						h.bound[b.Name] = bigBinding[string]{b.Rhs, rules.Global(b)}
					}
					_, cc, err := h.eval("MAIN", &Var{"main"})
					if errors.Is(err, errDeep) {
						return
					}
					if err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					m := New(p, rules)
					_, mark, err := m.Run()
					if err != nil {
						t.Fatalf("seed %d: %v", seed, err)
					}
					if !maps.Equal(m.Costs, h.theta) || mark != cc {
						t.Fatalf("seed %d: the machine attributes\n%v, %s\nthe rules\n%v, %s", seed, m.Costs, mark, h.theta, cc)
					}
					compared++
				})
				if compared < 100 {
					t.Errorf("compared %d programs", compared)
				}
			}
		})
	}
}

// fig1 is Γ : ⟨β e ⇓θ Δ : ⟨γ v of Wortmann & Duke. Annotations are written as scc.
type fig1 struct {
	bigHeap[struct{}]
	c *Causality
}

type causeCost struct {
	k Kind
	c Causes
}

func with(b Causes, theta []causeCost) []causeCost {
	for i := range theta {
		theta[i].c = theta[i].c.union(b)
	}
	return theta
}

func (h *fig1) annotate(b Causes, e Expr) Expr {
	for _, n := range h.c.Names(b) {
		e = &SCC{n, e}
	}
	return e
}

func (h *fig1) eval(e Expr) (v Expr, gamma Causes, theta []causeCost, err error) {
	if err := h.enter(); err != nil {
		return nil, "", nil, err
	}
	defer func() { h.depth-- }()
	var beta Causes
	for {
		s, ok := e.(*SCC)
		if !ok {
			break
		}
		beta, e = beta.union(h.c.Cause(s.CC)), s.Body
	}
	switch e := e.(type) {
	case *Con:
		return e, beta, []causeCost{{EvalCon, beta}}, nil
	case *Lam:
		return e, beta, []causeCost{{EvalLam, beta}}, nil
	case *App:
		f, delta, th2, err := h.eval(e.Fun)
		if err != nil {
			return nil, "", nil, err
		}
		lam := f.(*Lam)
		v, g, th3, err := h.eval(rename(lam.Body, map[string]string{lam.Param: e.Arg}, nil))
		if err != nil {
			return nil, "", nil, err
		}
		bd := beta.union(delta)
		return v, g.union(bd), slices.Concat([]causeCost{{Apply, beta}}, with(beta, th2), with(bd, th3)), nil
	case *Var:
		b := h.bound[e.Name]
		if b.e == nil {
			return nil, "", nil, ErrLoop
		}
		h.bound[e.Name] = bigBinding[struct{}]{}
		v, g, th, err := h.eval(b.e)
		if err != nil {
			return nil, "", nil, err
		}
		h.bound[e.Name] = bigBinding[struct{}]{e: h.annotate(g, v)}
		return v, g.union(beta), append(with(beta, th), causeCost{Lookup, beta}), nil
	case *Let:
		to := make(map[string]string)
		for _, b := range e.Binds {
			to[b.Name] = h.name()
		}
		for _, b := range e.Binds {
			h.bound[to[b.Name]] = bigBinding[struct{}]{e: rename(b.Rhs, to, h.c.Names(beta))}
		}
		v, g, th, err := h.eval(rename(e.Body, to, h.c.Names(beta)))
		return v, g, append(th, causeCost{LetEval, beta}), err
	case *Case:
		z, delta, th2, err := h.eval(e.Scrut)
		if err != nil {
			return nil, "", nil, err
		}
		a, c := branch(e.Alts, z)
		if a == nil {
			return nil, "", nil, ErrFail
		}
		bd := beta.union(delta)
		to := make(map[string]string)
		for i, x := range a.Vars {
			to[x] = c.Args[i]
		}
		var carried []string
		sole := len(e.Alts) == 1
		if sole {
			carried = h.c.Names(bd)
		}
		v, g, th3, err := h.eval(rename(a.Body, to, carried))
		if err != nil {
			return nil, "", nil, err
		}
		if !sole {
			g, th3 = g.union(bd), with(bd, th3)
		}
		return v, g, slices.Concat([]causeCost{{Match, beta}}, with(beta, th2), th3), nil
	}
	panic(fmt.Sprintf("%T", e))
}

// The machine attributes costs to causes as the published big-step rules do, on generated
// programs.
func TestCausalityIsBigStep(t *testing.T) {
	compared := 0
	programs(t, HigherOrder, 400, func(seed uint64, p *Program) {
		c := &Causality{}
		h := &fig1{c: c}
		h.bound = make(map[string]bigBinding[struct{}])
		for i := range p.Globals {
			h.bound[p.Globals[i].Name] = bigBinding[struct{}]{e: p.Globals[i].Rhs}
		}
		_, gamma, theta, err := h.eval(&Var{"main"})
		if errors.Is(err, errDeep) {
			return
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		want := make(Attribution[Causes])
		for _, x := range theta {
			want.add(x.c, x.k, 1)
		}
		m := New(p, c)
		_, mark, err := m.Run()
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if !maps.Equal(m.Costs, want) || mark != gamma {
			t.Fatalf("seed %d: the machine attributes\n%v\nthe rules\n%v", seed, show(c, m.Costs), show(c, want))
		}
		compared++
	})
	if compared < 150 {
		t.Errorf("compared %d programs", compared)
	}
}

func show(c *Causality, a Attribution[Causes]) map[string]string {
	out := make(map[string]string)
	for m, costs := range a {
		out[fmt.Sprint(c.Names(m))] = costs.String()
	}
	return out
}
