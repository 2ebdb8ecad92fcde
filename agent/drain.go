package agent

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"

	"ccagent/agent/process"
	"ccagent/agent/procfs"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// drain takes what has arrived, but for ends of programs of which samples may be on
// their way.
func (c *capture) drain() error { return c.drainUntil(monotonic()) }

// drainAll takes everything that has arrived.
func (c *capture) drainAll() error { return c.drainUntil(math.MaxUint64) }

// drainUntil takes everything, but for ends of programs after a time at which all samples
// before it have arrived.
func (c *capture) drainUntil(settled uint64) error {
	if err := c.counters.follow(false); err != nil {
		return err
	}
	if err := c.processes.TakeTables(0); err != nil {
		return err
	}
	runtime.LockOSThread() // CPU time is told by thread
	before := threadCPU()
	defer func() {
		c.drained += threadCPU() - before
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
		ok, err := c.samples.Read(&c.batch[n])
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
	for i := range c.batch[:n] {
		s := &c.batch[i]
		for next < len(c.changes) && perf.ChangeTime(c.changes[next]) <= s.Time {
			if err := c.processes.Apply(c.changes[next]); err != nil {
				return false, err
			}
			next++
		}
		if err := c.sample(s); err != nil {
			return false, err
		}
	}
	more = n == batchSize
	for ; !more && next < len(c.changes); next++ {
		change := c.changes[next]
		if endsProgram(change) && perf.ChangeTime(change) > settled {
			break
		}
		if err := c.processes.Apply(change); err != nil {
			return false, err
		}
	}
	c.changes = slices.Delete(c.changes, 0, next)
	return more, nil
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

// sample writes one sample, after the stack nodes that it needs; or the label
// of a thread that was sampled.
func (c *capture) sample(s *perf.Sample) error {
	if s.Record == bpf.RecordLabel {
		return c.label(s)
	}
	switch s.Record {
	case bpf.RecordRTS:
		return c.rts.Take(s)
	case bpf.RecordWait:
		c.offCPU.begins(s)
		return nil
	case bpf.RecordWake:
		if s = c.offCPU.ends(s.Tid, s.Time, s.Period); s == nil {
			return nil
		}
		return c.taken(s)
	}
	if err := c.taken(s); err != nil || s.Record != bpf.RecordSample {
		return err
	}
	return c.rts.Sampled(s)
}

// taken writes a sample, or what came as one.
func (c *capture) taken(s *perf.Sample) error {
	im := c.processes.Images[s.Pid]
	if im == nil {
		// Its fork or exec has not been told, or was lost.
		var err error
		if im, err = c.processes.Discover(s.Pid, procfs.Comm(int(s.Pid)), procfs.Exe(s.Pid), false); err != nil {
			return err
		}
	}
	var of stratum
	switch {
	case s.Record == bpf.RecordCCS:
		return c.centres.told(im, &s.Stack, c.emitNow)
	case s.Record == bpf.RecordAllocated:
		c.alloc.ending(im, s.Total)
		return nil
	case s.Site != 0:
		of = stratumOf(bpf.AllocSite(s.Site), s.Period == 0)
		if s.Period = c.alloc.weigh(im, s); s.Period == 0 {
			return nil
		}
	}
	if s.Record == bpf.RecordTicky {
		c.ticky.take(im, s.Frames)
		return nil
	}
	s.Period = c.counters.weigh(s.Event, s.Period)
	node, err := c.stacks.intern(im, s.Frames,
		func(addr uint64) (uint32, uint64, error) { return c.processes.Locate(im, s.Time, addr) },
		func(n *eventlog.Nodes) error {
			c.seen.addNodes(n.Nodes)
			return c.emit(s.Time, n)
		})
	if err != nil {
		return err
	}
	if err := c.countSample(im, s); err != nil {
		return err
	}
	centres, err := c.centres.use(im, s.Ccs, c.emitNow)
	if err != nil {
		return err
	}
	sample := &eventlog.Sample{
		Event: uint32(s.Event), CPU: s.Cpu, PID: s.Pid, TID: s.Tid,
		Capability: uint32(s.Capability), TSO: s.Tso, Weight: s.Period, Node: node,
		Stop: eventlog.StopReason(s.Stop), Flags: eventlog.SampleFlags(s.Flags),
		SkippedWords: s.SkippedWords, FoldedFrames: s.FoldedFrames, Centres: centres,
	}
	if s.Site != 0 {
		c.alloc.remember(im, sample, of)
	}
	return c.emit(s.Time, sample)
}

// settled writes a sample that stands for the last bytes of a process.
func (c *capture) settled(s *eventlog.Sample) error {
	e := &c.sum.Events[s.Event]
	e.Samples++
	e.Weight += s.Weight
	c.sum.Samples++
	return c.emit(process.Now, s)
}

// maxLabels bounds the remembered thread labels.
const maxLabels = 1 << 16

// label writes a thread's label unless it is known: the walker knows labels by
// their place in the heap, and tells them again when they were moved.
func (c *capture) label(s *perf.Sample) error {
	thread := threadKey{s.Pid, s.Tso}
	if c.labels[thread] == s.Label {
		return nil
	}
	if len(c.labels) >= maxLabels {
		clear(c.labels)
	}
	c.labels[thread] = s.Label
	return c.emit(process.Now, &eventlog.ThreadLabel{Thread: uint32(s.Tso), Label: s.Label})
}

// countSample keeps the summary's counts.
func (c *capture) countSample(im *process.Image, s *perf.Sample) error {
	if int(s.Event) >= len(c.sum.Events) {
		return fmt.Errorf("sample of unknown event %d", s.Event)
	}
	e := &c.sum.Events[s.Event]
	e.Samples++
	e.Weight += s.Period
	c.sum.Samples++
	if s.Site == 0 {
		c.eventSamples++
	}
	c.walks.add(uint64(s.WalkNs))
	switch stop := eventlog.StopReason(s.Stop); {
	case stop == eventlog.StopNoHaskell || stop == eventlog.StopNoUserContext:
		c.sum.NoHaskell++
	case stop.Complete():
		c.sum.Complete++
	case stop.Truncated():
		c.sum.Truncated++
	default:
		c.sum.Failed++
	}
	if im.RTS != nil {
		c.sum.Haskell = true
	}
	if leaf, ok := leafAddress(s.Frames); ok {
		module, addr, _ := im.Resolve(leaf)
		c.seen.countLeaf(module, addr)
	}
	return nil
}

// leafAddress is the user-space address that a sample hit, or came from.
func leafAddress(frames []uint64) (uint64, bool) {
	for _, f := range frames {
		if eventlog.FrameKind(f>>bpf.FrameKindShift) == eventlog.FramePC {
			return f & bpf.FrameAddressMask, true
		}
	}
	return 0, false
}

// account writes what was lost and what measuring has cost so far, and hands
// everything to the file.
func (c *capture) account() error {
	if err := c.accountLoss(); err != nil {
		return err
	}
	if bad := c.samples.Undecodable; bad > c.undecodable {
		if err := c.emit(process.Now, &eventlog.Loss{Reason: eventlog.LossDecode, Count: bad - c.undecodable}); err != nil {
			return err
		}
		c.sum.Lost += bad - c.undecodable
		c.undecodable = bad
	}
	cost, err := c.measureCost()
	if err != nil {
		return err
	}
	if err := c.emit(process.Now, cost); err != nil {
		return err
	}
	if err := errors.Join(c.logOverhead(), c.watchThrottle(), c.logWarnings()); err != nil {
		return err
	}
	if err := c.counters.follow(true); err != nil {
		return err
	}
	counts, err := c.counters.account()
	if err != nil {
		return err
	}
	for _, n := range counts {
		if err := c.emit(process.Now, n); err != nil {
			return err
		}
	}
	probes, err := c.rts.Account()
	if err != nil {
		return err
	}
	c.sum.Probes = c.sum.Probes[:0]
	for _, p := range probes {
		c.sum.Probes = append(c.sum.Probes, *p)
		if err := c.emit(process.Now, p); err != nil {
			return err
		}
	}
	return c.log.Flush()
}
