package rewrite

import "ccagent/eventlog"

// place is where a log's process stands among the processes of a merged log. The zero value leaves
// everything as it is.
type place struct {
	several bool   // the merged log is of several processes
	caps    int    // added to the numbers of its capabilities
	pids    uint32 // added to the numbers of its processes
}

// maxPID is above every process number of Linux.
const maxPID = 1 << 22

// tellApart gives the processes of the logs capabilities of their own, and numbers of their own
// where two have the same one (on two hosts, or one after the other).
func (rw *rewriter) tellApart() {
	caps := make(map[processKey]int)
	var order []processKey
	for i := range rw.logs {
		k := rw.logs[i].process
		if _, known := caps[k]; !known {
			order = append(order, k)
		}
		caps[k] = max(caps[k], rw.logs[i].caps)
	}
	if len(order) < 2 {
		return
	}
	of := make(map[processKey]place)
	next, taken := 0, make(map[uint32]uint32)
	for _, k := range order {
		of[k] = place{true, next, taken[k.pid] * maxPID}
		next += caps[k]
		taken[k.pid]++
	}
	for i := range rw.logs {
		rw.logs[i].place = of[rw.logs[i].process]
	}
}

// event moves an event to its process's place. It is false for an event of a capability for which
// a log has no number left.
func (p place) event(rec *eventlog.Record) bool {
	if !p.several {
		return true
	}
	if rec.Cap != eventlog.NoCap {
		if rec.Cap += p.caps; rec.Cap >= eventlog.MaxCapabilities {
			return false
		}
	}
	switch ev := rec.Event.(type) {
	case *eventlog.Sample:
		ev.PID += p.pids
		if ev.Capability != eventlog.NoCapability {
			if ev.Capability += uint32(p.caps); ev.Capability >= eventlog.MaxCapabilities {
				ev.Capability = eventlog.NoCapability
			}
		}
	case *eventlog.Process:
		ev.PID += p.pids
		if ev.Parent != 0 {
			ev.Parent += p.pids
		}
	case *eventlog.Mapping:
		ev.PID += p.pids
	case *eventlog.NurseryBlock:
		ev.PID += p.pids
	case *eventlog.SearchWindow:
		ev.PID += p.pids
	case *eventlog.TransactionWindow:
		ev.PID += p.pids
	case *eventlog.TransactionVariables:
		ev.PID += p.pids
	case *eventlog.ThreadDump:
		ev.PID += p.pids
	case *eventlog.HeapGraph:
		ev.PID += p.pids
	case *eventlog.Footprint:
		ev.PID += p.pids
	case *eventlog.HeapCensus:
		ev.PID += p.pids
	case *eventlog.HeapDraw:
		ev.PID += p.pids
	case *eventlog.HeapKinds:
		ev.PID += p.pids
	case *eventlog.HeapSeries:
		ev.PID += p.pids
	case *eventlog.HaskellThread:
		if ev.Capability != eventlog.NoCapability {
			ev.Capability += uint32(p.caps)
		}
	case *eventlog.ThreadName:
		ev.PID += p.pids
	case *eventlog.Capture:
		ev.PID += p.pids
	}
	return true
}
