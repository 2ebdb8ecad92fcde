package agent

import (
	"cmp"
	"math"
	"runtime"
	"slices"

	"ccagent/perf"
)

// drain consumes the records that have arrived, except ends of programs whose samples may still
// arrive.
func (c *capture) drain() error { return c.drainUntil(perf.Monotonic()) }

// drainAll consumes all records that have arrived.
func (c *capture) drainAll() error { return c.drainUntil(math.MaxUint64) }

// drainUntil consumes all records except ends of programs after a time; all samples up to that
// time have arrived.
func (c *capture) drainUntil(settled uint64) error {
	if err := c.processes.TakeTables(0); err != nil {
		return err
	}
	runtime.LockOSThread() // threadCPU measures the calling thread
	before := threadCPU()
	defer func() {
		c.meter.handling += threadCPU() - before
		runtime.UnlockOSThread()
	}()
	for {
		more, err := c.drainBatch(settled)
		if err != nil || !more {
			return err
		}
	}
}

// batchSize bounds the samples that are held at once to be merged with changes.
const batchSize = 2048

// drainBatch merges samples with changes by time. Samples are read first, so
// that every change that precedes one of them is there to be merged. Where there are
// more samples, what has changed after the last that was read waits for the others.
func (c *capture) drainBatch(settled uint64) (more bool, err error) {
	n := 0
	for n < batchSize {
		if n == len(c.batch) {
			c.batch = append(c.batch, perf.Sample{})
		}
		ok, err := c.records.Read(&c.batch[n])
		if err != nil {
			return false, err
		}
		if !ok {
			break
		}
		n++
	}
	if c.sideBand != nil {
		if c.changes, err = c.sideBand.Read(c.changes); err != nil {
			return false, err
		}
		slices.SortStableFunc(c.changes, func(a, b perf.Change) int {
			return cmp.Compare(perf.ChangeTime(a), perf.ChangeTime(b))
		})
	}
	next := 0
	var later []perf.Change
	for i := range c.batch[:n] {
		s := &c.batch[i]
		for next < len(c.changes) && perf.ChangeTime(c.changes[next]) <= s.Time {
			if err := c.apply(c.changes[next], settled, &later); err != nil {
				return false, err
			}
			next++
		}
		if err := c.consume(s); err != nil {
			return false, err
		}
	}
	more = n == batchSize
	for ; !more && next < len(c.changes); next++ {
		change := c.changes[next]
		if endsProgram(change) && perf.ChangeTime(change) > settled {
			break
		}
		if err := c.apply(change, settled, &later); err != nil {
			return false, err
		}
	}
	c.changes = append(later, c.changes[next:]...)
	return more, nil
}

// apply applies a change of a process that is followed. The side band reports all processes;
// that of an unknown one is passed over, or looked at again later if its fork, on another CPU,
// may not have been read yet.
func (c *capture) apply(change perf.Change, settled uint64, later *[]perf.Change) error {
	if c.processes.Follows(change) {
		return c.processes.Apply(change)
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
