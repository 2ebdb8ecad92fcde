package sink

import "ccagent/eventlog"

// Place is where samples, or records of another kind, are lost.
type Place struct {
	CPU, Event int
	Reason     eventlog.LossReason
}

// losses are all losses of a log.
type losses struct {
	lost   uint64 // samples, or records that stand for some
	missed uint64 // samples that the kernel throttled
}

// Lose writes that something was lost at a place n times more.
func (s *Sink) Lose(at Place, n uint64) error {
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
