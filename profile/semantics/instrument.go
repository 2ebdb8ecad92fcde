package semantics

import (
	"fmt"
	"slices"
)

// Instrument applies the cost transformation of Brassel et al. (Fig. 3, Definition 1)
// to a flat program. The result, run without any cost semantics, counts in
// Machine.Ticks the costs that the semantics of the original program attributes to
// each centre. It has a variant of each function for each centre; a constructor's
// first argument is the centre that built it.
//
// One step departs from the figure as printed: where a flexible case meets an
// unbound variable, the variable is looked up once, not twice. The rule Guess
// charges one V.
func Instrument(p *Program) (*Program, error) {
	if len(p.Globals) > 0 {
		return nil, fmt.Errorf("instrument: %s is no flat function", p.Globals[0].Name)
	}
	in := &instrumenter{arities: make(map[string]int)}
	centres := []string{MainCC}
	for _, f := range p.Funs {
		walk(f.Body, func(e Expr) {
			switch e := e.(type) {
			case *SCC:
				centres = append(centres, e.CC)
			case *Con:
				in.arities[e.Tag] = len(e.Args)
			case *Case:
				for i := range e.Alts {
					in.arities[e.Alts[i].Tag] = len(e.Alts[i].Vars)
				}
			}
		})
	}
	slices.Sort(centres)
	centres = slices.Compact(centres)
	out := &Program{Funs: make(map[string]*Fun)}
	for _, cc := range centres {
		out.Globals = append(out.Globals, Bind{centreVar(cc), &Con{Tag: cc}})
		for _, f := range p.Funs {
			g := &Fun{Name: variant(f.Name, cc), Params: f.Params}
			g.Body = &Tick{Kind: Unfold, N: 1, CC: cc, Body: in.expr(f.Body, cc)}
			out.Funs[g.Name] = g
		}
	}
	main := variant("main", MainCC)
	if out.Funs[main] == nil {
		return nil, fmt.Errorf("instrument: no main()")
	}
	out.Funs["main"] = out.Funs[main]
	return out, nil
}

func variant(fun, cc string) string { return fun + "{" + cc + "}" }

func centreVar(cc string) string { return "cc{" + cc + "}" }

type instrumenter struct {
	arities map[string]int
	fresh   int
}

func (in *instrumenter) expr(e Expr, cc string) Expr {
	tick := func(k Kind, n int, body Expr) Expr { return &Tick{Kind: k, N: n, CC: cc, Body: body} }
	switch e := e.(type) {
	case *Var:
		return tick(Lookup, 1, e)
	case *Con:
		return &Con{e.Tag, append([]string{centreVar(cc)}, e.Args...)}
	case *Call:
		return &Call{variant(e.Fun, cc), e.Args}
	case *Let:
		out := &Let{Body: in.expr(e.Body, cc)}
		for _, b := range e.Binds {
			rhs := in.expr(b.Rhs, cc)
			switch r := b.Rhs.(type) {
			case *Var:
				if r.Name == b.Name {
					rhs = r
				} else {
					rhs = in.update(rhs)
				}
			case *Con:
			default:
				rhs = in.update(rhs)
			}
			out.Binds = append(out.Binds, Bind{b.Name, rhs})
		}
		return tick(Alloc, len(e.Binds), out)
	case *Or:
		return tick(Choose, 1, &Or{in.expr(e.Left, cc), in.expr(e.Right, cc)})
	case *SCC:
		return &Tick{Kind: Enter, N: 1, CC: e.CC, Body: in.expr(e.Body, e.CC)}
	case *Case:
		bound := &Case{Scrut: in.expr(e.Scrut, cc), Flex: e.Flex}
		free := &Case{Scrut: e.Scrut, Flex: true}
		for i := range e.Alts {
			a := &e.Alts[i]
			vars := append([]string{in.name()}, a.Vars...)
			bound.Alts = append(bound.Alts, Alt{a.Tag, vars, tick(Match, 1, in.expr(a.Body, cc))})
			free.Alts = append(free.Alts, Alt{a.Tag, vars, tick(Alloc, len(a.Vars), in.expr(a.Body, cc))})
			// A guessed constructor also needs a centre: its first argument is a
			// free variable, which is bound to the centre here.
			free.Alts[i].Body = &Tick{Kind: bindCentre, CC: cc, Of: vars[0], Body: free.Alts[i].Body}
		}
		x, isVar := e.Scrut.(*Var)
		if !e.Flex || !isVar {
			return bound
		}
		var then Expr = free
		if len(e.Alts) > 1 {
			then = tick(Choose, 1, then)
		}
		then = tick(Lookup, 1, tick(Update, 1, tick(BindVar, 1, then)))
		return &IfFree{x.Name, then, bound}
	}
	panic(fmt.Sprintf("instrument: %T is not flat", e))
}

// bindCentre marks a Tick that counts no cost but binds the first argument of a guessed
// constructor to its centre.
const bindCentre = kinds

func (in *instrumenter) name() string {
	in.fresh++
	return fmt.Sprintf("cc'%d", in.fresh)
}

// update attributes an update to the centre of the computed value.
func (in *instrumenter) update(e Expr) Expr {
	c := &Case{Scrut: e}
	var tags []string
	for tag := range in.arities {
		tags = append(tags, tag)
	}
	slices.Sort(tags)
	for _, tag := range tags {
		cc := in.name()
		vars := []string{cc}
		for i := range in.arities[tag] {
			vars = append(vars, fmt.Sprintf("x'%d", i))
		}
		c.Alts = append(c.Alts, Alt{tag, vars, &Tick{Kind: Update, N: 1, Of: cc, Body: &Con{tag, vars}}})
	}
	return c
}
