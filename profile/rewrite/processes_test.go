package rewrite

import (
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
)

// ofProcess is a log of a process of its own, with a thread label and a collection.
func ofProcess(host, program, label string, pid uint32, rate uint64) []byte {
	l := logtest.New()
	l.Write(1, &eventlog.ThreadLabel{Thread: 1, Label: label})
	l.SampleOf(5, eventlog.Sample{Weight: 7, TSO: 1, Capability: 2})
	log := logtest.Of(l.End(), eventlog.Capture{PID: pid, Program: program, Labels: []eventlog.Label{{Key: eventlog.LabelHost, Value: host}}}, 0)
	return logtest.Changed(log, func(rec *eventlog.Record) {
		if ev, is := rec.Event.(*eventlog.EventDef); is {
			ev.Rate = rate
		}
	})
}

// Processes of merged logs keep threads and capabilities of their own, also where they have the same
// numbers; their events are one, whatever the rate.
func TestSeveralProcesses(t *testing.T) {
	out, _ := rewritten(t, Options{},
		input("a", ofProcess("one", "/bin/api", "listen", 100, 241)), input("b", ofProcess("two", "/bin/api", "accept", 100, 47)),
		input("a again", ofProcess("one", "/bin/api", "listen", 100, 241)), input("c", ofProcess("one", "/bin/worker", "work", 7, 241)))
	p := load(t, out)
	undamaged(t, p)
	if len(p.Events) != 1 || p.Select(profile.Filter{}).Total != 28 {
		t.Errorf("%d events, a total of %d", len(p.Events), p.Select(profile.Filter{}).Total)
	}
	want := []struct {
		label string
		key   columns.ThreadKey
		cap   uint32
	}{
		{"listen", columns.ThreadKey{PID: 100, TID: 102, TSO: 1}, 2}, {"accept", columns.ThreadKey{PID: 100 + maxPID, TID: 102, TSO: 1}, 5},
		{"listen", columns.ThreadKey{PID: 100, TID: 102, TSO: 1}, 2}, {"work", columns.ThreadKey{PID: 7, TID: 102, TSO: 1}, 8},
	}
	labels := make(map[columns.ThreadKey]string)
	for _, th := range p.Threads {
		labels[th.ThreadKey] = th.Label
	}
	for i, w := range want {
		if s := p.Sample(i); s.Thread != w.key || s.Capability != w.cap || labels[s.Thread] != w.label {
			t.Errorf("sample %d: %+v %q on capability %d, want %+v", i, s.Thread, labels[s.Thread], s.Capability, w)
		}
	}
	if got := len(p.Program("api")); got != 1 {
		t.Errorf("%d modules of api: the two hosts run one build", got)
	}
}
