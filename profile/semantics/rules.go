package semantics

// Pseudo-centres. MainCC bears the costs outside all sccs. SubCC annotates global
// functions: their costs are subsumed by the centre that calls them. CAFCC bears the
// evaluation of constant applicative forms (CAFs).
const (
	MainCC = "MAIN"
	SubCC  = "SUB"
	CAFCC  = "CAF"
)

// scoped implements the rules of Fig. 4 that are the same for any kind of centre. cur is
// the current cost centre; own is unused.
type scoped[M comparable] struct{}

func (scoped[M]) Join(a, _ M) M                   { return a }
func (scoped[M]) Operand(cur, _ M) M              { return cur }
func (scoped[M]) Value(cur, _ M) M                { return cur }
func (scoped[M]) Heap(cur, _ M, _ bool) M         { return cur }
func (scoped[M]) Thunk(_, _, bound M) M           { return bound }
func (scoped[M]) Branch(cur, _, _ M, _ bool) M    { return cur }
func (scoped[M]) Added(_, _ M, _ bool) (none M)   { return none }
func (scoped[M]) Carried(_, _ M, _ bool) (none M) { return none }

func (scoped[M]) Bearer(k Kind, cur, _, value M) (M, bool) {
	switch k {
	case EvalLam, EvalCon, LetEval:
		return cur, false
	case Update:
		return value, true
	}
	return cur, true
}

// CAFRule says which centre the costs of constant applicative forms are attributed to.
type CAFRule uint8

const (
	// CAFBase is Fig. 4: all costs of a CAF, including those of functions created in
	// it, are attributed to CAF.
	CAFBase CAFRule = iota
	// CAFSubsumed is Fig. 7 (§7.2): the one-off costs are attributed to CAF, and the
	// costs of functions created in it to the centre that applies them.
	CAFSubsumed
	// CAFFirst attributes a CAF's evaluation to the centre that demands it first.
	// Attribution then depends on the order of evaluation, the paper's reason not to
	// do it (footnote 9).
	CAFFirst
)

// Lexical is the cost semantics of Sansom & Peyton Jones. On flat programs it is the
// semantics of Brassel et al.
type Lexical struct {
	scoped[string]
	CAF CAFRule
	// NamedCAFs gives each CAF a centre of its own, "CAF:x".
	NamedCAFs bool
	// Evaluation attributes a function's body to the centre that applies the function
	// (§8.1), not to the centre in whose scope it was declared.
	Evaluation bool
}

var _ Semantics[string] = Lexical{}

// Main implements Semantics.
func (Lexical) Main() string { return MainCC }

// Global is the paper's initcc.
func (l Lexical) Global(b *Bind) string {
	switch {
	case IsFunction(b.Rhs):
		return SubCC
	case l.NamedCAFs:
		return CAFCC + ":" + b.Name
	default:
		return CAFCC
	}
}

// Scope implements Semantics.
func (Lexical) Scope(_, own, cc string) (string, string) { return cc, own }

func isCAF(cc string) bool { return len(cc) >= len(CAFCC) && cc[:len(CAFCC)] == CAFCC }

// subsume is the predicate s of Fig. 4 and Fig. 7.
func (l Lexical) subsume(cur, cc string, lambda bool) string {
	if cc == SubCC || l.CAF != CAFBase && isCAF(cc) && lambda {
		return cur
	}
	return cc
}

// Thunk implements Semantics.
func (l Lexical) Thunk(cur, _, bound string) string {
	if l.CAF == CAFFirst && isCAF(bound) {
		return cur
	}
	return bound
}

// Found implements Semantics.
func (l Lexical) Found(cur, _, bound string, lambda bool) string {
	return l.subsume(cur, bound, lambda)
}

// Updated implements Semantics.
func (l Lexical) Updated(cur, _, value string, lambda bool) string {
	return l.subsume(cur, value, lambda)
}

// Body implements Semantics.
func (l Lexical) Body(cur, _, lam string) string {
	if l.Evaluation {
		return cur
	}
	return lam
}
