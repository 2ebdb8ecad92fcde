package sink

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"ccagent/agent/invoker"
	"ccagent/eventlog"
)

// testSink is a sink whose log is in a temporary directory.
func testSink(t *testing.T, rotate uint64) (s *Sink, warned *[]string) {
	t.Helper()
	who, err := invoker.Find("")
	if err != nil {
		t.Fatal(err)
	}
	warned = new([]string)
	s = New(Config{Who: who, Rotate: rotate, Warn: func(line string) { *warned = append(*warned, line) }})
	if err := s.Create(filepath.Join(t.TempDir(), "log.eventlog"), "", 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s, warned
}

// emit writes events as of now.
func emit(t *testing.T, s *Sink, events ...eventlog.Event) {
	t.Helper()
	for _, e := range events {
		if err := s.Emit(Now, e); err != nil {
			t.Fatal(err)
		}
	}
}

// rotate begins a new log.
func rotate(t *testing.T, s *Sink) {
	t.Helper()
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	if rotated, err := s.Rotate(); err != nil || !rotated {
		t.Fatalf("rotated: %v, %v", rotated, err)
	}
}

// each calls f with the events of the current log.
func each(t *testing.T, s *Sink, f func(eventlog.Event)) {
	t.Helper()
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(s.File().Path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r := eventlog.NewReader(file)
	for r.Next() {
		f(r.Record().Event)
	}
	if r.Err() != nil {
		t.Fatal(r.Err())
	}
}

// However much a capture defines, a later log has what every log needs.
func TestDefinitionsThatAreNeededStay(t *testing.T) {
	s, _ := testSink(t, 1)
	emit(t, s, &eventlog.Capture{PID: 7}, &eventlog.EventDef{Index: 0, Requested: "cycles"}, &eventlog.Module{ID: 1, Path: "/m"},
		&eventlog.Process{Change: eventlog.ProcessSeen, PID: 7}, &eventlog.Mapping{PID: 7, Module: 1, Start: 1, End: 2})
	for i := range uint64(3 * maxSeveral / 2) {
		if err := s.Label(7, i, "a thread"); err != nil {
			t.Fatal(err)
		}
	}
	rotate(t, s)
	found := map[string]int{}
	each(t, s, func(e eventlog.Event) {
		switch e.(type) {
		case *eventlog.Capture:
			found["capture"]++
		case *eventlog.EventDef:
			found["event"]++
		case *eventlog.Module:
			found["module"]++
		case *eventlog.Process:
			found["process"]++
		case *eventlog.Mapping:
			found["mapping"]++
		case *eventlog.ThreadLabel:
			found["label"]++
		}
	})
	for _, what := range []string{"capture", "event", "module", "process", "mapping"} {
		if found[what] != 1 {
			t.Errorf("the second log has %d of %s", found[what], what)
		}
	}
	if n := found["label"]; n > maxSeveral || n < maxSeveral/4 {
		t.Errorf("the second log has %d labels", n)
	}
}

// Definitions that were left out for want of room are reported.
func TestForgottenDefinitionsAreReported(t *testing.T) {
	s, warned := testSink(t, 1)
	for i := range uint64(maxSeveral + 1) {
		if err := s.Label(7, i, "a thread"); err != nil {
			t.Fatal(err)
		}
	}
	rotate(t, s)
	if len(*warned) != 1 {
		t.Errorf("the warnings are %q", *warned)
	}
}

// A process's definitions go with it, and those of another program in its place replace
// them.
func TestDefinitionsEndWithTheirProcess(t *testing.T) {
	s, _ := testSink(t, 1)
	mapping := func(pid uint32, start uint64) *eventlog.Mapping {
		return &eventlog.Mapping{PID: pid, Module: 1, Start: start, End: start + 1}
	}
	emit(t, s, &eventlog.Process{Change: eventlog.ProcessSeen, PID: 1}, mapping(1, 10),
		&eventlog.Process{Change: eventlog.ProcessForked, PID: 2, Parent: 1}, mapping(2, 20),
		&eventlog.Process{Change: eventlog.ProcessForked, PID: 3, Parent: 1}, mapping(3, 30),
		&eventlog.Process{Change: eventlog.ProcessExited, PID: 2},
		&eventlog.Process{Change: eventlog.ProcessExeced, PID: 3}, mapping(3, 31))
	rotate(t, s)
	var pids, starts []uint64
	each(t, s, func(e eventlog.Event) {
		switch e := e.(type) {
		case *eventlog.Process:
			pids = append(pids, uint64(e.PID))
		case *eventlog.Mapping:
			starts = append(starts, e.Start)
		}
	})
	if !slices.Equal(pids, []uint64{1, 3, 3}) || !slices.Equal(starts, []uint64{10, 31}) {
		t.Errorf("the second log has processes %d and mappings at %d", pids, starts)
	}
	if s.definitions.several != 2 {
		t.Errorf("%d mappings and labels are counted", s.definitions.several)
	}
}

// A definition that is made again replaces the one before.
func TestRedefinitionReplaces(t *testing.T) {
	s, _ := testSink(t, 1)
	for _, label := range []string{"a", "b", "b"} {
		if err := s.Label(1, 5, label); err != nil {
			t.Fatal(err)
		}
	}
	emit(t, s, &eventlog.EventRate{Event: 0, Rate: 100}, &eventlog.EventRate{Event: 1, Rate: 7}, &eventlog.EventRate{Event: 0, Rate: 200})
	rotate(t, s)
	var labels []string
	var rates []uint64
	each(t, s, func(e eventlog.Event) {
		switch e := e.(type) {
		case *eventlog.ThreadLabel:
			labels = append(labels, e.Label)
		case *eventlog.EventRate:
			rates = append(rates, e.Rate)
		}
	})
	if !slices.Equal(labels, []string{"b"}) || !slices.Equal(rates, []uint64{7, 200}) {
		t.Errorf("the second log has labels %q and rates %d", labels, rates)
	}
}

// A loss is written once, as the difference to what was written of its place.
func TestLossesAreWrittenAsDifferences(t *testing.T) {
	s, _ := testSink(t, 0)
	set := NewSet(nil, s)
	ring := Place{CPU: 1, Event: 2, Reason: eventlog.LossRingFull}
	for _, total := range []uint64{0, 3, 3, 10} {
		if err := set.Lost(ring, total); err != nil {
			t.Fatal(err)
		}
	}
	throttled, changes := Place{Reason: eventlog.LossThrottled}, Place{Reason: eventlog.LossSideBand}
	for range 2 {
		if err := set.LostMore(throttled, 5); err != nil {
			t.Fatal(err)
		}
	}
	if err := set.Lost(changes, 100); err != nil {
		t.Fatal(err)
	}
	var written []eventlog.Loss
	each(t, s, func(e eventlog.Event) {
		if l, ok := e.(*eventlog.Loss); ok {
			written = append(written, *l)
		}
	})
	want := []eventlog.Loss{
		{CPU: 1, Event: 2, Reason: eventlog.LossRingFull, Count: 3}, {CPU: 1, Event: 2, Reason: eventlog.LossRingFull, Count: 7},
		{Reason: eventlog.LossThrottled, Count: 5}, {Reason: eventlog.LossThrottled, Count: 5}, {Reason: eventlog.LossSideBand, Count: 100},
	}
	if !slices.Equal(written, want) {
		t.Errorf("written are %+v, want %+v", written, want)
	}
	// What processes map is no sample.
	if lost, missed := s.Losses(); lost != 10 || missed != 10 {
		t.Errorf("%d lost and %d throttled", lost, missed)
	}
}

// Warnings from before there was a log are in it.
func TestWarningsReachTheLog(t *testing.T) {
	who, err := invoker.Find("")
	if err != nil {
		t.Fatal(err)
	}
	s := New(Config{Who: who, Warn: func(string) {}})
	s.Warn("early")
	if err := s.Create(filepath.Join(t.TempDir(), "log.eventlog"), "", 0); err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Warn("late")
	var lines []string
	each(t, s, func(e eventlog.Event) {
		if w, ok := e.(*eventlog.Warning); ok {
			lines = append(lines, w.Text)
		}
	})
	if !slices.Equal(lines, []string{"early", "late"}) {
		t.Errorf("the log has %q", lines)
	}
}
