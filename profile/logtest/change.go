package logtest

import (
	"bytes"
	"fmt"

	"ccagent/eventlog"
)

// Changed returns a copy of a log whose events f has changed in place.
func Changed(log []byte, f func(rec *eventlog.Record)) []byte {
	var out bytes.Buffer
	w := eventlog.NewWriter(&out, nil)
	r := eventlog.NewReader(bytes.NewReader(log))
	for r.Next() {
		rec := r.Record()
		if _, is := rec.Event.(*eventlog.BlockMarker); is {
			continue
		}
		f(rec)
		if err := w.Write(rec.Time, rec.Cap, rec.Event); err != nil {
			panic(fmt.Sprintf("change log: %v", err))
		}
	}
	if err := w.Close(); err != nil {
		panic(fmt.Sprintf("change log: %v", err))
	}
	return out.Bytes()
}

// Of returns a copy of a log as if it were of another process, which began seconds later.
func Of(log []byte, c eventlog.Capture, seconds uint64) []byte {
	return Changed(log, func(rec *eventlog.Record) {
		switch ev := rec.Event.(type) {
		case *eventlog.Capture:
			ev.PID, ev.Program, ev.Labels = c.PID, c.Program, c.Labels
			ev.StartUnixNs += seconds * 1e9
		case *eventlog.Module:
			if ev.ID == Module {
				ev.Path, ev.BuildID = c.Program, []byte(c.Program)
			}
		case *eventlog.Binding:
			if ev.Package == "main" {
				ev.Program = Module
			}
		case *eventlog.Sample:
			ev.PID = c.PID
		}
	})
}
