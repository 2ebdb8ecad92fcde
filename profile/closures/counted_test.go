package closures

import (
	"maps"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
)

// What probes have counted is exact where they were in place all along and see all places. Where a process began during the capture, there are at
// least so many; what was counted in a part of the time says nothing of the whole. Of functions whose values were not told apart where they are
// counted, only the sum is exact.
func TestCounts(t *testing.T) {
	whole := eventlog.SearchWindow{PID: 100, Places: 9, LengthNs: 50, StandsNs: 50, Made: 10, Sampled: 3}
	late, part, unknown, all := whole, whole, whole, whole
	late.Late, part.LengthNs, unknown.Unknown, all.Sampled = 1, 0, 1, 10
	for name, c := range map[string]struct {
		window     eventlog.SearchWindow
		exact, all bool
		known      map[string]Known // by function
	}{
		"all along":        {whole, true, true, map[string]Known{"Puzzles.f (nd)": Exact, "Puzzles.g": Sampled, "Puzzles.h": Sampled}},
		"each with sample": {all, true, true, map[string]Known{"Puzzles.f (nd)": Exact, "Puzzles.g": Exact, "Puzzles.h": Exact}},
		"began late":       {late, false, true, map[string]Known{"Puzzles.f (nd)": AtLeast, "Puzzles.g": Sampled, "Puzzles.h": Sampled}},
		"for a while":      {part, false, false, map[string]Known{"Puzzles.f (nd)": Sampled, "Puzzles.g": Sampled, "Puzzles.h": Sampled}},
		"not all places":   {unknown, false, false, map[string]Known{"Puzzles.f (nd)": Sampled, "Puzzles.g": Sampled, "Puzzles.h": Sampled}},
	} {
		l := logtest.New()
		l.Write(0, &eventlog.EventDef{Index: 1, Requested: eventlog.SearchEvent, Granted: eventlog.SearchEvent, Unit: "values"})
		code := func(module, name string) logtest.Frame {
			return l.Code(l.Binding("main", module, name, 0), eventlog.QualityExact, eventlog.CategoryHaskell)
		}
		f, g, h := code("Curry_Puzzles", "nd_C_f"), code("Curry_Puzzles", "d_C_g"), code("Curry_Puzzles", "d_C_h")
		narrow, choice, choose := code("Types", "narrow"), code("Curry_Prelude", "Choice_C_Bool"), code("Curry_Prelude", "choiceCons (instance NonDet C_Bool)")
		wait := func(x logtest.Frame) logtest.Frame { return x.As(eventlog.FrameReturn) }
		// The first are counted for f alone, the others for who calls narrow.
		for i, s := range []struct {
			weight uint64
			stack  uint32
		}{
			{5, l.Stack(wait(f), choose, choice)},
			{2, l.Stack(wait(g), wait(narrow), choose, choice)},
			{3, l.Stack(wait(h), wait(narrow), choose, choice)},
		} {
			l.SampleOf(uint64(i+1), eventlog.Sample{Event: 1, PID: 100, Weight: s.weight, Node: s.stack})
		}
		l.Write(9, &c.window)
		byCaller := logtest.Changed(l.End(), func(rec *eventlog.Record) {
			if e, is := rec.Event.(*eventlog.Nodes); is {
				for i := range e.Nodes {
					if e.Nodes[i].Addr == choice.Addr {
						e.Nodes[i].Kind = eventlog.FrameReturn // by return address, see eventlog.SearchEvent
					}
				}
			}
		})
		got := CountsOf(load(t, byCaller).Select(profile.Filter{}))
		if got == nil || got.Exact != c.exact || got.All != c.all || len(got.ByType) != 1 || got.ByType[0].Count != 10 {
			t.Fatalf("%s: %+v", name, got)
		}
		known, made := map[string]Known{}, map[string]float64{}
		for _, m := range got.ByFunction {
			known[m.Name], made[m.Name] = m.Known, m.Count
			if (m.Low < m.High) != (m.Known == Sampled && m.Name != "Puzzles.f (nd)") {
				t.Errorf("%s: %+v", name, m)
			}
		}
		if !maps.Equal(known, c.known) || !maps.Equal(made, map[string]float64{"Puzzles.f (nd)": 5, "Puzzles.g": 2, "Puzzles.h": 3}) {
			t.Errorf("%s: %v %v", name, known, made)
		}
	}
}
