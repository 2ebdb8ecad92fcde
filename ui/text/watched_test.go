package text

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"

	"ccagent/ui/printer"
	heapscreen "ccagent/ui/screen/heap"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/timeline"
)

// watchedLog has 100 ms of collections, seen by probes that were out for out of 2 s.
func watchedLog(out uint64) *profile.Profile {
	l := &columns.Log{Duration: 2e9, HaveCapture: true, GCs: []columns.GC{{Start: 1e8, End: 15e7}, {Start: 3e8, End: 35e7}}}
	l.RTSLog = columns.RTS{Caps: 1, Threads: []columns.RTSThread{{ID: 1, Runs: 1, RunNs: 1e9}}, Stats: columns.GCTotals{Collections: 2, Allocated: 1 << 20}}
	for _, group := range []string{"gc", "threads"} {
		l.RTSLog.Probes = append(l.RTSLog.Probes, eventlog.RTSProbes{Group: group, Sites: 2, Hits: 4, OutNs: out})
	}
	return profile.New(l)
}

// What probes counted is printed as of the time during which they were in place.
func TestPartlyWatched(t *testing.T) {
	for _, test := range []struct {
		out        uint64
		info, pace []string
		not        string
	}{
		{0, []string{"2 collections, 0 major; pauses of 100 ms"}, []string{"100 ms of 2.00 s   5.0%"}, "watched"},
		{15e8, []string{"2 collections, 0 major, seen in 500 ms of 2.00 s", "1.00 MiB allocated until the last collection seen, at 350 ms",
			"ran them 1 times in the 500 ms of 2.00 s that were watched, 200.0% of 1 × 500 ms", "in place for 500 ms of 2.00 s"}, []string{"100 ms of the 500 ms watched   20.0%"}, "5.0%"},
		{9e9, []string{"seen in 0 s of 2.00 s"}, []string{"of the 0 s watched   0%"}, "NaN"},
	} {
		p := watchedLog(test.out)
		var info, gc bytes.Buffer
		if err := (Info{Profile: p}).Text(&info, printer.Options{File: "x", Width: 400}); err != nil {
			t.Fatal(err)
		}
		if err := (heapscreen.GCReport{Profile: p}).Text(&gc, printer.Options{File: "x"}); err != nil {
			t.Fatal(err)
		}
		for _, want := range test.info {
			if !strings.Contains(info.String(), want) {
				t.Errorf("out for %d: info lacks %q:\n%s", test.out, want, &info)
			}
		}
		for _, want := range test.pace {
			if !strings.Contains(gc.String(), want) {
				t.Errorf("out for %d: gc lacks %q:\n%s", test.out, want, &gc)
			}
		}
		if strings.Contains(info.String()+gc.String(), test.not) {
			t.Errorf("out for %d: %q is printed\n%s\n%s", test.out, test.not, &info, &gc)
		}
		var doc struct {
			Watched float64 `json:"watched_seconds"`
		}
		gc.Reset()
		if err := (heapscreen.GCReport{Profile: p}).JSON(&gc, printer.Options{}); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(gc.Bytes(), &doc); err != nil || doc.Watched != float64(2e9-min(test.out, 2e9))/1e9 {
			t.Errorf("out for %d: watched %v %v", test.out, doc.Watched, err)
		}
	}
}

// What was not watched is drawn as such, and the shares are of what was.
func TestNotWatchedIsNotIdle(t *testing.T) {
	p := watchedLog(15e8)
	p.RTSLog.Runs = []columns.Run{{Start: 0, End: 25e7, Thread: 1}, {Start: 3e8, End: 5e8, Thread: 1}}
	p.RTSLog.Watches = map[string][]columns.Watch{"gc": {{From: 0, To: 2e9}}, "threads": {{From: 0, To: 5e8, Runs: 2}}}
	sel := p.Select(profile.Filter{})
	var text, doc bytes.Buffer
	o := timeline.Options{Buckets: 20}
	report := OverTime{sel, timeline.Of(sel, o)}
	if err := report.Text(&text, printer.Options{File: "x"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"RRRRR╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌  90.0%", "╌ not watched"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the timeline lacks %q:\n%s", want, &text)
		}
	}
	if err := report.JSON(&doc, printer.Options{}); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Threads []float64 `json:"threads_unwatched_seconds"`
		GC      []float64 `json:"gc_unwatched_seconds"`
	}
	if err := json.Unmarshal(doc.Bytes(), &got); err != nil || len(got.Threads) != 20 || got.Threads[3] != 0 || math.Abs(got.Threads[5]-0.1) > 1e-6 || len(got.GC) != 0 {
		t.Errorf("unwatched: %+v, %v", got, err)
	}
}
