package timeline

import (
	"reflect"
	"testing"

	"ccagent/profile"
	"ccagent/profile/columns"
)

// Parts that overlap are one pause, whatever their order in the log; a
// collection's statistics belong to the pause that they are told in or after.
func TestPauses(t *testing.T) {
	p := profile.New(&columns.Log{GCs: []columns.GC{{Cap: 1, Start: 12, End: 19}, {Cap: 0, Start: 10, End: 20}, {Cap: 0, Start: 30, End: 35}, {Cap: 1, Start: 34, End: 40}, {Cap: 0, Start: 50, End: 60}, {Cap: 0, Start: 60, End: 61}}})
	p.RTSLog.Collections = []columns.Collection{
		{Time: 5, Generation: 1, Copied: 9}, // before any
		{Time: 18, Generation: 0, Copied: 100},
		{Time: 41, Generation: 1, Copied: 1000, Live: 2000},
	}
	want := []Pause{
		{10, 20, 0, 2, 100, 0}, {30, 40, 1, 2, 1000, 2000}, {50, 60, -1, 1, 0, 0}, {60, 61, -1, 1, 0, 0},
	}
	ps := Pauses(p)
	if !reflect.DeepEqual(ps, want) {
		t.Fatalf("%+v\nwant\n%+v", ps, want)
	}
	all, gens := SumPauses(ps)
	if all.Count != 4 || all.TotalNs != 31 || all.MaxNs != 10 || all.P50Ns != 10 || all.P95Ns != 10 || all.Copied != 1100 || all.LongestAt != 10 {
		t.Errorf("all: %+v", all)
	}
	if len(gens) != 3 || gens[0].Generation != -1 || gens[0].Count != 2 || gens[1].TotalNs != 10 || gens[2].LiveMax != 2000 {
		t.Errorf("by generation: %+v", gens)
	}
	if in := PausesIn(ps, profile.Range{From: 20, To: 50}); len(in) != 1 || in[0].Start != 30 {
		t.Errorf("from 20 to 50: %+v", in)
	}
	if all, gens := SumPauses(nil); all.Count != 0 || all.P95Ns != 0 || gens != nil {
		t.Errorf("nothing sums to %+v, %v", all, gens)
	}
}
