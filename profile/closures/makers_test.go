package closures

import (
	"math"
	"slices"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/ghc"
	"ccagent/profile"
	"ccagent/profile/logtest"
)

// Of a constructor each function has its share of the bytes that the code which makes it allocates: of what the program has counted, or of
// what blocks say. What another constructor's code allocates, or a function itself, says nothing of it.
func TestByFunction(t *testing.T) {
	for _, c := range []struct {
		name  string
		ticky []string
		f     float64
		known Known
		apart bool // blocks differ
	}{
		// Half of 1200 samples of 40 bytes are choices, by blocks: 600; samples in the code itself say 400.
		{name: "estimated", f: 300, known: Estimated},
		// Blocks say 360, and some 70 more or less: that samples say 400 may be so. The lesser of two estimates would be too low on average.
		{name: "estimated, of blocks that differ", f: 300, known: Estimated, apart: true},
		{name: "counted", ticky: []string{"Curry_Prelude.$fNonDetC_Bool_$cchoiceCons{v r5} (fun)"}, f: 307.5, known: Sampled},
		{name: "by the constructor's own function", ticky: []string{"Curry_Prelude.Choice_C_Bool{v r5} (fun)"}, f: 307.5, known: Sampled},
		{name: "of another module", ticky: []string{"Curry_Other.Choice_C_Bool{v r5} (fun)"}, f: 300, known: Estimated},
		{name: "of another type", ticky: []string{"Curry_Prelude.Choice_C_Int{v r5} (fun)"}, f: 300, known: Estimated},
	} {
		l := logtest.New()
		code := func(module, name string) logtest.Frame {
			return l.Code(l.Binding("main", module, name, 0), eventlog.QualityExact, eventlog.CategoryHaskell)
		}
		f, g := code("Curry_Puzzles", "nd_C_f"), code("Curry_Puzzles", "d_C_g")
		narrow := code("Types", "narrow")
		choose, failed := code("Curry_Prelude", "choiceCons (instance NonDet C_Bool)"), code("Curry_Prelude", "failCons (instance NonDet C_Bool)")
		wait := func(x logtest.Frame) logtest.Frame { return x.As(eventlog.FrameReturn) }
		l.Write(1, &eventlog.Closure{ID: 1, Module: 1, Addr: 0x100, Type: uint32(ghc.Constr20), Name: "main:Curry_Prelude.Choice_C_Bool"})
		l.Write(1, &eventlog.Closure{ID: 2, Module: 1, Addr: 0x200, Type: uint32(ghc.Constr20), Name: "main:Curry_Prelude.C_True"})
		for i := range 100 {
			at := uint64(100 * i)
			next := func() uint64 { at += 8; return at } // as far apart as their weights say
			for range 3 {
				l.Sample(next(), 40, l.Stack(wait(g), wait(f), choose))
			}
			l.Sample(next(), 40, l.Stack(wait(g), wait(narrow), choose))
			for range 6 {
				l.Sample(next(), 40, l.Stack(wait(f), failed))
			}
			l.Sample(next(), 40, l.Stack(f))
			l.Sample(next(), 40, l.Stack(wait(f), narrow))
			choices := uint32(50)
			if c.apart {
				choices = uint32(60 * (i % 2))
			}
			l.Write(at+1, block(100, 4000, 4000, eventlog.ClosureCount{Closure: 1, Count: choices, Bytes: 40 * choices}, eventlog.ClosureCount{Closure: 2, Count: 100 - choices, Bytes: 40 * (100 - choices)}))
		}
		for i, name := range c.ticky {
			l.Write(1, &eventlog.TickyCounterDef{Counter: uint64(i + 1), Name: name})
			l.Write(20000, &eventlog.TickyCounterSample{Counter: uint64(i + 1), Entries: 3, Allocs: 16_400})
		}
		p := load(t, l.End())
		s := p.Select(profile.Filter{})
		rows := slices.DeleteFunc(Of(p, All).Rows, func(r Row) bool { return r.Role == 0 })
		if len(rows) != 1 {
			t.Fatalf("%s: constructors %+v", c.name, rows)
		}
		got := ByFunction(rows, s)
		if len(got) != 2 || got[0].Name != "Puzzles.f (nd)" || got[1].Name != "Puzzles.g" || got[0].Constructor != "Prelude.Bool (choice)" {
			t.Fatalf("%s: %+v", c.name, got)
		}
		for i, want := range []float64{c.f, c.f / 3} {
			m := &got[i]
			if math.Abs(m.Count-want) > 1e-6*want || m.Known != c.known || m.Low >= m.Count || m.High <= m.Count || m.Effective < 50 {
				t.Errorf("%s: %+v, want %v", c.name, m, want)
			}
		}
		if c.known == Estimated && !c.apart && got[0].High < 450 { // as blocks say
			t.Errorf("%s: %+v", c.name, got[0])
		}
		// What the program counted is of all that it did.
		for _, m := range ByFunction(rows, p.Select(profile.Filter{Range: profile.Range{From: 0, To: 5000}})) {
			if m.Known != Estimated {
				t.Errorf("%s: of a part of the log %+v", c.name, m)
			}
		}
	}
}
