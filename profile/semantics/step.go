package semantics

import "fmt"

// step evaluates the control by one step, to another control or to a value.
func (m *Machine[M]) step(c *control[M]) (v hnf[M], mark M, done bool, err error) {
	sem := m.Sem
	var none M
	c.own = sem.Join(c.own, m.carriedBy(c.expr, c.env))
	next := func(e Expr, cur M) (hnf[M], M, bool, error) {
		c.expr, c.cur, c.own = e, cur, none
		return hnf[M]{}, none, false, nil
	}
	stuck := func(err error) (hnf[M], M, bool, error) { return hnf[M]{}, none, false, err }
	switch e := c.expr.(type) {
	case *Lam:
		m.charge(EvalLam, 1, c, none, e)
		return m.valueOf(e, c.env), sem.Value(c.cur, c.own), true, nil
	case *Con:
		for _, n := range e.Args {
			if _, _, err := m.lookup(c.env, n); err != nil {
				return stuck(err)
			}
		}
		m.charge(EvalCon, 1, c, none, e)
		return m.valueOf(e, c.env), sem.Value(c.cur, c.own), true, nil
	case *Var:
		return m.variable(c, e)
	case *App:
		a, _, err := m.lookup(c.env, e.Arg)
		if err != nil {
			return stuck(err)
		}
		m.charge(Apply, 1, c, none, e)
		m.push(frame[M]{Frame: Frame{FrameArg, e}, addr: a, cur: c.cur, own: c.own})
		return next(e.Fun, sem.Operand(c.cur, c.own))
	case *Call:
		f := m.prog.Funs[e.Fun]
		if f == nil || len(f.Params) != len(e.Args) {
			return stuck(fmt.Errorf("%w: call of %s with %d arguments", ErrStuck, e.Fun, len(e.Args)))
		}
		var en *env[M]
		for i, n := range e.Args {
			a, _, err := m.lookup(c.env, n)
			if err != nil {
				return stuck(err)
			}
			en = &env[M]{name: f.Params[i], addr: a, next: en}
		}
		m.charge(Unfold, 1, c, none, e)
		c.env = en
		return next(f.Body, c.cur)
	case *Let:
		m.let(c, e)
		return next(e.Body, c.cur)
	case *Case:
		// A case that scrutinises a variable may meet a logical one.
		m.charge(Match, 1, c, none, e)
		m.push(frame[M]{Frame: Frame{FrameCase, e}, alts: e.Alts, flex: e.Flex, env: c.env, cur: c.cur, own: c.own})
		return next(e.Scrut, sem.Operand(c.cur, c.own))
	case *SCC:
		cur, own := sem.Scope(c.cur, c.own, e.CC)
		c.cur, c.own = cur, own
		m.charge(Enter, 1, c, none, e)
		if m.KeepCallers {
			m.push(frame[M]{Frame: Frame{FrameScope, e}})
		}
		c.expr = e.Body
		return hnf[M]{}, none, false, nil
	case *Or:
		m.charge(Choose, 1, c, none, e)
		if m.choose(2) == 0 {
			return next(e.Left, c.cur)
		}
		return next(e.Right, c.cur)
	case *Tick:
		if err := m.tick(c, e); err != nil {
			return stuck(err)
		}
		return next(e.Body, c.cur)
	case *IfFree:
		free, err := m.isFree(c, e.Name)
		if err != nil {
			return stuck(err)
		}
		if free {
			return next(e.Then, c.cur)
		}
		return next(e.Else, c.cur)
	}
	return stuck(fmt.Errorf("%w: %T", ErrStuck, c.expr))
}

func (m *Machine[M]) push(f frame[M]) { m.stack = append(m.stack, f) }

func (m *Machine[M]) choose(n int) int {
	if m.Choose == nil {
		return 0
	}
	return m.Choose(n)
}

func (m *Machine[M]) let(c *control[M], e *Let) {
	sem := m.Sem
	var none M
	m.charge(LetEval, 1, c, none, e)
	m.charge(Alloc, len(e.Binds), c, none, e)
	carried := sem.Carried(c.own, none, true)
	first := len(m.heap)
	for _, b := range e.Binds {
		a := m.alloc(object[M]{})
		c.env = &env[M]{name: b.Name, addr: a, carried: carried, next: c.env}
	}
	for i, b := range e.Binds {
		o := &m.heap[first+i]
		o.env = c.env
		rhs, own := b.Rhs, none
		for {
			scc, ok := rhs.(*SCC)
			if !ok {
				break
			}
			_, next := sem.Scope(c.cur, own, scc.CC)
			if next == own {
				break // the annotation does not belong to the expression: evaluate it
			}
			rhs, own = scc.Body, next
		}
		switch r := rhs.(type) {
		case *Var:
			if r.Name == b.Name {
				o.state, o.mark = objFree, sem.Heap(c.cur, own, true)
				continue
			}
		case *Lam, *Con:
			own = sem.Join(own, m.carriedBy(rhs, c.env))
			o.state, o.val, o.mark = objValue, m.valueOf(rhs, c.env), sem.Heap(c.cur, own, true)
			continue
		}
		o.expr, o.mark = b.Rhs, sem.Heap(c.cur, none, false)
	}
}

func (m *Machine[M]) variable(c *control[M], e *Var) (v hnf[M], mark M, done bool, err error) {
	var none M
	a, _, err := m.lookup(c.env, e.Name)
	if err != nil {
		return v, none, false, err
	}
	o := &m.heap[a]
	sem := m.Sem
	switch o.state {
	case objFree:
		// The rule Val: a logical variable is a value, and costs nothing.
		if n := len(m.stack); n == 0 || m.stack[n-1].Kind != FrameCase || !m.stack[n-1].flex {
			m.BareFree++
		}
		return hnf[M]{Value: Value{Free: a}}, sem.Value(c.cur, c.own), true, nil
	case objValue:
		m.charge(Lookup, 1, c, none, e)
		in := control[M]{cur: sem.Thunk(c.cur, c.own, o.mark), own: o.mark}
		k := EvalCon
		if o.val.Lam != nil {
			k = EvalLam
		}
		m.charge(k, 1, &in, none, e)
		return o.val, sem.Found(c.cur, c.own, o.mark, o.val.Lam != nil), true, nil
	case objHole:
		return v, none, false, ErrLoop
	}
	m.charge(Lookup, 1, c, none, e)
	kind := FrameUpdate
	if o.global {
		kind = FrameCAF
	}
	m.push(frame[M]{Frame: Frame{Kind: kind}, addr: a, cur: c.cur, own: c.own})
	o.state = objHole
	c.expr, c.env = o.expr, o.env
	c.cur, c.own = sem.Thunk(c.cur, c.own, o.mark), none
	return v, none, false, nil
}

// ret returns a value to the frame on top.
func (m *Machine[M]) ret(c *control[M], v hnf[M], mark M) (hnf[M], M, bool, error) {
	var none M
	sem := m.Sem
	f := m.stack[len(m.stack)-1]
	mark = sem.Join(mark, f.added)
	switch f.Kind {
	case FrameScope:
		m.pop()
		return v, mark, true, nil
	case FrameUpdate, FrameCAF:
		m.charge(Update, 1, &control[M]{cur: f.cur, own: f.own}, mark, nil)
		m.pop()
		o := &m.heap[f.addr]
		if v.Free != 0 {
			// It was bound to an unbound variable and has to be looked up again.
			o.state, o.expr, o.mark = objThunk, &Var{"it"}, mark
			o.env = &env[M]{name: "it", addr: v.Free}
		} else {
			o.state, o.val, o.mark = objValue, v, mark
		}
		return v, sem.Updated(f.cur, f.own, mark, v.Lam != nil), true, nil
	case FrameArg:
		m.pop()
		if v.Lam == nil {
			return v, none, false, fmt.Errorf("%w: %s is applied", ErrStuck, v.Tag)
		}
		m.addToResult(sem.Added(f.own, mark, false))
		c.env = &env[M]{name: v.Lam.Param, addr: f.addr, next: v.env}
		c.expr, c.cur, c.own = v.Lam.Body, sem.Body(f.cur, f.own, mark), none
		return v, none, false, nil
	}
	m.pop()
	if v.Free != 0 {
		return v, none, false, m.guess(c, &f, v.Free)
	}
	sole := len(f.alts) == 1
	for i := range f.alts {
		alt := &f.alts[i]
		if alt.Tag != "_" && (v.Lam != nil || alt.Tag != v.Tag || len(alt.Vars) != len(v.Args)) {
			continue
		}
		m.addToResult(sem.Added(f.own, mark, sole))
		c.env = f.env
		carried := sem.Carried(f.own, mark, sole)
		for j, name := range alt.Vars {
			c.env = &env[M]{name: name, addr: v.Args[j], carried: carried, next: c.env}
		}
		c.expr, c.cur, c.own = alt.Body, sem.Branch(f.cur, f.own, mark, sole), none
		return v, none, false, nil
	}
	return v, none, false, ErrFail
}

func (m *Machine[M]) pop() { m.stack = m.stack[:len(m.stack)-1] }

// guess implements the rule Guess: it binds a logical variable to a pattern. The case
// was charged a match when it began; for a guess this is replaced by a B.
func (m *Machine[M]) guess(c *control[M], f *frame[M], a Addr) error {
	var none M
	if !f.flex {
		return ErrSuspend
	}
	at := control[M]{cur: f.cur, own: f.own}
	if who, ok := m.Sem.Bearer(Match, f.cur, f.own, none); ok {
		m.Costs.add(who, Match, -1)
	}
	i := 0
	if len(f.alts) > 1 {
		m.charge(Choose, 1, &at, none, f.At)
		i = m.choose(len(f.alts))
	}
	alt := &f.alts[i]
	m.charge(Lookup, 1, &at, none, f.At)
	m.charge(Update, 1, &control[M]{cur: f.cur, own: f.own}, m.Sem.Value(f.cur, f.own), f.At)
	m.charge(BindVar, 1, &at, none, f.At)
	m.charge(Alloc, len(alt.Vars), &at, none, f.At)
	val := hnf[M]{Value: Value{Tag: alt.Tag}}
	c.env = f.env
	for _, name := range alt.Vars {
		n := m.alloc(object[M]{state: objFree, mark: m.Sem.Heap(f.cur, f.own, true)})
		val.Args = append(val.Args, n)
		c.env = &env[M]{name: name, addr: n, next: c.env}
	}
	o := &m.heap[a]
	o.state, o.val, o.mark = objValue, val, m.Sem.Heap(f.cur, f.own, true)
	c.expr, c.cur, c.own = alt.Body, m.Sem.Branch(f.cur, f.own, none, len(f.alts) == 1), none
	return nil
}

func (m *Machine[M]) tick(c *control[M], e *Tick) error {
	cc := e.CC
	if e.Of != "" {
		a, _, err := m.lookup(c.env, e.Of)
		if err != nil {
			return err
		}
		if e.Kind == bindCentre {
			m.heap[a] = object[M]{state: objValue, val: hnf[M]{Value: Value{Tag: e.CC}}, mark: m.heap[a].mark}
			return nil
		}
		cc = m.heap[a].val.Tag
	}
	t := m.Ticks[cc]
	t[e.Kind] += e.N
	m.Ticks[cc] = t
	return nil
}

// isFree evaluates a variable and reports whether it is an unbound logical variable.
func (m *Machine[M]) isFree(c *control[M], name string) (bool, error) {
	a, _, err := m.lookup(c.env, name)
	if err != nil {
		return false, err
	}
	bare := m.BareFree
	v, _, err := m.Force(c.cur, a)
	m.BareFree = bare
	return v.Free != 0, err
}
