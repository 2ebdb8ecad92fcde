package timeline

import (
	"bytes"
	"reflect"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
)

func heapLog(t *testing.T) *profile.Profile {
	r := logtest.NewRTS()
	r.Put(1, eventlog.NoCap, &eventlog.HeapProfBegin{Profile: 0, PeriodNs: 100, Breakdown: eventlog.BreakdownTypeDescr, Module: "Main"})
	census := func(time, era uint64, bands map[string]uint64, order ...string) {
		r.Put(time, eventlog.NoCap, &eventlog.HeapSampleBegin{Era: era})
		for _, name := range order {
			r.Put(time, eventlog.NoCap, &eventlog.HeapSampleString{Bytes: bands[name], Label: name})
		}
		r.Put(time, eventlog.NoCap, &eventlog.HeapSampleEnd{Era: era})
	}
	census(100, 1, map[string]uint64{"Map": 10, "[]": 5}, "[]", "Map")
	census(200, 2, map[string]uint64{"Map": 100, "[]": 7, "Int": 1}, "Map", "[]", "Int")
	census(210, 3, map[string]uint64{"Map": 20}, "Map")
	census(390, 4, nil)
	r.Put(400, eventlog.NoCap, &eventlog.UserMsg{Text: "end"})
	return mustLoad(t, r.End())
}

// A heap profile's bands, peaks and byte-seconds over time are those computed by hand.
func TestHeapProfile(t *testing.T) {
	p := heapLog(t)
	if len(p.HeapProfiles) != 1 || p.RTSLog.HeapSamples != 4 {
		t.Fatalf("%d profiles, %d samples", len(p.HeapProfiles), p.RTSLog.HeapSamples)
	}
	h := &p.HeapProfiles[0]
	if h.Breakdown != eventlog.BreakdownTypeDescr || h.Restriction != "module Main" || h.PeriodNs != 100 || len(h.Bands) != 3 {
		t.Errorf("%+v", h)
	}
	var totals []uint64
	for _, c := range h.Censuses {
		totals = append(totals, c.Total)
	}
	if !reflect.DeepEqual(totals, []uint64{15, 108, 20, 0}) {
		t.Errorf("totals %v", totals)
	}
	s := Heap(h, 0, 400, 4, 1)
	if s.Step != 100 || s.Peak != 108 || s.PeakTime != 200 || s.Censuses != 4 || s.Others != 2 {
		t.Errorf("%+v", s)
	}
	// The third bucket has two censuses: the greater one stands.
	if len(s.Rows) != 1 || h.Bands[s.Rows[0].Band].Name != "Map" || !reflect.DeepEqual(s.Rows[0].Bytes, []uint64{0, 10, 100, 0}) {
		t.Errorf("rows %+v", s.Rows)
	}
	if !reflect.DeepEqual(s.Other, []uint64{0, 5, 8, 0}) || !reflect.DeepEqual(s.Total, []uint64{0, 15, 108, 0}) {
		t.Errorf("other %v, total %v", s.Other, s.Total)
	}
	if want := (10*100. + 100*10 + 20*180) / 1e9; s.Rows[0].Integral != want || s.Rows[0].Peak != 100 {
		t.Errorf("%v byte-seconds, want %v", s.Rows[0].Integral, want)
	}
	// A bucket without a census has what the one before it had.
	if s = Heap(h, 100, 200, 5, 0); !reflect.DeepEqual(s.Total, []uint64{15, 15, 15, 15, 15}) || len(s.Rows) != 2 {
		t.Errorf("%+v", s)
	}
}

// The bands of a heap profile are named after cost-centre stacks and info tables that the
// log defines.
func TestHeapProfileByCostCentreAndInfoTable(t *testing.T) {
	r := logtest.NewRTS()
	r.Put(1, eventlog.NoCap, &eventlog.HeapProfBegin{Profile: 3, Breakdown: eventlog.BreakdownCostCentre}, &eventlog.HeapProfBegin{Profile: 4, Breakdown: eventlog.BreakdownInfoTable},
		&eventlog.CostCentre{Centre: 1, Label: "f", Module: "M"}, &eventlog.CostCentre{Centre: 2, Label: "CAF", Module: "CAF"})
	r.Put(5, eventlog.NoCap, &eventlog.HeapSampleBegin{Era: 1}, &eventlog.HeapSampleStack{Profile: 3, Bytes: 8, Stack: []uint32{1, 2, 9}}, &eventlog.HeapSampleStack{Profile: 3, Bytes: 2, Stack: []uint32{}},
		&eventlog.HeapSampleString{Profile: 4, Bytes: 3, Label: "0x7000"}, &eventlog.HeapSampleString{Profile: 4, Bytes: 4, Label: "0x1"}, &eventlog.HeapSampleEnd{Era: 1})
	r.Put(6, eventlog.NoCap, &eventlog.InfoTable{Info: 0x9000, Name: "z"}, &eventlog.InfoTable{Info: 0x7000, Name: "sat_info", Label: "go", Module: "Main", SrcLoc: "A.hs:1:1-5"})
	p := mustLoad(t, r.End())
	a, b := &p.HeapProfiles[0], &p.HeapProfiles[1]
	if got := []string{a.Bands[0].Name, a.Bands[1].Name, b.Bands[0].Name, b.Bands[1].Name}; !reflect.DeepEqual(got, []string{"M.f", "(no cost centre)", "Main.go", "0x1"}) {
		t.Errorf("bands %q", got)
	}
	if !reflect.DeepEqual(a.Bands[0].Stack, []string{"M.f", "CAF", "cost centre 9"}) || b.Bands[0].Table.SrcLoc != "A.hs:1:1-5" || b.Bands[1].Table != nil {
		t.Errorf("%+v, %+v", a.Bands[0], b.Bands[0])
	}
	if a.Censuses[0].Total != 10 || b.Censuses[len(b.Censuses)-1].Total != 7 {
		t.Errorf("%+v, %+v", a.Censuses, b.Censuses)
	}
}

// Bands before any beginning, and outside a census, are kept.
func TestHeapProfileWithoutItsBeginning(t *testing.T) {
	r := logtest.NewRTS()
	r.Put(5, eventlog.NoCap, &eventlog.HeapSampleString{Bytes: 3, Label: "x"})
	p := mustLoad(t, r.End())
	if len(p.HeapProfiles) != 1 || p.HeapProfiles[0].Censuses[0].Total != 3 || Heap(&p.HeapProfiles[0], 0, 0, 3, 5).Peak != 3 {
		t.Errorf("%+v", p.HeapProfiles)
	}
}

// What each kind of RTS log, by each GHC, is recorded for is in its Profile.
func TestRTSLogsOfEveryKind(t *testing.T) {
	type want func(p *profile.Profile) bool
	heap := func(by eventlog.HeapBreakdown) want {
		return func(p *profile.Profile) bool {
			if len(p.HeapProfiles) != 1 || len(p.HeapProfiles[0].Censuses) < 2 {
				return false
			}
			h := &p.HeapProfiles[0]
			s := Heap(h, 0, 0, 10, 3)
			return h.Breakdown == by && len(h.Bands) > 1 && s.Peak > 0 && len(s.Rows) > 0
		}
	}
	threads := func(p *profile.Profile) bool {
		l := &p.RTSLog
		return len(l.Threads) >= 5 && l.Finished > 0 && len(l.Runs) > 10 && l.Stats.Allocated > 0 && l.Stats.PeakLive > 0 && len(l.Collections) > 0
	}
	user := func(p *profile.Profile) bool { return len(p.Markers) == 3 && p.RTSLog.Binary == 1 && p.RTSLog.PID > 0 }
	kinds := map[string]want{
		"l": threads, "all": threads, "lau": user, "hT": heap(eventlog.BreakdownClosureType), "nonmoving": threads,
		"concurrent": func(p *profile.Profile) bool { return len(p.RTSLog.Concurrent) > 5 && len(p.RTSLog.Collections) > 20 },
		"prof":       heap(eventlog.BreakdownCostCentre), "hr": heap(eventlog.BreakdownRetainer), "hb": heap(eventlog.BreakdownBiography), "hm": heap(eventlog.BreakdownModule),
	}
	later := map[string]want{
		"ipe": func(p *profile.Profile) bool {
			t, ok := p.InfoTable(p.InfoTables[0].Info)
			return ok && t.Module == "Main"
		},
		"hi": func(p *profile.Profile) bool {
			return heap(eventlog.BreakdownInfoTable)(p) && len(p.InfoTables) > 10
		},
		"ticky": func(p *profile.Profile) bool {
			n := uint64(0)
			for i := range p.Ticky {
				n += p.Ticky[i].Entries
			}
			return n > 0 && len(p.Ticky) >= 5 && !p.Ticky[0].Undefined
		},
	}
	for _, version := range []string{"9.0.2", "9.6.6", "9.10.3"} {
		all := []map[string]want{kinds}
		if version != "9.0.2" {
			all = append(all, later)
		}
		for _, some := range all {
			for kind, holds := range some {
				p, err := profile.Open("../../eventlog/testdata/rts/"+version+"-"+kind+".eventlog", nil)
				if err != nil {
					t.Error(err)
					continue
				}
				a := &p.Accounting
				if a.Malformed+int(a.Unknown) > 0 || !a.Complete || p.RTS == "" || len(p.Markers) != 3 || !user(p) || !holds(p) {
					t.Errorf("%s %s: %+v, %d threads, %d bands, %d info tables, %d markers", version, kind, *a, len(p.RTSLog.Threads), len(p.HeapProfiles), len(p.InfoTables), len(p.Markers))
				}
			}
		}
	}
}

func mustLoad(t testing.TB, log []byte) *profile.Profile {
	t.Helper()
	p, err := profile.Load(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// A heap line has the largest value of each bucket, and carries the last value over empty
// buckets.
func TestHeapLine(t *testing.T) {
	p := profile.New(&columns.Log{Duration: 99, Heap: []columns.HeapPoint{{Time: 5, Kind: columns.HeapLive, Cap: 0, Size: 10}, {Time: 31, Kind: columns.HeapLive, Cap: 0, Size: 30}, {Time: 32, Kind: columns.HeapLive, Cap: 0, Size: 20}, {Time: 33, Kind: columns.HeapSize, Cap: 0, Size: 77}, {Time: 80, Kind: columns.HeapLive, Cap: 0, Size: 5}}})
	line, peak := HeapLine(p, columns.HeapLive, 0, 0, 10)
	if want := []uint64{10, 10, 10, 30, 20, 20, 20, 20, 5, 5}; !reflect.DeepEqual(line, want) || peak != 30 {
		t.Errorf("%v, peak %d, want %v", line, peak, want)
	}
	line, _ = HeapLine(p, columns.HeapLive, 40, 60, 2)
	if want := []uint64{20, 20}; !reflect.DeepEqual(line, want) {
		t.Errorf("a range without figures: %v, want %v", line, want)
	}
}
