package search

import (
	"errors"
	"time"

	"ccagent/agent/source"
	"ccagent/eventlog"
	"ccagent/perf"
)

// duty keeps the probes within their budget: they are in place until they have cost more, and not put in again. (There are hundreds of
// places, and while the kernel puts probes in and takes them out, one after the other, those that are there are hit.) CPU times are those of
// the target, ns.
type duty struct {
	watching bool
	over     bool   // the budget was spent, or the capture ends
	countsAt uint64 // CPU time from which on what is counted is not in the log yet
	endedAt  uint64 // CPU time up to which there were probes
	hitRate  float64
	spent    bool // the budget was
	told     bool // that nothing is counted after endedAt
	ran      uint64
	ranAt    uint64 // CLOCK_MONOTONIC, ns
}

const (
	fastPace = 2 * time.Millisecond
	slowPace = 50 * time.Millisecond
	// startPeriod is for how long it is not known how many hits there are.
	startPeriod = 100 * time.Millisecond
)

// draws is how many samples of a place are taken in a row, about each second.
func (s *search) draws() uint64 {
	if s.bucket.Unlimited() {
		return 1 << 14
	}
	return 256
}

// Pace returns the time to the next Throttle.
func (s *search) Pace(since time.Duration) time.Duration {
	switch {
	case s.bucket.Unlimited() || !s.watching || len(s.images) == 0:
		return source.Never
	case since < startPeriod || s.hitRate*s.host.Budget.Costs.SteppedTrap()/1e9 > s.bucket.Rate():
		return fastPace
	}
	return slowPace
}

// Throttle charges what the probes have cost to the bucket, and takes them out when that is spent.
func (s *search) Throttle(u source.Use) error {
	if s.program == nil || s.over {
		return nil
	}
	spent := u.Cost.Probes.Ns + u.Cost.ProbeNs
	s.bucket.Pass(float64(u.Target-min(s.target, u.Target)), float64(int64(spent-s.charged))+u.Handling)
	s.charged, s.target = spent, u.Target
	if took := u.Time - min(u.Time, s.ranAt); took > 0 {
		s.hitRate = (s.hitRate + float64(u.Cost.Probes.Runs-s.ran)/(float64(took)/1e9)) / 2
	}
	s.ran, s.ranAt = u.Cost.Probes.Runs, u.Time
	if !s.watching || s.bucket.Unlimited() || s.bucket.Level() >= 0 {
		return nil
	}
	s.spent = true
	s.warn("event " + name + " counted until its probes had cost more than --max-overhead allows: --max-overhead 0 counts all")
	return s.end()
}

// end takes the probes out, and writes what they have counted.
func (s *search) end() error {
	s.over = true
	if !s.watching {
		return nil
	}
	err := s.host.Walker.ControlConstructions(false, s.round, s.draws())
	if err == nil {
		err = s.host.Drain()
	}
	// Until nothing counts any more, and what was sampled is read, the counts are ahead of the samples.
	for _, si := range s.inOrder() {
		err = errors.Join(err, s.settle(si))
	}
	err = errors.Join(err, s.stretch())
	s.watching, s.endedAt = false, s.host.TargetCPU()
	for _, si := range s.images {
		s.remove(si)
	}
	return err
}

// stretch writes what was counted since the last time.
func (s *search) stretch() error {
	if !s.watching {
		return nil
	}
	var err error
	here := s.host.TargetCPU()
	length := here - min(here, s.countsAt)
	s.countsAt = max(s.countsAt, here)
	for _, si := range s.inOrder() {
		err = errors.Join(err, s.emit(si, eventlog.SearchWindow{LengthNs: length, StandsNs: length}))
	}
	s.round++
	return errors.Join(err, s.host.Walker.ControlConstructions(true, s.round, s.draws()))
}

// emit writes what an image has made in a stretch.
func (s *search) emit(si *image, e eventlog.SearchWindow) error {
	e.PID, e.Places, e.Unknown, e.Made, e.Sampled, e.Late = si.im.PID, uint32(len(si.places)), uint32(si.unknown), si.made, si.sampled, si.late
	si.made, si.sampled = 0, 0
	return si.im.Log.Emit(perf.Monotonic(), &e)
}

// tell writes for how much CPU time the probes have been out. What the program made in that time is not counted.
func (s *search) tell() (err error) {
	here := s.host.TargetCPU()
	if s.watching || !s.spent || here <= s.endedAt && s.told {
		return nil
	}
	here, s.told = max(here, s.endedAt+1), true // what ran after the probes is not counted, however little
	for _, si := range s.inOrder() {
		err = errors.Join(err, s.emit(si, eventlog.SearchWindow{StandsNs: here - s.endedAt}))
	}
	s.endedAt = here
	return err
}
