package semantics

import (
	"fmt"
	"math/rand/v2"
)

// Style says what a generated program may contain.
type Style uint8

const (
	// HigherOrder programs create functions, pass them and return them.
	HigherOrder Style = iota
	// FirstOrder programs apply global functions to all their arguments and create no
	// other functions.
	FirstOrder
	// FlatLogic programs consist of flat functions, with or, flexible case and
	// logical variables.
	FlatLogic
)

// Centres lists the cost centres of generated programs.
var Centres = []string{"a", "b", "c", "d", "e"}

// Generate returns a random well-typed program on natural numbers Z, S n. Its global
// functions call only functions generated before them, and themselves only on a part of
// their argument that a case has extracted, so that nearly all programs terminate.
func Generate(rng *rand.Rand, style Style) *Program {
	g := &generator{rng: rng, style: style, p: &Program{Funs: make(map[string]*Fun)}}
	for i := range 3 + rng.IntN(4) {
		g.global(fmt.Sprintf("g%d", i))
	}
	if style != FlatLogic {
		for i := range rng.IntN(3) {
			g.define(fmt.Sprintf("k%d", i), nil, g.expr(nat, 3))
			g.known = append(g.known, global{fmt.Sprintf("k%d", i), 0, nat})
		}
		deep, _ := Parse(`deep n = case n of { Z -> Z; S m -> deep m };`)
		g.p.Globals = append(g.p.Globals, deep.Globals...)
		body := g.expr(nat, 6)
		g.define("main", nil, &Let{[]Bind{{"r", body}}, &App{&Var{"deep"}, "r"}})
		return g.p
	}
	g.define("main", nil, g.expr(nat, 6))
	return g.p
}

// typ is a type: nat, or a function from args to nat.
type typ uint8

const (
	nat  typ = iota
	fun1     // nat → nat
	fun2     // nat → nat → nat
	hof      // (nat → nat) → nat
	typs
)

// parts returns the argument and result types of a function type.
func (t typ) parts() (arg, result typ) {
	switch t {
	case fun1:
		return nat, nat
	case fun2:
		return nat, fun1
	default:
		return fun1, nat
	}
}

type global struct {
	name  string
	arity int
	t     typ
}

type local struct {
	name string
	t    typ
}

type generator struct {
	rng   *rand.Rand
	style Style
	p     *Program
	known []global
	vars  []local
	self  *global
	small []string // variables that self may be called on: parts of its argument
	n     int
}

func (g *generator) fresh(prefix string) string {
	g.n++
	return fmt.Sprintf("%s%d", prefix, g.n)
}

func (g *generator) define(name string, params []string, body Expr) {
	if g.style == FlatLogic {
		g.p.Funs[name] = &Fun{name, params, body}
		return
	}
	g.p.Globals = append(g.p.Globals, Bind{name, lambdas(params, body)})
}

// global generates a global function. Half of these functions are recursive.
func (g *generator) global(name string) {
	t := []typ{fun1, fun1, fun2, hof}[g.rng.IntN(4)]
	if g.style != HigherOrder && t == hof {
		t = fun2
	}
	def := global{name, 1, t}
	params := []string{g.fresh("p")}
	arg, result := t.parts()
	g.vars = []local{{params[0], arg}}
	if t == fun2 {
		def.arity = 2
		params = append(params, g.fresh("p"))
		g.vars = append(g.vars, local{params[1], nat})
		result = nat
	}
	var body Expr
	if arg == nat && g.rng.IntN(2) == 0 {
		pred := g.fresh("m")
		zero := g.expr(nat, 2)
		g.self, g.small = &def, []string{pred}
		n := len(g.vars)
		g.vars = append(g.vars, local{pred, nat})
		succ := g.expr(nat, 3)
		g.vars = g.vars[:n]
		g.self, g.small = nil, nil
		body = &Case{Scrut: &Var{params[0]}, Alts: []Alt{{"Z", nil, zero}, {"S", []string{pred}, succ}}, Flex: g.flex()}
	} else {
		body = g.expr(result, 4)
	}
	if g.rng.IntN(3) == 0 {
		body = &SCC{g.cc(), body}
	}
	g.define(name, params, body)
	g.vars = nil
	g.known = append(g.known, def)
}

func (g *generator) cc() string { return Centres[g.rng.IntN(len(Centres))] }

func (g *generator) flex() bool { return g.style == FlatLogic && g.rng.IntN(4) > 0 }

// local picks a local variable of a type at random.
func (g *generator) local(t typ) string {
	var fit []string
	for _, v := range g.vars {
		if v.t == t {
			fit = append(fit, v.name)
		}
	}
	if len(fit) == 0 {
		return ""
	}
	return fit[g.rng.IntN(len(fit))]
}

// arg returns a variable of a type. It adds a let binding if no variable has the type,
// and at random otherwise.
func (g *generator) arg(t typ, depth int, binds *[]Bind) string {
	if v := g.local(t); v != "" && g.rng.IntN(3) > 0 {
		return v
	}
	name := g.fresh("v")
	*binds = append(*binds, Bind{name, g.expr(t, depth-1)})
	return name
}

func (g *generator) expr(t typ, depth int) Expr {
	if depth > 0 && g.rng.IntN(6) == 0 {
		return &SCC{g.cc(), g.expr(t, depth-1)}
	}
	if t != nat {
		return g.function(t, depth)
	}
	if depth <= 0 {
		if v := g.local(nat); v != "" && g.rng.IntN(4) > 0 {
			return &Var{v}
		}
		return &Con{Tag: "Z"}
	}
	switch n := g.rng.IntN(12); {
	case n < 2:
		var binds []Bind
		e := &Con{"S", []string{g.arg(nat, depth, &binds)}}
		return wrapLets(binds, e)
	case n < 5:
		return g.caseOf(depth)
	case n < 7:
		name := g.fresh("x")
		rhs := g.expr(nat, depth-1)
		n := len(g.vars)
		b := Bind{name, rhs}
		if g.style == FlatLogic && g.rng.IntN(3) == 0 {
			b.Rhs = &Var{name}
		}
		g.vars = append(g.vars, local{name, nat})
		body := g.expr(nat, depth-1)
		g.vars = g.vars[:n]
		return &Let{[]Bind{b}, body}
	case n < 8 && g.style == FlatLogic:
		return &Or{g.expr(nat, depth-1), g.expr(nat, depth-1)}
	default:
		return g.call(depth)
	}
}

func (g *generator) caseOf(depth int) Expr {
	var binds []Bind
	var scrut Expr
	if g.style == FlatLogic {
		scrut = &Var{g.arg(nat, depth, &binds)}
	} else {
		scrut = g.expr(nat, depth-1)
	}
	c := &Case{Scrut: scrut, Flex: g.flex()}
	if g.style != FlatLogic && g.rng.IntN(5) == 0 {
		c.Alts = []Alt{{"_", nil, g.expr(nat, depth-1)}}
		return c
	}
	m := g.fresh("m")
	zero := g.expr(nat, depth-1)
	n := len(g.vars)
	g.vars = append(g.vars, local{m, nat})
	c.Alts = []Alt{{"Z", nil, zero}, {"S", []string{m}, g.expr(nat, depth-1)}}
	g.vars = g.vars[:n]
	return wrapLets(binds, c)
}

// call generates an application of a global or a local function.
func (g *generator) call(depth int) Expr {
	var binds []Bind
	if g.self != nil && g.rng.IntN(3) == 0 {
		args := []string{g.small[0]}
		if g.self.arity == 2 {
			args = append(args, g.arg(nat, depth, &binds))
		}
		return wrapLets(binds, g.apply(g.self.name, args))
	}
	if f := g.local(fun1); f != "" && g.rng.IntN(2) == 0 {
		e := &App{&Var{f}, g.arg(nat, depth, &binds)}
		return wrapLets(binds, e)
	}
	if len(g.known) == 0 {
		return &Con{Tag: "Z"}
	}
	f := g.known[g.rng.IntN(len(g.known))]
	if f.arity == 0 {
		return &Var{f.name}
	}
	arg, _ := f.t.parts()
	args := []string{g.arg(arg, depth, &binds)}
	if f.arity == 2 {
		args = append(args, g.arg(nat, depth, &binds))
	}
	return wrapLets(binds, g.apply(f.name, args))
}

func (g *generator) apply(f string, args []string) Expr {
	if g.style == FlatLogic {
		return &Call{f, args}
	}
	var e Expr = &Var{f}
	for _, a := range args {
		e = &App{e, a}
	}
	return e
}

// function generates an expression of a function type.
func (g *generator) function(t typ, depth int) Expr {
	if v := g.local(t); v != "" && g.rng.IntN(3) == 0 {
		return &Var{v}
	}
	for range 3 {
		if len(g.known) == 0 || g.rng.IntN(2) == 0 {
			break
		}
		f := g.known[g.rng.IntN(len(g.known))]
		switch {
		case f.t == t:
			return &Var{f.name}
		case f.t == fun2 && t == fun1: // partial application
			var binds []Bind
			e := &App{&Var{f.name}, g.arg(nat, depth, &binds)}
			return wrapLets(binds, e)
		}
	}
	if depth > 1 && g.rng.IntN(4) == 0 {
		return &Case{Scrut: g.expr(nat, depth-1), Alts: []Alt{{"_", nil, g.function(t, depth-1)}}}
	}
	arg, result := t.parts()
	x := g.fresh("y")
	n := len(g.vars)
	g.vars = append(g.vars, local{x, arg})
	body := g.expr(result, depth-1)
	g.vars = g.vars[:n]
	return &Lam{x, body}
}
