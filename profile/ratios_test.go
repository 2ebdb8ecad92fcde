package profile_test

import (
	"bytes"
	"math"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
)

// Events of one run are related by element, where both have enough samples.
func TestRatios(t *testing.T) {
	l := logtest.New()
	for i, e := range []eventlog.EventDef{
		{Requested: "cycles:u", Granted: "cycles:u", Unit: "cycles"},
		{Requested: "cpu_core/instructions/", Granted: "cpu_core/instructions/", Unit: "instructions"},
		{Requested: "cache-misses", Granted: "cache-misses", Unit: "misses"},
	} {
		e.Index = uint32(i + 1)
		l.Write(0, &e)
	}
	node := func(name string) uint32 {
		b := l.Binding("main", "Main", name, 0)
		f := l.File(name+".hs", "")
		return l.Stack(l.Block(b, l.Span(f, 1, 1, 2, 1, b)))
	}
	fast, slow, rare := node("fast"), node("slow"), node("rare")
	time := uint64(1)
	samples := func(event uint32, node uint32, n int, weight uint64) {
		for range n {
			time++
			l.SampleOf(time, eventlog.Sample{Event: event, Weight: weight, Node: node})
		}
	}
	samples(1, fast, 100, 1000)
	samples(2, fast, 100, 2000)
	samples(3, fast, 30, 10)
	samples(1, slow, 100, 1000)
	samples(2, slow, 100, 500)
	samples(1, rare, 3, 1000)
	samples(2, rare, 3, 1000)
	p, err := profile.Load(bytes.NewReader(l.End()))
	if err != nil {
		t.Fatal(err)
	}
	s := p.Select(profile.Filter{})
	r := s.Ratios(profile.LevelBinding)
	if r == nil || !r.IPC || len(r.PerKilo) != 1 || p.Events[r.PerKilo[0]].Requested != "cache-misses" {
		t.Fatalf("ratios are %+v", r)
	}
	// The rows of any event of the log have the same elements.
	for name, want := range map[string]profile.Ratio{
		"Main.fast": {IPC: 2, PerKilo: []float64{1.5}},
		"Main.slow": {IPC: 0.5, PerKilo: []float64{0}},
		"Main.rare": {IPC: 0, PerKilo: []float64{-1}},
	} {
		found := false
		for _, row := range p.Select(profile.Filter{Event: 2}).Hot(profile.LevelBinding).Rows {
			if row.Element.Name != name {
				continue
			}
			found = true
			got := r.Of(row.Element.ID)
			if math.Abs(got.IPC-want.IPC) > 1e-9 || math.Abs(got.PerKilo[0]-want.PerKilo[0]) > 1e-9 {
				t.Errorf("%s: %+v, want %+v", name, got, want)
			}
		}
		if !found {
			t.Errorf("%s has no row", name)
		}
	}
}

// A clock in place of cycles is no count of cycles.
func TestRatiosNeedInstructions(t *testing.T) {
	l := logtest.New()
	b := l.Binding("main", "Main", "f", 0)
	n := l.Stack(l.Block(b))
	l.Sample(1, 10, n)
	p, err := profile.Load(bytes.NewReader(l.End()))
	if err != nil {
		t.Fatal(err)
	}
	if r := p.Select(profile.Filter{}).Ratios(profile.LevelBinding); r != nil {
		t.Errorf("ratios are %+v", r)
	}
}
