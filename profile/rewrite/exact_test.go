package rewrite

import (
	"fmt"
	"maps"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/centres"
	"ccagent/profile/logtest"
)

// exactLog has samples on the cost-centre stacks MAIN, f<MAIN and g<f<MAIN, whose
// ids begin at first and are defined after their use.
func exactLog(first uint32, weights ...uint64) []byte {
	l := logtest.New()
	for i, w := range weights {
		l.SampleOf(uint64(10+i), eventlog.Sample{Weight: w, Centres: first + uint32(i)})
	}
	for i, label := range []string{"MAIN", "f", "g"} {
		id := first + uint32(i)
		module, parent := "Main", id-1
		if i == 0 {
			module, parent = "MAIN", 0
		}
		l.Write(20, &eventlog.CentreDef{ID: id, Label: label, Module: module})
		l.Write(20, &eventlog.CentreStack{ID: id, Parent: parent, Centre: id})
	}
	return l.End()
}

func exactFigures(t *testing.T, log []byte) map[string]string {
	t.Helper()
	p := load(t, log)
	set := centres.Set{Patterns: []centres.Pattern{{Level: profile.LevelBinding, HasLevel: true, Glob: "*"}}}
	out := make(map[string]string)
	c := centres.Attribute(p.Select(profile.Filter{}), centres.Find(p, set), centres.ModeExact)
	for i := range c.Rows {
		r := &c.Rows[i]
		out[r.Centre.Name] = fmt.Sprintf("%d of %d, on %d", r.Individual, r.Inherited, len(c.Stack(i)))
	}
	return out
}

// Cost-centre stacks survive cutting, and equal ones of merged logs become one.
func TestExactStacks(t *testing.T) {
	a := exactLog(1, 1, 10, 100)
	want := map[string]string{"MAIN": "1 of 111, on 1", "Main.f": "10 of 110, on 2", "Main.g": "100 of 100, on 3"}
	if got := exactFigures(t, a); !maps.Equal(got, want) {
		t.Fatalf("as written: %v", got)
	}
	cut, _ := rewritten(t, Options{Range: profile.Range{From: 11}}, input("a", a))
	want = map[string]string{"MAIN": "0 of 110, on 1", "Main.f": "10 of 110, on 2", "Main.g": "100 of 100, on 3"}
	if got := exactFigures(t, cut); !maps.Equal(got, want) {
		t.Errorf("cut: %v", got)
	}
	merged, _ := rewritten(t, Options{}, input("a", a), input("b", exactLog(7, 1000, 10000)))
	want = map[string]string{"MAIN": "1001 of 11111, on 1", "Main.f": "10010 of 10110, on 2", "Main.g": "100 of 100, on 3"}
	if got := exactFigures(t, merged); !maps.Equal(got, want) {
		t.Errorf("merged: %v", got)
	}
}
