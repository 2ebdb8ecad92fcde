package engine

import (
	"slices"
	"sync/atomic"

	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/procfs"
	"ccagent/agent/sink"
)

// Terms are those on which a process is measured that has a log of its own.
type Terms struct {
	// MaxOverhead is what measuring it may take by probes, as a part of its CPU time; 0 for as much as
	// all processes together may take.
	MaxOverhead float64
	// Without lists events that are not measured in it, though they are in others.
	Without []string
}

// measured is a process that has a log, and a budget, of its own.
type measured struct {
	terms  Terms
	budget *overhead.Budget // nil before it was asked for
	before uint64           // CPU time that it had used when it was added, ns
}

func newMeasured(terms Terms, pid uint32) *measured {
	m := &measured{terms: terms}
	m.before, _ = procfs.ProcessTime(int(pid)) // it may have ended
	return m
}

// coster is a source that knows what it has cost each process.
type coster interface {
	CostOf(im *process.Image) uint64
}

// CostOf is what measuring a process has cost it since it was added, and the CPU time that it has used since, both
// in ns; false where that is not known.
func (e *Engine) CostOf(im *process.Image) (cost, used uint64, ok bool) {
	if used = e.usedSince(im); used == 0 || im.Exited {
		return 0, 0, false
	}
	for _, s := range e.Sources.All {
		if c, is := s.(coster); is {
			cost += c.CostOf(im)
		}
	}
	return cost, used, true
}

// usedSince is the CPU time that a process has used since it was added, ns, without that of children; 0 of one
// that has no log of its own.
func (e *Engine) usedSince(im *process.Image) uint64 {
	m := e.measured[im.PID]
	if m == nil {
		return 0
	}
	now := e.budgetOf(im).Clock()
	return now - min(m.before, now)
}

// budgetOf returns the budget of a process.
func (e *Engine) budgetOf(im *process.Image) *overhead.Budget {
	m := e.measured[im.PID]
	if m == nil {
		return e.host.Budget
	}
	if m.budget == nil {
		part := m.terms.MaxOverhead
		if part == 0 {
			part = e.host.Budget.Asked
		}
		m.budget = e.host.Budget.Process(part, clockOf(im.PID))
	}
	return m.budget
}

// clockOf is the CPU time of a process, ns; it stands still once the process has ended. It may be
// used by several goroutines.
func clockOf(pid uint32) overhead.Clock {
	var last atomic.Uint64
	return func() uint64 {
		if ns, ok := procfs.ProcessTime(int(pid)); ok {
			last.Store(max(ns, last.Load()))
		}
		return last.Load()
	}
}

// without reports whether an event is not to be measured in a process.
func (e *Engine) without(im *process.Image, event string) bool {
	m := e.measured[im.PID]
	return m != nil && slices.Contains(m.terms.Without, event)
}

// explainer is a source that knows why one of its events is not measured in a process.
type explainer interface {
	Missing(im *process.Image, event string) error
}

// Missing returns why an event that was asked for is not measured in a process, nil if it is.
func (e *Engine) Missing(im *process.Image, event string) error {
	for _, s := range e.Sources.All {
		if x, ok := s.(explainer); ok {
			if err := x.Missing(im, event); err != nil {
				return err
			}
		}
	}
	return nil
}

// partly is a source that measures some events of some processes in part.
type partly interface {
	Partly(im *process.Image, event string) error
}

// Partly returns what of an event that is measured in a process is not, and why; nil if nothing is left out.
func (e *Engine) Partly(im *process.Image, event string) error {
	for _, s := range e.Sources.All {
		if x, ok := s.(partly); ok {
			if err := x.Partly(im, event); err != nil {
				return err
			}
		}
	}
	return nil
}

// threadCounter is a source that knows how many Haskell threads a process has.
type threadCounter interface {
	Threads(im *process.Image) (n int, ok bool)
}

// HaskellThreads is how many Haskell threads of a process were seen that have not ended; false if that
// is not measured now.
func (e *Engine) HaskellThreads(im *process.Image) (n int, ok bool) {
	for _, s := range e.Sources.All {
		if c, is := s.(threadCounter); is {
			return c.Threads(im)
		}
	}
	return 0, false
}

// Fork adds a process that was forked by another, to be recorded in a log of its own.
func (e *Engine) Fork(log *sink.Sink, terms Terms, time uint64, pid uint32, parent *process.Image) (*process.Image, error) {
	e.measured[pid] = newMeasured(terms, pid)
	return e.Processes.Fork(log, time, pid, parent)
}
