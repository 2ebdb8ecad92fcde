package rewrite

import (
	"errors"
	"fmt"
	"io"

	"ccagent/eventlog"
)

// Input is a log to rewrite. It is read twice.
type Input struct {
	Name string
	Open func() (io.ReadCloser, error)
	// Keep reports whether to keep the i-th sample of the log; nil keeps all samples
	// in the range.
	Keep func(i int) bool
}

// survey is the result of reading a log the first time.
type survey struct {
	types []eventlog.EventType
	sizes map[uint16]uint16
	rts   bool // written by an RTS
	own   bool // written by our agent
	pids  []uint32
	nodes nodes
	// process is the one that the capture is of.
	process processKey
	caps    int // capabilities that the log knows
	covers  coverage
}

// processKey identifies a process among those of several logs. A log does not distinguish a process from
// an earlier one of the same program and number.
type processKey struct {
	host, program string
	pid           uint32
}

// errNoEvents is the error for a log that consists of a header.
var errNoEvents = errors.New("the log has no events")

// clockOf returns the wall-clock time at a log's time 0.
func clockOf(in Input) (wall uint64, ok bool, err error) {
	err = scan(in, func(rec *eventlog.Record, _ []eventlog.EventType) bool {
		switch ev := rec.Event.(type) {
		case *eventlog.Capture:
			wall, ok = ev.StartUnixNs, true
			return false
		case *eventlog.WallClock:
			// Our logs have a WallClock, too, before their Capture; both
			// agree.
			if at := ev.Sec*1_000_000_000 + uint64(ev.Nsec); at >= rec.Time {
				wall, ok = at-rec.Time, true
			}
		}
		return true
	})
	return wall, ok, err
}

// look reads a whole log and finds what the second reading needs. mark reports whether
// the i-th sample is kept.
func look(in Input, mark func(i int, time uint64) bool) (*survey, error) {
	s := &survey{}
	r, closed, err := open(in)
	if err != nil {
		return nil, err
	}
	defer closed()
	if in.Keep == nil { // else samples are counted, for which damage must be seen as when they are copied
		r.Only(eventlog.IDRTSIdentifier, eventlog.IDRunThread, eventlog.IDCapture, eventlog.IDProcess, eventlog.IDOSProcessPID, eventlog.IDNodes, eventlog.IDSample,
			eventlog.IDUnrecorded, eventlog.IDOverhead, eventlog.IDCaptureEnd)
	}
	err = each(in, r, func(rec *eventlog.Record, types []eventlog.EventType) bool {
		if s.types == nil {
			s.types = append([]eventlog.EventType(nil), types...)
			s.sizes = sizes(types)
		}
		s.caps = max(s.caps, rec.Cap+1)
		switch ev := rec.Event.(type) {
		case *eventlog.RTSIdentifier, *eventlog.RunThread:
			s.rts = !s.own
		case *eventlog.Capture:
			s.own, s.rts = true, false
			s.pids = append(s.pids, ev.PID)
			s.process = processKey{ev.Label(eventlog.LabelHost), ev.Program, ev.PID}
		case *eventlog.Process:
			if len(s.pids) < 1<<16 {
				s.pids = append(s.pids, ev.PID)
			}
		case *eventlog.OSProcessPID:
			s.pids = append(s.pids, ev.PID)
		case *eventlog.Nodes:
			s.nodes.add(ev)
		case *eventlog.Sample:
			if ev.Capability < eventlog.MaxCapabilities {
				s.caps = max(s.caps, int(ev.Capability)+1)
			}
			if mark(s.nodes.samples, rec.Time) {
				s.nodes.use(ev.Node)
			}
			s.nodes.samples++
		case *eventlog.HaskellThread:
			s.nodes.use(ev.Node)
		case *eventlog.Blocker:
			s.nodes.use(ev.Node)
		case *eventlog.TransactionVariables:
			s.nodes.use(ev.Node)
		case *eventlog.Unrecorded:
			s.covers.hole(rec.Time-min(ev.Ns, rec.Time), rec.Time)
		}
		if s.own {
			s.covers.at(rec.Time)
		}
		return true
	})
	if err == nil && s.types == nil {
		err = fmt.Errorf("read %s: %w", in.Name, errNoEvents)
	}
	return s, err
}

// scan calls f for each record of a log until f returns false or the log ends.
func scan(in Input, f func(rec *eventlog.Record, types []eventlog.EventType) bool) error {
	r, closed, err := open(in)
	if err != nil {
		return err
	}
	defer closed()
	return each(in, r, f)
}

func open(in Input) (r *eventlog.Reader, closed func() error, err error) {
	file, err := in.Open()
	if err != nil {
		return nil, nil, err
	}
	return eventlog.NewReader(file), file.Close, nil
}

func each(in Input, r *eventlog.Reader, f func(rec *eventlog.Record, types []eventlog.EventType) bool) error {
	for r.Next() {
		if !f(r.Record(), r.Types()) {
			return nil
		}
	}
	if err := r.Err(); err != nil {
		return fmt.Errorf("read %s: %w", in.Name, err)
	}
	return nil
}
