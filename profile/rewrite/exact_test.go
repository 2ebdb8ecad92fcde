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

// closureLog has a block of two closures, whose ids begin at first.
func closureLog(first uint32, at uint64, bytes uint32) []byte {
	l := logtest.New()
	for i, name := range []string{"main:Main.A", "main:Main.B"} {
		l.Write(1, &eventlog.Closure{ID: first + uint32(i), Module: logtest.Module, Addr: 0x100 * uint64(i+1), Type: 1, Name: name})
	}
	l.Write(at, &eventlog.NurseryBlock{PID: 100, Places: 1, Used: 4096, Read: 4096, Closures: []eventlog.ClosureCount{
		{Closure: first + 1, Count: 1, Bytes: bytes}, {Closure: first, Count: 1, Bytes: 4096 - bytes}}})
	return l.End()
}

// Sampled blocks survive cutting, and equal closures of merged logs become one.
func TestClosures(t *testing.T) {
	shares := func(log []byte) string {
		t.Helper()
		n := load(t, log).Nurseries
		out := ""
		for i := range n.Blocks {
			for _, c := range n.Counts(&n.Blocks[i]) {
				out += fmt.Sprintf("%s %d ", n.Closures[c.Closure].Name, c.Bytes)
			}
		}
		return fmt.Sprintf("%d closures: %s", len(n.Closures)-1, out)
	}
	a, b := closureLog(1, 10, 96), closureLog(7, 20, 1096)
	merged, _ := rewritten(t, Options{}, input("a", a), input("b", b))
	if got, want := shares(merged), "2 closures: main:Main.B 96 main:Main.A 4000 main:Main.B 1096 main:Main.A 3000 "; got != want {
		t.Errorf("merged: %s; want %s", got, want)
	}
	cut, _ := rewritten(t, Options{Range: profile.Range{From: 15}}, input("a", merged))
	if got, want := shares(cut), "2 closures: main:Main.B 1096 main:Main.A 3000 "; got != want {
		t.Errorf("cut: %s; want %s", got, want)
	}
}
