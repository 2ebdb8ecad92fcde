package sink

import (
	"slices"

	"ccagent/eventlog"
)

// Set is the logs that are written at a time. Each is of some processes; what concerns all that
// are profiled is written into each.
type Set struct {
	logs    []*Sink
	warn    func(line string) // while there is no log
	written map[Place]uint64  // all losses
	rates   []*eventlog.EventRate
	told    map[string]bool // by WarnOf
}

// NewSet makes a set of logs; warn takes warnings while there is none.
func NewSet(warn func(line string), logs ...*Sink) *Set { return &Set{logs: logs, warn: warn} }

// Time is the first log's time at a time of CLOCK_MONOTONIC, ns.
func (s *Set) Time(time uint64) uint64 {
	if len(s.logs) == 0 {
		return 0
	}
	return s.logs[0].Time(time)
}

// Add adds a log, and writes into it at what rates events are sampled.
func (s *Set) Add(log *Sink) error {
	s.logs = append(s.logs, log)
	for _, r := range s.rates {
		if err := log.Emit(Now, r); err != nil {
			return err
		}
	}
	return nil
}

// Remove removes a log.
func (s *Set) Remove(log *Sink) {
	s.logs = slices.DeleteFunc(s.logs, func(l *Sink) bool { return l == log })
}

// Each calls f with each log.
func (s *Set) Each(f func(*Sink) error) error {
	for _, log := range s.logs {
		if err := f(log); err != nil {
			return err
		}
	}
	return nil
}

// Emit writes an event into each log.
func (s *Set) Emit(time uint64, e eventlog.Event) error {
	if r, ok := e.(*eventlog.EventRate); ok {
		s.rates = slices.DeleteFunc(s.rates, func(old *eventlog.EventRate) bool { return old.Event == r.Event })
		s.rates = append(s.rates, r)
	}
	return s.Each(func(log *Sink) error { return log.Emit(time, e) })
}

// Lost writes that something was lost at a place, total times since the logs began, if that is
// more often than was written.
func (s *Set) Lost(at Place, total uint64) error {
	if total <= s.written[at] {
		return nil
	}
	return s.LostMore(at, total-s.written[at])
}

// LostMore writes that something was lost at a place n times more.
func (s *Set) LostMore(at Place, n uint64) error {
	if n == 0 {
		return nil
	}
	if s.written == nil {
		s.written = map[Place]uint64{}
	}
	s.written[at] += n
	return s.Each(func(log *Sink) error { return log.Lose(at, n) })
}

// Warn warns the user at once, and in each log.
func (s *Set) Warn(line string) {
	s.warn(line)
	for _, log := range s.logs {
		log.warned = append(log.warned, line)
	}
}

// WarnOf writes a warning, line, into one log, and prints another text, tell, for the user at once. A log has the same
// line only once. The user reads the same text only once, also if it is of several logs.
func (s *Set) WarnOf(log *Sink, line, tell string) {
	if !s.told[tell] {
		if s.told == nil {
			s.told = map[string]bool{}
		}
		s.told[tell] = true
		s.warn(tell)
	}
	if !log.noted[line] {
		if log.noted == nil {
			log.noted = map[string]bool{}
		}
		log.noted[line] = true
		log.warned = append(log.warned, line)
	}
}
