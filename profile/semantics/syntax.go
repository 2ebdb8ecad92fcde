package semantics

// Expr is an expression. Expressions are shared and never change; a pointer
// identifies a place in the program.
type Expr interface{ expr() }

// Var is a variable.
type Var struct{ Name string }

// Lam is λParam.Body.
type Lam struct {
	Param string
	Body  Expr
}

// App applies a function to a variable.
type App struct {
	Fun Expr
	Arg string
}

// Call is a saturated call of a flat function.
type Call struct {
	Fun  string
	Args []string
}

// Bind is one binding of a let, or a global binding.
type Bind struct {
	Name string
	Rhs  Expr
}

// Let binds variables, recursively.
type Let struct {
	Binds []Bind
	Body  Expr
}

// Con is a saturated constructor.
type Con struct {
	Tag  string
	Args []string
}

// Alt is a branch of a case: Tag Vars → Body. The Tag "_" matches every value.
type Alt struct {
	Tag  string
	Vars []string
	Body Expr
}

// Case evaluates Scrut to a constructor and then the matching branch. If Scrut is a
// logical variable, a flexible case binds it to the pattern of a branch and a rigid
// case suspends.
type Case struct {
	Scrut Expr
	Alts  []Alt
	Flex  bool
}

// SCC annotates an expression with a cost centre. [Causality] reads it as the
// expression annotated with the cause CC.
type SCC struct {
	CC   string
	Body Expr
}

// Or is a non-deterministic choice between two expressions.
type Or struct{ Left, Right Expr }

// Tick is a call of a cost function: an identity function whose calls are counted.
// The centre is CC, or if Of is set, the nullary constructor that Of is bound to.
// Only instrumented programs contain ticks.
type Tick struct {
	Kind Kind
	N    int
	CC   string
	Of   string
	Body Expr
}

// IfFree is the test isVar of instrumented programs: it evaluates a variable and
// continues with Then if the variable is an unbound logical one.
type IfFree struct {
	Name       string
	Then, Else Expr
}

func (*Var) expr()    {}
func (*Lam) expr()    {}
func (*App) expr()    {}
func (*Call) expr()   {}
func (*Let) expr()    {}
func (*Con) expr()    {}
func (*Case) expr()   {}
func (*SCC) expr()    {}
func (*Or) expr()     {}
func (*Tick) expr()   {}
func (*IfFree) expr() {}

// Fun is a flat function: Name(Params) = Body.
type Fun struct {
	Name   string
	Params []string
	Body   Expr
}

// Program is a set of global bindings and flat functions.
type Program struct {
	Globals []Bind
	Funs    map[string]*Fun
}

// IsFunction reports whether a global's right-hand side is a λ-abstraction and
// therefore not a constant applicative form.
func IsFunction(e Expr) bool {
	_, ok := e.(*Lam)
	return ok
}

// isValue reports whether an expression is in head normal form.
func isValue(e Expr) bool {
	switch e.(type) {
	case *Lam, *Con:
		return true
	}
	return false
}

// walk visits an expression and its subexpressions, outermost first.
func walk(e Expr, visit func(Expr)) {
	visit(e)
	for _, s := range children(e) {
		walk(s, visit)
	}
}

func children(e Expr) []Expr {
	switch e := e.(type) {
	case *Lam:
		return []Expr{e.Body}
	case *App:
		return []Expr{e.Fun}
	case *Let:
		var out []Expr
		for i := range e.Binds {
			out = append(out, e.Binds[i].Rhs)
		}
		return append(out, e.Body)
	case *Case:
		out := []Expr{e.Scrut}
		for i := range e.Alts {
			out = append(out, e.Alts[i].Body)
		}
		return out
	case *SCC:
		return []Expr{e.Body}
	case *Or:
		return []Expr{e.Left, e.Right}
	case *Tick:
		return []Expr{e.Body}
	case *IfFree:
		return []Expr{e.Then, e.Else}
	}
	return nil
}
