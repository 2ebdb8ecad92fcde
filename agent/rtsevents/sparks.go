package rtsevents

import "ccagent/eventlog"

// sparkTotals follow the counters of sparks.
type sparkTotals struct {
	seen bool
	base [sparkCounters]uint64 // when the capture began
	last [sparkCounters]uint64
}

// sparkCounters is how many there are: sparks created, duds, overflowed, converted, collected, fizzled.
const sparkCounters = 6

// mostSparks is more than any program makes.
const mostSparks = 1 << 48

// sparks writes what has become of sparks by the end of a collection, if any were made since the one before. Of words that cannot be
// counters of sparks nothing is written: such as go back, or have more sparks end than were created.
func (t *Translator) sparks(r Record) error {
	if len(r.Words) < sparkCounters {
		return nil
	}
	s, now := &t.spark, [sparkCounters]uint64(r.Words[:sparkCounters])
	if created, ended := now[0], now[3]+now[4]+now[5]; created > mostSparks || ended > created {
		return nil
	}
	if !s.seen {
		s.seen = true
		if t.gc.First > 0 { // it may have made some before the capture, which are not of it
			s.base, s.last = now, now
			return nil
		}
	}
	if now == s.last {
		return nil
	}
	for i := range now {
		if now[i] < s.last[i] {
			return nil
		}
	}
	s.last = now
	of := func(i int) uint64 { return now[i] - s.base[i] }
	return t.Write(r.Time, eventlog.NoCap, &eventlog.Sparks{Created: of(0), Dud: of(1), Overflowed: of(2), Converted: of(3), Collected: of(4), Fizzled: of(5)})
}
