package timeline

import (
	"reflect"
	"testing"

	"ccagent/profile"
	"ccagent/profile/columns"
)

// Parts that overlap are one pause, whatever their order in the log; a
// collection's statistics belong to the pause that they are reported in or after. What was seen only to end is none.
func TestPauses(t *testing.T) {
	p := profile.New(&columns.Log{GCs: []columns.GC{{Cap: 1}, {Cap: 1, Start: 12, End: 19}, {Cap: 0, Start: 10, End: 20}, {Cap: 0, Start: 30, End: 35}, {Cap: 1, Start: 34, End: 40}, {Cap: 0, Start: 50, End: 60}, {Cap: 0, Start: 60, End: 61}}})
	p.RTSLog.Collections = []columns.Collection{
		{Time: 5, Generation: 1, Copied: 9}, // before any
		{Time: 18, Generation: 0, Copied: 100},
		{Time: 41, Generation: 1, Copied: 1000, Live: 2000},
	}
	want := []Pause{
		{Start: 10, End: 20, WorkNs: 10, WaitNs: 17, Generation: 0, Caps: 2, Copied: 100},
		{Start: 30, End: 40, WorkNs: 10, WaitNs: 11, Generation: 1, Caps: 2, Copied: 1000, Live: 2000},
		{Start: 50, End: 60, WorkNs: 10, WaitNs: 10, Generation: -1, Caps: 1}, {Start: 60, End: 61, WorkNs: 1, WaitNs: 1, Generation: -1, Caps: 1},
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

// A pause lasts from the request until the last capability goes on. A part that ends after the
// next request still belongs to the collection that it was in; time in two pauses counts once.
func TestPausesWithRequests(t *testing.T) {
	p := profile.New(&columns.Log{GCs: []columns.GC{
		{Cap: 1, Start: 9, End: 35, Worked: 10},
		{Cap: 0, Request: 10, Start: 15, End: 30, Worked: 14},
		{Cap: 0, Request: 33, Start: 36, End: 40, Worked: 4},
		{Cap: 1, Start: 35, End: 41, Worked: 2},
		{Cap: 1, Request: 50, Start: 50, End: 52, Worked: 2},
	}})
	p.RTSLog.Concurrent = []columns.ConcurrentPhase{{Kind: columns.ConcurrentMark, Start: 60, End: 90}, {Kind: columns.ConcurrentSync, Start: 80, End: 85}}
	want := []Pause{
		{Start: 9, End: 35, SyncNs: 6, WorkNs: 15, ReleaseNs: 5, WaitNs: 22, Generation: -1, Caps: 2},
		{Start: 33, End: 41, SyncNs: 3, WorkNs: 4, ReleaseNs: 1, WaitNs: 7, Generation: -1, Caps: 2},
		{Start: 50, End: 52, WorkNs: 2, Generation: -1, Caps: 1},
		{Start: 80, End: 85, WorkNs: 5, Generation: -1, Flush: true},
	}
	ps := Pauses(p)
	if !reflect.DeepEqual(ps, want) {
		t.Fatalf("%+v\nwant\n%+v", ps, want)
	}
	all, _ := SumPauses(ps)
	if all.Count != 4 || all.TotalNs != 26+6+2+5 || all.MaxNs != 26 || all.SyncNs != 9 || all.MaxSyncNs != 6 || all.ReleaseNs != 6 || all.WaitNs != 29 {
		t.Errorf("all: %+v", all)
	}
	tl := &Timeline{To: 100, Step: 10, Weight: make([]uint64, 10)}
	if ns := tl.InPauses(p); !reflect.DeepEqual(ns, []uint64{1, 10, 10, 10, 1, 2, 0, 0, 5, 0}) {
		t.Errorf("pauses by bucket: %v", ns)
	}
}
