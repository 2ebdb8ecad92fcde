package profile

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
)

// An update frame, what stands on it, and code of the run-time system's own that
// works for others.
func TestCosts(t *testing.T) {
	l := logtest.New()
	code := func(name string) logtest.Frame {
		return l.Code(l.Binding("main", "Main", name, 0), eventlog.QualityExact, eventlog.CategoryHaskell)
	}
	rts := func(name string) logtest.Frame {
		return l.Code(l.Function(name, eventlog.CategorySTG), eventlog.QualityExact, eventlog.CategorySTG)
	}
	f, g := code("f"), code("g")
	wait := func(x logtest.Frame) logtest.Frame { return x.As(eventlog.FrameReturn) }
	update := rts("stg_upd_frame").As(eventlog.FrameUpdate)
	l.Sample(1, 1, l.Stack(f))
	l.Sample(2, 10, l.Stack(wait(f), g))                                         // f's case waits for g
	l.Sample(3, 100, l.Stack(wait(f), wait(f), update, g))                       // a thunk of g, forced by f
	l.Sample(4, 1000, l.Stack(wait(g), rts("stg_upd_frame_info")))               // updating for g
	l.Sample(5, 10000, l.Stack(wait(g), update, wait(f), rts("stg_ap_pp_fast"))) // calling for f, whose thunk g forced
	l.Sample(6, 100000, l.Stack(wait(f), rts("stg_yield_noregs")))               // neither
	p := mustLoad(t, l.End())
	got := make(map[string]string)
	for _, r := range p.Select(Filter{}).Costs(nil).Rows {
		got[r.Name] = fmt.Sprint(r.Own, " U", r.Update, " A", r.Apply, " C", r.Cases, " T", r.Thunks)
	}
	want := map[string]string{"Main.f": "1 U0 A10000 C110110 T10000", "Main.g": "110 U1000 A0 C11000 T100"}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// What the run-time system of a functional-logic program does is on the account of the function that
// called for it, and of nobody where none did.
func TestCostsOfSearch(t *testing.T) {
	l := logtest.New()
	code := func(module, name string) logtest.Frame {
		return l.Code(l.Binding("main", module, name, 0), eventlog.QualityExact, eventlog.CategoryHaskell)
	}
	f, narrow, dfs := code("Curry_Puzzles", "nd_C_perm"), code("Types", "narrow"), code("Search", "dfs").As(eventlog.FrameReturn)
	wait := f.As(eventlog.FrameReturn)
	l.Sample(1, 1, l.Stack(dfs, f))
	l.Sample(2, 10, l.Stack(dfs, wait, narrow))
	l.Sample(3, 100, l.Stack(dfs, wait, narrow.As(eventlog.FrameReturn), narrow))
	l.Sample(4, 1000, l.Stack(dfs, narrow))
	p := mustLoad(t, l.End())
	s := p.Select(Filter{})
	rows := s.Costs(s).Rows
	if len(rows) != 1 || rows[0].Name != "Puzzles.perm (nd)" || rows[0].Own != 1 || rows[0].Search != 110 || rows[0].Made != 1 || rows[0].MadeSearch != 110 || rows[0].Cases != 110 {
		t.Errorf("%+v", rows)
	}
}

// On any log the estimates are what the definitions give, sample by sample.
func TestCostsByDefinition(t *testing.T) {
	for seed := range uint64(60) {
		p := mustLoad(t, logtest.Random(rand.New(rand.NewPCG(seed, 10))))
		s := p.Select(Filter{})
		table := &costTable{p: p, of: make([]int32, len(p.Symbols.Bindings))}
		cases, thunks := make(map[string]uint64), make(map[string]uint64)
		own := uint64(0)
		for i, n := range s.Count {
			if n == 0 {
				continue
			}
			waits, evaluated := make(map[string]bool), make(map[string]bool)
			for at := p.Sites[i].Node; at != 0; at = p.Nodes.Parent[at] {
				if p.Nodes.Kind[at] == eventlog.FrameContext {
					break
				}
				b := table.code(at)
				if b == 0 {
					continue
				}
				name := p.Symbols.Bindings[b].QualifiedName()
				waits[name] = waits[name] || p.Nodes.Kind[at] == eventlog.FrameReturn
				under := p.Nodes.Parent[at]
				for under != 0 && columns.Structural(p.Nodes.Kind[under]) && p.Nodes.Kind[under] != eventlog.FrameUpdate {
					under = p.Nodes.Parent[under]
				}
				evaluated[name] = evaluated[name] || under != 0 && p.Nodes.Kind[under] == eventlog.FrameUpdate
			}
			for name, is := range waits {
				if is && s.Weight[i] > 0 {
					cases[name] += s.Weight[i]
				}
			}
			for name, is := range evaluated {
				if is && s.Weight[i] > 0 {
					thunks[name] += s.Weight[i]
				}
			}
		}
		c := s.Costs(s)
		gotCases, gotThunks := make(map[string]uint64), make(map[string]uint64)
		made := uint64(0)
		for _, r := range c.Rows {
			if r.Cases > 0 {
				gotCases[r.Name] += r.Cases
			}
			if r.Thunks > 0 {
				gotThunks[r.Name] += r.Thunks
			}
			own += r.Own + r.Update + r.Apply
			made += r.Made
		}
		if fmt.Sprint(gotCases) != fmt.Sprint(cases) || fmt.Sprint(gotThunks) != fmt.Sprint(thunks) {
			t.Fatalf("seed %d:\ncases  %v\nwant   %v\nthunks %v\nwant   %v", seed, gotCases, cases, gotThunks, thunks)
		}
		if own > s.Total || made > s.Total {
			t.Fatalf("seed %d: %d and %d of %d", seed, own, made, s.Total)
		}
	}
}
