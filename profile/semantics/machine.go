package semantics

import (
	"errors"
	"fmt"
)

// These errors end an evaluation without a value.
var (
	ErrFuel    = errors.New("evaluation: out of fuel")
	ErrLoop    = errors.New("evaluation: a thunk needs its own value")
	ErrFail    = errors.New("evaluation: no branch fits")
	ErrSuspend = errors.New("evaluation: a rigid case waits for a logical variable")
	ErrStuck   = errors.New("evaluation: ill-typed")
)

// Semantics attributes each cost to its bearer. M is the type of its annotations: a
// cost centre, a cost-centre stack or a set of causes. cur is the annotation of the
// running evaluation, own that of the control expression itself; a rule set with only
// a current cost centre ignores own.
type Semantics[M comparable] interface {
	// Main is the annotation of the program's evaluation.
	Main() M
	// Global annotates the heap binding of a global.
	Global(b *Bind) M
	// Scope enters an scc.
	Scope(cur, own M, cc string) (M, M)
	// Join combines the annotations of an expression's variables, and a value's
	// annotation with one that is added to it.
	Join(a, b M) M
	// Operand is cur for evaluating the function of an application or the scrutinee
	// of a case.
	Operand(cur, own M) M
	// Value annotates a value that evaluation has reached.
	Value(cur, own M) M
	// Heap annotates a heap object allocated under cur; own is the annotation of its
	// right-hand side.
	Heap(cur, own M, value bool) M
	// Found annotates the result of a variable that is bound to a value.
	Found(cur, own, bound M, lambda bool) M
	// Thunk is cur for evaluating a thunk.
	Thunk(cur, own, bound M) M
	// Updated annotates the result of a variable whose thunk was evaluated.
	Updated(cur, own, value M, lambda bool) M
	// Body is cur for a function's body; lam is the function's annotation.
	Body(cur, own, lam M) M
	// Branch is cur for a branch of a case; value is the matched value's annotation.
	Branch(cur, own, value M, sole bool) M
	// Added is added to the annotation of an application's or case's value.
	Added(own, operand M, sole bool) M
	// Carried is the annotation of variables that a let or a case binds.
	Carried(own, operand M, sole bool) M
	// Bearer returns the bearer of a cost; for an update, value is the annotation of
	// the value written. It returns false if the rule set has no such cost.
	Bearer(k Kind, cur, own, value M) (M, bool)
}

// Addr is a heap address; 0 is none.
type Addr int

// Value is a value in head normal form.
type Value struct {
	Lam  *Lam // nil for constructors and logical variables
	Tag  string
	Args []Addr
	Free Addr // address of the unbound logical variable, 0 for other values
}

type objState uint8

const (
	objThunk objState = iota
	objValue
	objHole // under evaluation
	objFree // logical variable
)

type object[M comparable] struct {
	state  objState
	expr   Expr // of a thunk
	env    *env[M]
	mark   M
	val    hnf[M]
	global bool
}

// hnf is a value with the environment of its λ-abstraction.
type hnf[M comparable] struct {
	Value
	env *env[M]
}

// env binds variables. carried is added to the annotation of an expression that
// contains the variable directly.
type env[M comparable] struct {
	name    string
	addr    Addr
	carried M
	next    *env[M]
}

// FrameKind says what a frame of the machine's stack is.
type FrameKind uint8

const (
	FrameCase   FrameKind = iota // continuation of a case
	FrameArg                     // pending application
	FrameUpdate                  // update frame of a thunk
	FrameCAF                     // update frame of a constant applicative form
	FrameScope                   // the caller of an scc, where KeepCallers is set
)

// Frame is a frame as a sampler sees it.
type Frame struct {
	Kind FrameKind
	At   Expr // the code that it returns to; nil for update frames
}

type frame[M comparable] struct {
	Frame
	addr  Addr // the argument, or the thunk to update
	alts  []Alt
	flex  bool
	env   *env[M]
	cur   M
	own   M
	added M // added to the annotation of the value that returns here
}

// Step describes one cost when it arises.
type Step[M comparable] struct {
	Kind   Kind
	N      int
	Bearer M
	// At is the running code. It is nil while a thunk is updated; the update frame is
	// then the stack's last.
	At Expr
	// Stack iterates over the stack, root first. It is valid only until the callee
	// returns.
	Stack func(yield func(Frame) bool)
}

// Machine evaluates a program. Its zero value is not usable: see [New].
type Machine[M comparable] struct {
	Sem    Semantics[M]
	Costs  Attribution[M]
	Fuel   int              // steps left
	Choose func(n int) int  // picks one of n branches; if nil, the first is taken
	Ticks  map[string]Costs // calls of cost functions, by centre
	Seen   func(Step[M])    // called for every cost that has a bearer
	// KeepCallers pushes a frame for each entered scc, as if its code were called
	// instead of jumped to.
	KeepCallers bool
	// BareFree counts evaluations of unbound logical variables other than by a
	// flexible case.
	BareFree int

	prog    *Program
	globals map[string]Addr
	heap    []object[M]
	stack   []frame[M]
	root    M // added to the annotation of the final value
}

// New returns a machine with a program's globals on the heap.
func New[M comparable](p *Program, sem Semantics[M]) *Machine[M] {
	m := &Machine[M]{Sem: sem, Costs: make(Attribution[M]), Fuel: 1 << 20, Ticks: make(map[string]Costs),
		prog: p, globals: make(map[string]Addr), heap: make([]object[M], 1)}
	for i := range p.Globals {
		b := &p.Globals[i]
		a := m.alloc(object[M]{expr: b.Rhs, mark: sem.Global(b), global: true})
		m.globals[b.Name] = a
	}
	for i := range p.Globals {
		a := m.globals[p.Globals[i].Name]
		if e := p.Globals[i].Rhs; isValue(e) {
			m.heap[a].state = objValue
			m.heap[a].val = m.valueOf(e, nil)
		}
	}
	return m
}

func (m *Machine[M]) alloc(o object[M]) Addr {
	m.heap = append(m.heap, o)
	return Addr(len(m.heap) - 1)
}

// Run evaluates main to head normal form.
func (m *Machine[M]) Run() (Value, M, error) {
	if f := m.prog.Funs["main"]; f != nil {
		return m.Eval(m.Sem.Main(), &Call{Fun: "main"}, nil)
	}
	return m.Eval(m.Sem.Main(), &Var{"main"}, nil)
}

// Force evaluates a heap object to head normal form.
func (m *Machine[M]) Force(cur M, a Addr) (Value, M, error) {
	return m.Eval(cur, &Var{"it"}, map[string]Addr{"it": a})
}

// Show evaluates a value deeply under cur and prints it; functions as "λ".
func (m *Machine[M]) Show(cur M, v Value, depth int) (string, error) {
	switch {
	case v.Lam != nil:
		return "λ", nil
	case v.Free != 0:
		return "_", nil
	case len(v.Args) == 0:
		return v.Tag, nil
	case depth == 0:
		return "…", nil
	}
	s := v.Tag
	for _, a := range v.Args {
		w, _, err := m.Force(cur, a)
		if err != nil {
			return "", err
		}
		t, err := m.Show(cur, w, depth-1)
		if err != nil {
			return "", err
		}
		s += " (" + t + ")"
	}
	return s, nil
}

// control is the expression to evaluate next, with its environment and annotations.
type control[M comparable] struct {
	expr     Expr
	env      *env[M]
	cur, own M
}

// Eval evaluates an expression to head normal form under cur. vars binds its free variables.
func (m *Machine[M]) Eval(cur M, e Expr, vars map[string]Addr) (Value, M, error) {
	var none M
	var en *env[M]
	for name, a := range vars {
		en = &env[M]{name: name, addr: a, next: en}
	}
	base := len(m.stack)
	saved := m.root
	m.root = none
	defer func() { m.stack, m.root = m.stack[:base], saved }()
	c := control[M]{e, en, cur, none}
	for {
		if m.Fuel--; m.Fuel < 0 {
			return Value{}, none, ErrFuel
		}
		v, mark, done, err := m.step(&c)
		for done && err == nil {
			if len(m.stack) == base {
				return v.Value, m.Sem.Join(mark, m.root), nil
			}
			v, mark, done, err = m.ret(&c, v, mark)
		}
		if err != nil {
			return Value{}, none, err
		}
	}
}

func (m *Machine[M]) lookup(en *env[M], name string) (Addr, M, error) {
	for ; en != nil; en = en.next {
		if en.name == name {
			return en.addr, en.carried, nil
		}
	}
	var none M
	if a, ok := m.globals[name]; ok {
		return a, none, nil
	}
	return 0, none, fmt.Errorf("%w: %s is not bound", ErrStuck, name)
}

// carriedBy returns the annotation that the variables in an expression add to it.
func (m *Machine[M]) carriedBy(e Expr, en *env[M]) M {
	var out M
	var names []string
	switch e := e.(type) {
	case *Var:
		names = []string{e.Name}
	case *App:
		names = []string{e.Arg}
	case *Con:
		names = e.Args
	case *Call:
		names = e.Args
	}
	for _, n := range names {
		if _, c, err := m.lookup(en, n); err == nil {
			out = m.Sem.Join(out, c)
		}
	}
	return out
}

func (m *Machine[M]) charge(k Kind, n int, c *control[M], value M, at Expr) {
	if n == 0 {
		return
	}
	who, ok := m.Sem.Bearer(k, c.cur, c.own, value)
	if !ok {
		return
	}
	m.Costs.add(who, k, n)
	if m.Seen != nil {
		m.Seen(Step[M]{Kind: k, N: n, Bearer: who, At: at, Stack: m.frames})
	}
}

func (m *Machine[M]) frames(yield func(Frame) bool) {
	for i := range m.stack {
		if !yield(m.stack[i].Frame) {
			return
		}
	}
}

// addToResult adds to the annotation of the value that the top frame will receive.
func (m *Machine[M]) addToResult(x M) {
	if n := len(m.stack); n > 0 {
		m.stack[n-1].added = m.Sem.Join(m.stack[n-1].added, x)
		return
	}
	m.root = m.Sem.Join(m.root, x)
}

// valueOf converts an expression in head normal form to a value.
func (m *Machine[M]) valueOf(e Expr, en *env[M]) hnf[M] {
	switch e := e.(type) {
	case *Lam:
		return hnf[M]{Value{Lam: e}, en}
	case *Con:
		v := hnf[M]{Value: Value{Tag: e.Tag}}
		for _, name := range e.Args {
			a, _, _ := m.lookup(en, name)
			v.Args = append(v.Args, a)
		}
		return v
	}
	return hnf[M]{}
}
