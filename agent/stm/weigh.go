package stm

import (
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// weigh writes the samples of attempts in a window, which is recorded as e. All attempts in the window were counted, by how they
// end, so samples of each end together stand for those. An end that has no sample is owed to the next window's. Weights by the
// chance of being drawn alone would sum to that on average only: a window has few samples, and stands for a second or more.
func (s *stm) weigh(w *window, e *eventlog.TransactionWindow) error {
	var all uint64
	for _, a := range w.counts {
		all += sum(a.Ends[:])
	}
	type kind struct {
		im  uint32
		end uint8
	}
	drawn, each := map[kind]float64{}, map[kind]float64{}
	for _, h := range w.held {
		if s.counts(w, h) {
			drawn[kind{h.im.Incarnation, h.r.Site}] += float64(h.r.Period)
		}
	}
	for si, a := range w.counts {
		owed := s.owed[si]
		if owed == nil {
			owed = new([eventlog.TransactionEnds]float64)
			if s.owed == nil {
				s.owed = map[*image]*[eventlog.TransactionEnds]float64{}
			}
			s.owed[si] = owed
		}
		for end, n := range a.Ends[:len(owed)] {
			if e.Begun > 0 && e.BegunStands > 0 && all > 0 {
				// As many have ended as have begun, but for what a window cuts off at either end.
				owed[end] += float64(n) / float64(all) * float64(max(e.BegunStands, e.Begun))
			} else {
				owed[end] += float64(n) * w.factor
			}
			k := kind{si.im.Incarnation, uint8(end)}
			if of := drawn[k]; of > 0 {
				each[k], owed[end] = owed[end]/of, 0
			}
		}
	}
	for _, h := range w.held {
		factor := w.cpuFactor
		if h.r.Event == uint16(s.event.Def.Index) {
			factor = each[kind{h.im.Incarnation, h.r.Site}]
			if !s.counts(w, h) {
				continue
			}
		}
		if err := s.write(h, factor); err != nil {
			return err
		}
	}
	w.held = nil
	return nil
}

// pay writes what is owed of an image that has ended, or at the end of a capture, when no other window follows. How those attempts have ended is
// known, their stacks are not.
func (s *stm) pay(si *image, at uint64) error {
	owed := s.owed[si]
	delete(s.owed, si)
	if owed == nil {
		return nil
	}
	for end, n := range owed {
		weight := uint64(n + 0.5)
		if weight == 0 {
			continue
		}
		r := perf.Sample{Frames: []uint64{uint64(eventlog.FrameTransaction)<<bpf.FrameKindShift | uint64(end)}}
		r.Time, r.Period, r.Event, r.Pid, r.Tid = at, weight, uint16(s.event.Def.Index), si.im.PID, si.im.PID
		r.Capability, r.Stop = eventlog.NoCapability, uint8(eventlog.StopMoved)
		if _, err := s.host.Write(si.im, &r); err != nil {
			return err
		}
	}
	return nil
}

// counts reports whether a sample is of an attempt that was counted in the window: those that end later, while it is waited for attempts
// in which CPU time was sampled, are not.
func (s *stm) counts(w *window, h held) bool {
	return h.r.Event == uint16(s.event.Def.Index) && h.r.Time <= w.close
}
