package semantics

// ScopesOf returns, for each expression, the scc expressions that statically enclose it
// in its global, innermost first. This is Definition 4.3.1 of Sansom & Peyton Jones,
// but with all enclosing centres instead of the innermost only. An scc expression is
// outside its own scope.
func ScopesOf(p *Program) map[Expr][]*SCC {
	out := make(map[Expr][]*SCC)
	each(p, func(e Expr) { scopes(e, nil, out, false) })
	return out
}

// OwnScopes returns, for each expression, only the enclosing scc expressions of its own
// closure: those between it and the λ-abstraction or let binding that its code belongs
// to.
func OwnScopes(p *Program) map[Expr][]*SCC {
	out := make(map[Expr][]*SCC)
	each(p, func(e Expr) { scopes(e, nil, out, true) })
	return out
}

func each(p *Program, f func(Expr)) {
	for i := range p.Globals {
		f(p.Globals[i].Rhs)
	}
	for _, fun := range p.Funs {
		f(fun.Body)
	}
}

func scopes(e Expr, in []*SCC, out map[Expr][]*SCC, own bool) {
	out[e] = in
	switch e := e.(type) {
	case *SCC:
		scopes(e.Body, append([]*SCC{e}, in...), out, own)
	case *Lam:
		if own {
			in = nil
		}
		scopes(e.Body, in, out, own)
	case *Let:
		scopes(e.Body, in, out, own)
		if own {
			in = nil
		}
		for i := range e.Binds {
			scopes(e.Binds[i].Rhs, in, out, own)
		}
	default:
		for _, s := range children(e) {
			scopes(s, in, out, own)
		}
	}
}
