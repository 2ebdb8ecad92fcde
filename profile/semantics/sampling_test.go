package semantics_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/centres"
	"ccagent/profile/logtest"
	"ccagent/profile/semantics"
)

// This file compares the attribution of package profile with that of the semantics. A
// sampler sees no cost centres, only code and stacks of return addresses and update
// frames. The tests write what a sampler would see of the evaluator as a log, one sample
// for each cost, and package profile attributes the samples.

// recorder writes the log of one run. Every scc is a span of P.hs on its own line; every
// closure is a procedure; every expression is a block whose causes are the enclosing
// sccs, those of its own closure at distance 0.
type recorder struct {
	log      *logtest.Log
	file     uint32
	all, own map[semantics.Expr][]*semantics.SCC
	proc     map[semantics.Expr]uint32 // procedure of the expression's closure
	global   map[semantics.Expr]uint32
	spans    map[*semantics.SCC]uint32
	code     map[codeKey]logtest.Frame
	stg      map[string]logtest.Frame
	set      centres.Set
	bearers  []string // by thread id − 1
	time     uint64
	// cafUpdates counts updates of CAFs with values created in another centre. The
	// rules attribute such an update to the value's centre, production to the CAF: one
	// U for each CAF, which a sampler cannot attribute correctly.
	cafUpdates int
	caf        string // how the semantics writes the CAFs' centre
}

type codeKey struct {
	e      semantics.Expr
	within bool // the code directly inside an scc
}

func newRecorder(p *semantics.Program) *recorder {
	r := &recorder{
		log: logtest.New(), all: semantics.ScopesOf(p), own: semantics.OwnScopes(p), proc: make(map[semantics.Expr]uint32),
		caf: semantics.CAFCC, global: make(map[semantics.Expr]uint32), spans: make(map[*semantics.SCC]uint32), code: make(map[codeKey]logtest.Frame),
	}
	r.file = r.log.File("P.hs", "")
	for i := range p.Globals {
		b := &p.Globals[i]
		id := r.log.Binding("main", "P", b.Name, 0)
		body := b.Rhs
		for { // all λs of a global function's parameters are one procedure
			r.proc[body], r.global[body] = id, id
			lam, ok := body.(*semantics.Lam)
			if !ok {
				break
			}
			body = lam.Body
		}
		r.closures(body, id, id)
	}
	machine := func(name string) logtest.Frame {
		return r.log.Code(r.log.Function(name, eventlog.CategorySTG), eventlog.QualityExact, eventlog.CategorySTG)
	}
	r.stg = map[string]logtest.Frame{"upd": machine("stg_upd_frame"), "caf": machine("stg_bh_upd_frame"), "ap": machine("stg_ap_p")}
	return r
}

func (r *recorder) closures(e semantics.Expr, proc, global uint32) {
	r.proc[e], r.global[e] = proc, global
	local := func() uint32 { return r.log.Binding("main", "P", fmt.Sprintf("sat%d", len(r.proc)), global) }
	switch e := e.(type) {
	case *semantics.SCC:
		line := uint32(len(r.spans) + 1)
		r.spans[e] = r.log.Span(r.file, line, 1, line, 9, global)
		r.set.Patterns = append(r.set.Patterns, centres.Pattern{Name: e.CC, Level: profile.LevelSpan, HasLevel: true, Glob: fmt.Sprintf("P.hs:%d", line)})
		r.closures(e.Body, proc, global)
	case *semantics.Lam:
		r.closures(e.Body, local(), global)
	case *semantics.Let:
		r.closures(e.Body, proc, global)
		for i := range e.Binds {
			r.closures(e.Binds[i].Rhs, local(), global)
		}
	case *semantics.App:
		r.closures(e.Fun, proc, global)
	case *semantics.Case:
		r.closures(e.Scrut, proc, global)
		for i := range e.Alts {
			r.closures(e.Alts[i].Body, proc, global)
		}
	}
}

// at returns the code of an expression.
func (r *recorder) at(e semantics.Expr, within bool) logtest.Frame {
	k := codeKey{e, within}
	f, ok := r.code[k]
	if ok {
		return f
	}
	own, all := r.own[e], r.all[e]
	if within {
		scc := e.(*semantics.SCC)
		own, all = append([]*semantics.SCC{scc}, own...), append([]*semantics.SCC{scc}, all...)
	}
	var causes []eventlog.Cause
	for i, s := range all {
		distance := uint32(0)
		if i >= len(own) {
			distance = uint32(1 + i - len(own))
		}
		causes = append(causes, eventlog.Cause{Span: r.spans[s], Distance: distance})
	}
	var enclosing []uint32
	if r.proc[e] != r.global[e] {
		enclosing = []uint32{r.global[e]}
	}
	f = r.log.Enclosed(r.proc[e], enclosing, causes...)
	r.code[k] = f
	return f
}

// sample records a cost. The bearer's number is the sample's thread.
func (r *recorder) sample(kind semantics.Kind, n int, bearer string, at semantics.Expr, stack func(func(semantics.Frame) bool)) {
	if kind == semantics.Enter {
		return // an entry takes no time
	}
	var frames []logtest.Frame
	for f := range stack {
		switch f.Kind {
		case semantics.FrameCase:
			frames = append(frames, r.at(f.At, false))
		case semantics.FrameArg:
			frames = append(frames, r.stg["ap"])
		case semantics.FrameUpdate:
			frames = append(frames, r.stg["upd"].As(eventlog.FrameUpdate))
		case semantics.FrameCAF:
			frames = append(frames, r.stg["caf"].As(eventlog.FrameUpdate))
		case semantics.FrameScope:
			frames = append(frames, r.at(f.At, true))
		}
	}
	if at != nil {
		frames = append(frames, r.at(at, false))
	} else {
		if frames[len(frames)-1].Addr == r.stg["caf"].Addr && bearer != r.caf {
			r.cafUpdates++
			bearer = r.caf
		}
		frames = append(frames, r.stg["upd"])
	}
	id := slices.Index(r.bearers, bearer)
	if id < 0 {
		id = len(r.bearers)
		r.bearers = append(r.bearers, bearer)
	}
	r.time++
	r.log.SampleOf(r.time, eventlog.Sample{Weight: uint64(n), TSO: uint64(id + 1), Node: r.log.Stack(frames...)})
}

// joint holds a run's attribution by the semantics and by the production code: prod[i] is
// production's attribution of the costs that the semantics attributes to bearer[i].
type joint struct {
	bearer []string
	prod   []*centres.Costs
	whole  *centres.Costs
}

func record[M comparable](t *testing.T, p *semantics.Program, sem semantics.Semantics[M], keep bool, mode centres.Mode, name func(M) string) *joint {
	t.Helper()
	r := newRecorder(p)
	m := semantics.New(p, sem)
	m.Fuel = 20000
	m.KeepCallers = keep
	m.Seen = func(s semantics.Step[M]) { r.sample(s.Kind, s.N, name(s.Bearer), s.At, s.Stack) }
	if _, _, err := m.Run(); errors.Is(err, semantics.ErrStuck) {
		t.Fatal(err)
	} else if err != nil {
		return nil
	}
	if r.cafUpdates > len(p.Globals) {
		t.Fatalf("%d updates of %d globals", r.cafUpdates, len(p.Globals))
	}
	prof, err := profile.Load(bytes.NewReader(r.log.End()))
	if err != nil {
		t.Fatal(err)
	}
	c := centres.Find(prof, r.set)
	j := &joint{bearer: r.bearers, whole: centres.Attribute(prof.Select(profile.Filter{}), c, mode)}
	for id := range r.bearers {
		s := prof.Select(profile.Filter{Threads: []uint64{uint64(id + 1)}})
		j.prod = append(j.prod, centres.Attribute(s, c, mode))
	}
	return j
}

// plain converts production's name of a centre to that of the semantics.
func plain(name string) string {
	if strings.HasPrefix(name, semantics.CAFCC) {
		return semantics.CAFCC
	}
	return name
}

func same(cc string) string { return cc }

type tally struct{ programs, agree, differ, forced uint64 }

// within checks that production and semantics agree on every sample that is not forced,
// and that every centre's cost is correct up to the forced weight.
func (y *tally) within(t *testing.T, seed uint64, j *joint) {
	t.Helper()
	if j == nil {
		return
	}
	y.programs++
	sem, prod := make(map[string]int64), make(map[string]int64)
	var differ, forced uint64
	for i, c := range j.prod {
		sem[j.bearer[i]] += int64(c.Total)
		for _, row := range c.Rows {
			name := plain(row.Centre.Name)
			prod[name] += int64(row.Individual)
			forced += row.Forced
			if name == j.bearer[i] {
				y.agree += row.Individual
				continue
			}
			differ += row.Individual
			if row.Individual != row.Forced {
				t.Fatalf("seed %d: %d of %s's costs go to %s, and only %d of them as forced", seed, row.Individual, j.bearer[i], name, row.Forced)
			}
		}
	}
	for cc := range maps.Keys(sem) {
		if d := sem[cc] - prod[cc]; max(d, -d) > int64(forced) {
			t.Fatalf("seed %d: %s costs %d, is attributed %d, and %d is forced", seed, cc, sem[cc], prod[cc], forced)
		}
	}
	y.differ += differ
	y.forced += forced
}

func (y *tally) enough(t *testing.T) {
	t.Helper()
	t.Logf("%d programs: %d costs agree, %d differ, of %d forced", y.programs, y.agree, y.differ, y.forced)
	if y.programs < 100 || y.differ == 0 || y.agree < 10*y.programs {
		t.Errorf("too little was compared: %+v", y)
	}
}

func generate(style semantics.Style, n uint64, f func(seed uint64, p *semantics.Program)) {
	for seed := range n {
		f(seed, semantics.Generate(rand.New(rand.NewPCG(seed, 3)), style))
	}
}

// If callers keep their frames, evaluation scoping differs from the semantics only in
// forced costs, in higher-order programs too.
func TestSampledEvaluation(t *testing.T) {
	var y tally
	generate(semantics.HigherOrder, 250, func(seed uint64, p *semantics.Program) {
		y.within(t, seed, record(t, p, semantics.Lexical{Evaluation: true}, true, centres.ModeEvaluation, same))
	})
	y.enough(t)
}

// If callers keep their frames, lexical scoping differs from the semantics only in forced
// costs in first-order programs: they apply every function where it is created.
func TestSampledLexical(t *testing.T) {
	var y tally
	generate(semantics.FirstOrder, 250, func(seed uint64, p *semantics.Program) {
		y.within(t, seed, record(t, p, semantics.Lexical{CAF: semantics.CAFSubsumed}, true, centres.ModeLexical, same))
	})
	y.enough(t)
}

// Lexical scoping is exact for code inside a centre, in all programs, even if tail calls
// leave no frame of the caller. The other differences are among the costs that production
// reports as subsumed or forced.
func TestSampledLexicalOwn(t *testing.T) {
	programs, differ := 0, uint64(0)
	generate(semantics.HigherOrder, 250, func(seed uint64, p *semantics.Program) {
		j := record(t, p, semantics.Lexical{CAF: semantics.CAFSubsumed}, false, centres.ModeLexical, same)
		if j == nil {
			return
		}
		programs++
		for i, c := range j.prod {
			right := uint64(0)
			for _, row := range c.Rows {
				if plain(row.Centre.Name) == j.bearer[i] {
					right += row.Individual
				}
			}
			if right < c.Own {
				t.Fatalf("seed %d: of %s's costs %d lie in a centre, %d are attributed right", seed, j.bearer[i], c.Own, right)
			}
			if wrong := c.Total - right; wrong > c.Subsumed+c.Forced+c.Pseudo {
				t.Fatalf("seed %d: %d of %s's costs are wrong, %d subsumed, %d forced", seed, wrong, j.bearer[i], c.Subsumed, c.Forced)
			}
			differ += c.Total - right
		}
	})
	if programs < 100 || differ == 0 {
		t.Errorf("%d programs, %d differ", programs, differ)
	}
}

// Cost-centre stacks differ from the semantics only in samples above an update frame.
func TestSampledStacks(t *testing.T) {
	var programs int
	var agree, differ uint64
	generate(semantics.FirstOrder, 250, func(seed uint64, p *semantics.Program) {
		sem := semantics.NewStacks(semantics.Lexical{CAF: semantics.CAFSubsumed})
		j := record(t, p, sem, true, centres.ModeStacks, func(s semantics.Stack) string { return strings.Join(sem.Table.Centres(s), "<") })
		if j == nil {
			return
		}
		programs++
		for i, c := range j.prod {
			var wrong, crossed uint64
			for at, row := range c.Rows {
				if row.Parent < 0 {
					crossed += row.InheritedForced
				}
				if row.Individual == 0 {
					continue
				}
				var names []string
				for _, x := range c.Stack(at) {
					names = append(names, plain(x.Name))
				}
				if strings.Join(names, "<") != j.bearer[i] {
					wrong += row.Individual
				} else {
					agree += row.Individual
				}
			}
			differ += wrong
			if wrong > crossed {
				t.Fatalf("seed %d: %d of the costs of <%s> go to other stacks, %d were sampled above an update frame", seed, wrong, j.bearer[i], crossed)
			}
		}
	})
	t.Logf("%d programs: %d costs agree, %d differ", programs, agree, differ)
	if programs < 100 || differ == 0 || agree < differ {
		t.Errorf("%d programs: %d costs agree, %d differ", programs, agree, differ)
	}
}

// The error can be as large as the forced cost: a thunk is built under one centre and
// forced under another, and its code is in no centre. For code inside a centre the
// attribution does not depend on the centre that forces it.
func TestForcedBoundIsAttained(t *testing.T) {
	const work = `work n = case n of { Z -> Z; S k -> case work k of { _ -> Z } };
		three = S (S (S Z));`
	for _, c := range []struct {
		name, src string
		forced    bool
	}{
		{"built under a, forced under b", work + `main = let t = scc "a" (let u = work three in Box u) in case t of { Box u -> scc "b" case u of { _ -> Z } };`, true},
		{"the thunk's code lies in a", `main = let z = Z in let y = S z in
			let t = scc "a" case y of { S m -> case m of { Z -> case y of { S n -> n } } } in scc "b" case t of { _ -> Z };`, false},
	} {
		p, err := semantics.Parse(c.src)
		if err != nil {
			t.Fatal(err)
		}
		j := record(t, p, semantics.Lexical{CAF: semantics.CAFSubsumed}, true, centres.ModeLexical, same)
		var differ, forced uint64
		for i, prod := range j.prod {
			for _, row := range prod.Rows {
				if plain(row.Centre.Name) != j.bearer[i] {
					differ += row.Individual
				}
				forced += row.Forced
			}
		}
		if c.forced && (differ < 10 || differ != forced) {
			t.Errorf("%s: %d differ of %d forced", c.name, differ, forced)
		}
		// The update itself runs the machine's code, directly above the update frame.
		if !c.forced && differ > 1 {
			t.Errorf("%s: %d differ of %d forced", c.name, differ, forced)
		}
	}
}
