package engine

import (
	"errors"

	"ccagent/agent/overhead"
	"ccagent/agent/process"
)

// booster is a source that can sample a process more often for a while.
type booster interface {
	Boost(im *process.Image, rate uint64, part float64, clock overhead.Clock) error
	EndBoost(im *process.Image) error
	Boosted(im *process.Image) (rate uint64, ok bool)
}

// booster returns the source that boosts; nil if there is none.
func (e *Engine) booster() booster {
	for _, s := range e.Sources.All {
		if b, ok := s.(booster); ok {
			return b
		}
	}
	return nil
}

// Boost has a process sampled more often until EndBoost: rate times a second of its CPU time, beside the
// samples that are taken anyway, or less often where that would take more than a part of its CPU time; 0 for no
// limit. Again, it changes rate and part. The caller has called Drain just now.
func (e *Engine) Boost(im *process.Image, rate uint64, part float64) error {
	b := e.booster()
	if b == nil {
		return errors.New("no event of the CPU is sampled: have cpu-clock or cpu-tick among the events")
	}
	return b.Boost(im, rate, part, clockOf(im.PID))
}

// EndBoost undoes Boost. It is no error if the process is not boosted.
func (e *Engine) EndBoost(im *process.Image) error {
	if b := e.booster(); b != nil {
		return b.EndBoost(im)
	}
	return nil
}

// Boosted returns how often a process is sampled by its boost in a second of its CPU time; false if it has none.
func (e *Engine) Boosted(im *process.Image) (rate uint64, ok bool) {
	if b := e.booster(); b != nil {
		return b.Boosted(im)
	}
	return 0, false
}
