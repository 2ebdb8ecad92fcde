package profile

import (
	"testing"

	"ccagent/eventlog"
	"ccagent/profile/logtest"
)

// curryLog has a sample in both versions of a Curry function, in a method that KiCS2 generates, and
// in a function of its run-time system, if that is there.
func curryLog(runtime bool) []byte {
	l := logtest.New()
	code := func(module, name string) logtest.Frame {
		return l.Code(l.Binding("main", module, name, 0), eventlog.QualityExact, eventlog.CategoryHaskell)
	}
	frames := []logtest.Frame{code("Curry_Prelude", "d_C_map"), code("Curry_Prelude", "nd_C_map"), code("Curry_Prelude", "try (instance NonDet C_Bool)")}
	if runtime {
		frames = append(frames, code("Types", "narrow"))
	}
	for _, f := range frames {
		l.Sample(1, 10, l.Stack(f))
	}
	return l.End()
}

func shares(p *Profile, level Level) map[string]uint64 {
	out := map[string]uint64{}
	for _, r := range p.Select(Filter{}).Hot(level).Rows {
		out[r.Element.Name] += r.ShareWeight
	}
	return out
}

func wantShares(t *testing.T, p *Profile, level Level, want map[string]uint64) {
	t.Helper()
	got := shares(p, level)
	for name, w := range want {
		if got[name] != w {
			t.Errorf("%v %s: %d, want %d, in %v", level, name, got[name], w, got)
		}
	}
	if len(got) != len(want) {
		t.Errorf("%v: %v, want %v", level, got, want)
	}
}

// Versions of a Curry function are told apart at level binding and joined at level function; its
// run-time system is (search).
func TestCurryNames(t *testing.T) {
	p := mustLoad(t, curryLog(true))
	wantShares(t, p, LevelBinding, map[string]uint64{"Prelude.map": 10, "Prelude.map (nd)": 10, "(search)": 20})
	wantShares(t, p, LevelFunction, map[string]uint64{"Prelude.map": 20, "(search)": 20})
	wantShares(t, p, LevelModule, map[string]uint64{"Prelude": 20, "(search)": 20})
	if !p.IsCurry() {
		t.Error("it is no program of KiCS2's")
	}
}

// Without the run-time system a program is none of KiCS2's, whatever its modules are called.
func TestOtherProgramsKeepTheirNames(t *testing.T) {
	p := mustLoad(t, curryLog(false))
	wantShares(t, p, LevelFunction, map[string]uint64{"Curry_Prelude.d_C_map": 10, "Curry_Prelude.nd_C_map": 10, "Curry_Prelude.try (instance NonDet C_Bool)": 10})
	l := logtest.New()
	l.Sample(1, 10, l.Stack(l.Code(l.Binding("main", "Search", "d_C_dfs", 0), eventlog.QualityExact, eventlog.CategoryHaskell)))
	wantShares(t, mustLoad(t, l.End()), LevelBinding, map[string]uint64{"Search.d_C_dfs": 10})
}
