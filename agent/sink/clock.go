package sink

import "ccagent/perf"

// clock is the time of a log: ns since it began, without what it was paused for.
type clock struct {
	start  uint64 // CLOCK_MONOTONIC at log time 0, ns; 0 before it begins
	paused uint64 // CLOCK_MONOTONIC of the pause that it is in, ns; 0 if it runs
}

// at is the time of a log at a time of CLOCK_MONOTONIC, or Now. It is 0 for what happened
// before the log's begin.
func (c *clock) at(time uint64) uint64 {
	if time == Now {
		time = perf.Monotonic()
	}
	if c.start == 0 {
		return 0
	}
	if c.paused != 0 {
		time = min(time, c.paused)
	}
	return max(time, c.start) - c.start
}

// Begin begins the time of a log that was created without (Config.Unbegun), at a time of
// CLOCK_MONOTONIC.
func (s *Sink) Begin(time uint64) { s.clock = clock{start: time} }

// Pause stops the log's time at a time of CLOCK_MONOTONIC, because the program is held.
func (s *Sink) Pause(time uint64) { s.clock.paused = time }

// Resume has the log's time go on, at a time of CLOCK_MONOTONIC, from where Pause stopped it.
func (s *Sink) Resume(time uint64) {
	s.clock.start += time - s.clock.paused
	s.clock.paused = 0
}

// Time is the log's time at a time of CLOCK_MONOTONIC, ns.
func (s *Sink) Time(time uint64) uint64 { return s.clock.at(time) }
