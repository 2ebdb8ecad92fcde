package sink

import "ccagent/eventlog"

// Place is where samples, or records of another kind, are lost.
type Place struct {
	CPU, Event int
	Reason     eventlog.LossReason
}

// losses are all losses of a capture, as they were written.
type losses struct {
	written map[Place]uint64
	lost    uint64 // samples, or records that stand for some
	missed  uint64 // samples that the kernel throttled
}

// Lost writes that something was lost at a place, total times since the capture began, if
// that is more often than was written.
func (s *Sink) Lost(at Place, total uint64) error {
	if total <= s.losses.written[at] {
		return nil
	}
	return s.LostMore(at, total-s.losses.written[at])
}

// LostMore writes that something was lost at a place n times more.
func (s *Sink) LostMore(at Place, n uint64) error {
	if n == 0 {
		return nil
	}
	s.losses.written[at] += n
	switch at.Reason {
	case eventlog.LossThrottled:
		s.losses.missed += n
	case eventlog.LossSideBand: // of no samples
	default:
		s.losses.lost += n
	}
	return s.Emit(Now, &eventlog.Loss{CPU: uint32(at.CPU), Event: uint32(at.Event), Reason: at.Reason, Count: n})
}

// Losses sums what was lost, and what the kernel throttled.
func (s *Sink) Losses() (lost, throttled uint64) { return s.losses.lost, s.losses.missed }
