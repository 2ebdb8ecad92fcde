package logtest

import (
	"bytes"
	"fmt"

	"ccagent/eventlog"
)

// RTS is a log as a run-time system writes it, without a capture.
type RTS struct {
	buf bytes.Buffer
	w   *eventlog.Writer
}

// NewRTS begins a log of GHC 9.0.2's threaded RTS.
func NewRTS() *RTS {
	r := &RTS{}
	r.w = eventlog.NewWriter(&r.buf, nil)
	r.Put(0, eventlog.NoCap, &eventlog.RTSIdentifier{Text: "GHC-9.0.2 rts_thr_l"})
	return r
}

// Put writes events with one time and capability.
func (r *RTS) Put(time uint64, cap int, evs ...eventlog.Event) {
	for _, ev := range evs {
		if err := r.w.Write(time, cap, ev); err != nil {
			panic(fmt.Sprintf("write log: %v", err))
		}
	}
}

// End closes the log and returns its bytes.
func (r *RTS) End() []byte {
	if err := r.w.Close(); err != nil {
		panic(fmt.Sprintf("close log: %v", err))
	}
	return r.buf.Bytes()
}
