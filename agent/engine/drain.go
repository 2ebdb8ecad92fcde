package engine

import (
	"cmp"
	"errors"
	"math"
	"runtime"
	"slices"

	"ccagent/agent/overhead"
	"ccagent/perf"
)

// Drain consumes the records that have arrived, except ends of programs whose samples may still
// arrive.
func (e *Engine) Drain() error { return e.drainUntil(perf.Monotonic()) }

// DrainAll consumes all records that have arrived.
func (e *Engine) DrainAll() error { return e.drainUntil(math.MaxUint64) }

// drainUntil consumes all records except ends of programs after a time; all samples up to that
// time have arrived.
func (e *Engine) drainUntil(settled uint64) error {
	if err := e.Processes.TakeTables(0); err != nil {
		return err
	}
	runtime.LockOSThread() // overhead.ThreadCPU measures the calling thread
	before := overhead.ThreadCPU()
	e.applied = 0
	defer func() {
		e.meter.handling += overhead.ThreadCPU() - before - e.applied
		runtime.UnlockOSThread()
	}()
	e.drained = 0
	for {
		more, err := e.drainBatch(settled)
		if err != nil {
			return err
		}
		if !more {
			return errors.Join(e.bringIn(), e.Processes.AskForPages())
		}
	}
}

// busy is how many records a Drain consumes where much arrives.
const busy = 1000

// Busy reports whether the last Drain had so many records that the next should not wait for long.
func (e *Engine) Busy() bool { return e.drained >= busy }

// batchSize bounds the samples that are held at once to be merged with changes.
const batchSize = 2048

// drainBatch merges samples with changes by time. Samples are read first, so
// that every change that precedes one of them is there to be merged. Where there are
// more samples, what has changed after the last that was read waits for the others.
func (e *Engine) drainBatch(settled uint64) (more bool, err error) {
	n := 0
	for n < batchSize {
		if n == len(e.batch) {
			e.batch = append(e.batch, perf.Sample{})
		}
		ok, err := e.records.Read(&e.batch[n])
		if err != nil {
			return false, err
		}
		if !ok {
			break
		}
		n++
	}
	if e.sideBand != nil {
		if e.changes, err = e.sideBand.Read(e.changes); err != nil {
			return false, err
		}
		slices.SortStableFunc(e.changes, func(a, b perf.Change) int {
			return cmp.Compare(perf.ChangeTime(a), perf.ChangeTime(b))
		})
	}
	var later []perf.Change
	for i := range e.batch[:n] {
		s := &e.batch[i]
		err := e.applyWhile(func(c perf.Change) bool { return perf.ChangeTime(c) <= s.Time }, settled, &later)
		if err != nil {
			return false, err
		}
		if err := e.consume(s); err != nil && !errors.Is(err, errNotMeasured) {
			return false, err
		}
	}
	e.drained += n
	if more = n == batchSize; !more {
		err = e.applyWhile(func(c perf.Change) bool { return !endsProgram(c) || perf.ChangeTime(c) <= settled }, settled, &later)
		if err != nil {
			return false, err
		}
	}
	e.changes = append(later, e.changes...)
	return more, nil
}

// applyWhile applies the changes that come first, as long as one is to be. What it takes is not charged to samples:
// where a host starts programs all the time, looking at them would leave no budget for any.
func (e *Engine) applyWhile(is func(perf.Change) bool, settled uint64, later *[]perf.Change) error {
	if len(e.changes) == 0 || !is(e.changes[0]) {
		return nil
	}
	before := overhead.ThreadCPU()
	defer func() { e.applied += overhead.ThreadCPU() - before }()
	for len(e.changes) > 0 && is(e.changes[0]) {
		change := e.changes[0]
		e.changes = e.changes[1:]
		if err := e.apply(change, settled, later); err != nil {
			return err
		}
	}
	return nil
}

// apply applies a change of a process that is followed. The side band reports all processes;
// that of an unknown one is passed over, or looked at again later if its fork, on another CPU,
// may not have been read yet.
func (e *Engine) apply(change perf.Change, settled uint64, later *[]perf.Change) error {
	if e.config.Chooser != nil {
		if done, err := e.config.Chooser.Changed(change); done || err != nil {
			return err
		}
	}
	if e.Processes.Follows(change) {
		return e.Processes.Apply(change)
	}
	if perf.ChangeTime(change) > settled {
		*later = append(*later, change)
	}
	return nil
}

// endsProgram reports whether a process's program is no more: its last samples must have
// been taken by then.
func endsProgram(c perf.Change) bool {
	switch c.(type) {
	case *perf.Exit, *perf.Exec:
		return true
	}
	return false
}
