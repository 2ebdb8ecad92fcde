package profile

import (
	"testing"

	"ccagent/eventlog"
	"ccagent/profile/logtest"
)

// The samples of the RTS's time profiler are attributed to its cost centres, with their
// source spans.
func TestCostCentreProfile(t *testing.T) {
	r := logtest.NewRTS()
	r.Put(1, eventlog.NoCap, &eventlog.ProfBegin{TickNs: 1_000_000},
		&eventlog.CostCentre{Centre: 3, Label: "GC", Module: "GC", SrcLoc: "<built-in>"},
		&eventlog.CostCentre{Centre: 2, Label: "main", Module: "Main", SrcLoc: "T.hs:(11,1)-(19,21)"},
		&eventlog.CostCentre{Centre: 1, Label: "build", Module: "Main", SrcLoc: "T.hs:9:1-66"})
	for i := range uint64(10) {
		r.Put(i*1_000_000, eventlog.NoCap, &eventlog.ProfSample{Tick: i, Stack: []uint32{1, 2}})
	}
	r.Put(20_000_000, eventlog.NoCap, &eventlog.ProfSample{Cap: 1, Stack: []uint32{2}}, &eventlog.ProfSample{Stack: []uint32{3}},
		&eventlog.ProfSample{Stack: []uint32{99}}, &eventlog.ProfSample{})
	p := mustLoad(t, r.End())
	s := p.Select(Filter{})
	if s.Total != 14_000_000 || s.EventDef().Unit != "ns" || s.EventDef().Rate != 1000 {
		t.Fatalf("%d of %+v", s.Total, s.EventDef())
	}
	got := make(map[string][2]uint64)
	for _, row := range s.Hot(LevelBinding).Rows {
		got[row.Element.Name] = [2]uint64{row.ShareWeight, row.InclusiveWeight}
	}
	for name, want := range map[string][2]uint64{"Main.build": {10_000_000, 10_000_000}, "Main.main": {1_000_000, 11_000_000}, "(GC)": {1_000_000, 1_000_000}} {
		if got[name] != want {
			t.Errorf("%s: %v, want %v, in %v", name, got[name], want, got)
		}
	}
	if e := s.Hot(LevelSpan).Rows[0].Element; e.Name != "T.hs:9:1-9:67" {
		t.Errorf("span %s", e.Name)
	}
}
