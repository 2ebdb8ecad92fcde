package offcpu

import (
	"maps"
	"runtime"
	"slices"
	"time"

	"ccagent/agent/overhead"
	"ccagent/agent/procfs"
	"ccagent/agent/sink"
	"ccagent/agent/source"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// watch keeps the tracing of switches within its budget: while that is in debt, switches are not traced. For how long a thread was off
// the CPU meanwhile follows from its CPU time, which the kernel counts, and is not divided among calls: it is a sample of StateUnwatched. Times
// are in ns.
type watch struct {
	bucket  *overhead.Bucket
	paused  bool
	threads map[uint32]*thread
	charged uint64 // of Cost
	time    uint64 // at which the bucket was filled last, and CPU time of the target
	target  uint64
	own     float64 // what reading the CPU time of threads has cost and is not charged yet
	rate    float64 // what tracing costs of one CPU's time while it goes on
	outNs   uint64  // for how long switches were not traced, up to the last pause
	outAt   uint64  // when that began; 0 if they are traced
	lost    uint64  // time of threads that were never seen in a call
	unwatched
}

// unwatched is for how long threads were off the CPU without being looked at: what is most likely, at least, and at most.
type unwatched struct{ weight, least, most uint64 }

func (u *unwatched) add(v unwatched) {
	u.weight += v.weight
	u.least += v.least
	u.most += v.most
}

// thread is a thread of the target.
type thread struct {
	pid   uint32
	calls bool // it was seen waiting in a call from Haskell
	blind *mark
	time  unwatched // not in the log yet
}

// mark is where a thread stood when it was last looked at: its waits since then are not known.
type mark struct {
	time, ran, delayed uint64
	unsure             uint64 // ran may be as much more: as of the last tick, of a thread that runs
}

// now is what the kernel says of a thread; delayed is how long it has waited for a CPU.
type now struct {
	time, ran, delayed uint64
	known              bool // delayed is
}

const (
	// longestTick is the time between two ticks of the kernels that have fewest.
	longestTick = 10e6
	// window is for how long switches are traced at a time, at least.
	window = 20e6
	// leastBusy is the part of one CPU's time by which the bucket fills where the target uses less of it: what waits uses little.
	leastBusy = 0.2
	// leastBack is what there has to be in the bucket when tracing begins again.
	leastBack = 0.25e6
)

// pass adds the time since a thread's mark.
func (t *thread) pass(n now) {
	m := t.blind
	if n.time <= m.time {
		return
	}
	elapsed := n.time - m.time
	off := elapsed - min(n.ran-min(m.ran, n.ran), elapsed)
	preempted := off
	if n.known {
		preempted = n.delayed - min(m.delayed, n.delayed) + m.unsure
	}
	t.time.add(unwatched{off, off - min(preempted, off), min(off+m.unsure, elapsed)})
	*m = mark{time: n.time, ran: n.ran, delayed: n.delayed}
}

// thread returns what is kept of a thread.
func (o *offCPU) thread(pid, tid uint32) *thread {
	t := o.watch.threads[tid]
	if t == nil || t.pid != pid {
		t = &thread{pid: pid}
		o.watch.threads[tid] = t
	}
	return t
}

// look reads what the threads of all processes have used, and adds what was not watched.
func (o *offCPU) look() error {
	runtime.LockOSThread() // overhead.ThreadCPU measures the calling thread
	defer runtime.UnlockOSThread()
	before := overhead.ThreadCPU()
	there := map[uint32]bool{}
	for pid, im := range o.host.Processes.Images {
		if im.Exited {
			continue
		}
		list, err := procfs.ThreadIDs(int(pid))
		if err != nil {
			continue // it has just ended
		}
		for _, tid := range list {
			at := perf.Monotonic()
			ran, delayed, ok := procfs.ThreadTimes(int(pid), tid)
			if !ok {
				continue
			}
			there[uint32(tid)] = true
			if err := o.lookAt(pid, uint32(tid), now{at, ran, delayed, true}); err != nil {
				return err
			}
		}
	}
	at := perf.Monotonic()
	for tid, t := range o.watch.threads {
		if there[tid] {
			continue
		}
		if w := o.waiting[tid]; w != nil && w.unsure {
			if err := o.leave(t, tid, w); err != nil {
				return err
			}
		}
		if m := t.blind; m != nil { // how much of that it has run, or was there at all, is not known
			t.time.most += at - min(m.time, at)
			t.blind = nil
		}
		if err := o.writeUnwatched(tid, t, at); err != nil {
			return err
		}
		if !t.calls {
			o.watch.lost += t.time.weight
		}
		delete(o.watch.threads, tid)
	}
	o.watch.own += float64(overhead.ThreadCPU()-before) * overhead.CPUShare()
	return nil
}

// lookAt adds what was not watched of a thread.
func (o *offCPU) lookAt(pid, tid uint32, n now) error {
	w := &o.watch
	fresh := w.threads[tid] == nil
	t := o.thread(pid, tid)
	wait := o.waiting[tid]
	switch {
	case wait != nil && wait.ran == n.ran:
		// It has not run since: it waits still.
		if w.paused {
			wait.unsure, wait.until, t.blind = true, n.time, nil
			o.idle(wait)
		} else if wait.unsure {
			wait.until = n.time
		}
		return nil
	case wait != nil && (wait.unsure || w.paused):
		if err := o.leave(t, tid, wait); err != nil {
			return err
		}
	case fresh && w.outAt > 0: // it began while switches were not traced
		t.time.most += n.time - min(w.outAt+n.ran, n.time)
		t.blind = &mark{n.time, n.ran, n.delayed, longestTick}
		return nil
	case t.blind == nil && w.paused:
		t.blind = &mark{n.time, n.ran, n.delayed, longestTick}
		return nil
	case t.blind == nil:
		return nil
	}
	t.pass(n)
	return nil
}

// leave ends a wait of which it is not known when it ended: it is known up to when the thread was last seen in it.
func (o *offCPU) leave(t *thread, tid uint32, w *wait) error {
	t.blind = &mark{time: w.sample.Time, ran: w.ran}
	if w.until > w.sample.Time {
		t.blind.time = w.until
		return o.write(o.ends(tid, w.until, w.until-w.sample.Time))
	}
	delete(o.waiting, tid)
	return nil
}

// pause ends tracing, and resume begins it again.
func (o *offCPU) pause() error {
	if err := o.detach(); err != nil {
		return err
	}
	if err := o.host.Drain(); err != nil {
		return err
	}
	o.watch.paused, o.watch.outAt = true, perf.Monotonic()
	if err := o.takeUnsent(); err != nil {
		return err
	}
	return o.look()
}

func (o *offCPU) resume() error {
	if err := o.attach(); err != nil {
		return err
	}
	w := &o.watch
	w.paused = false
	w.outNs += perf.Monotonic() - w.outAt
	err := o.look()
	w.outAt = 0
	return err
}

// takeUnsent adds the waits whose stacks were not sent. No switch is traced.
func (o *offCPU) takeUnsent() error {
	unsent, err := o.host.Walker.TakeUnsent()
	for _, u := range unsent {
		t := o.thread(u.PID, u.TID)
		t.unsent(u.Ns)
		if t.blind == nil && u.Since > 0 {
			t.blind = &mark{time: u.Since, ran: u.Ran}
		}
	}
	return err
}

// unsent adds waits that were seen, but whose stacks were not sent.
func (t *thread) unsent(ns uint64) {
	if t.blind == nil { // else they are part of what passes since
		t.time.add(unwatched{ns, ns, ns})
	}
}

// Throttle charges what tracing has cost, and ends it or begins it again.
func (o *offCPU) Throttle(u source.Use) error {
	w := &o.watch
	if w.bucket == nil || w.bucket.Unlimited() {
		return nil
	}
	cost := float64(u.Cost.Samples.Ns-w.charged) + w.own + u.Handling
	passed := float64(u.Time - min(w.time, u.Time))
	w.bucket.Pass(max(passed*leastBusy, float64(u.Target-min(w.target, u.Target))), cost)
	w.charged, w.own = u.Cost.Samples.Ns, 0
	if !w.paused && passed > 0 {
		w.rate = (w.rate + cost/passed) / 2
	}
	w.time, w.target = u.Time, u.Target
	switch level := w.bucket.Level(); {
	case o.link != nil && level < 0:
		return o.pause()
	case w.paused && level >= w.enough():
		return o.resume()
	}
	return nil
}

// enough is what there has to be in the bucket for tracing to begin again.
func (w *watch) enough() float64 {
	return min(max(w.rate*window, leastBack), w.bucket.Depth()/2)
}

// Pace is how long it is to the next look at the bucket.
func (o *offCPU) Pace(since time.Duration) time.Duration {
	const (
		often, startPeriod = 5 * time.Millisecond, 100 * time.Millisecond
		least              = 10 * time.Millisecond
	)
	w := &o.watch
	switch {
	case w.bucket == nil || w.bucket.Unlimited():
		return source.Never
	case w.paused:
		return max(time.Duration((w.enough()-w.bucket.Level())/w.bucket.Rate()), least)
	case since < startPeriod || w.rate > w.bucket.Rate():
		return often
	}
	return source.Never
}

// blind reports whether there are threads whose waits are not known, or too many to keep that may have ended.
func (o *offCPU) blind() bool {
	for _, t := range o.watch.threads {
		if t.blind != nil {
			return true
		}
	}
	return len(o.watch.threads) > maxWaits
}

func (o *offCPU) writeAllUnwatched(at uint64) error {
	for _, tid := range slices.Sorted(maps.Keys(o.watch.threads)) {
		if err := o.writeUnwatched(tid, o.watch.threads[tid], at); err != nil {
			return err
		}
	}
	return nil
}

// describe writes what was not watched so far.
func (o *offCPU) describe() error {
	if o.watch.most == 0 {
		return nil
	}
	return o.host.Log.Each(func(log *sink.Sink) error {
		return log.Emit(sink.Now, &eventlog.Sampling{Event: o.event.Def.Index, UnwatchedLeastNs: o.watch.least, UnwatchedMostNs: o.watch.most})
	})
}

// writeUnwatched writes a sample of what was not watched of a thread that waits in calls.
func (o *offCPU) writeUnwatched(tid uint32, t *thread, at uint64) error {
	if !t.calls {
		return nil
	}
	u := t.time
	t.time = unwatched{}
	o.watch.add(u)
	if u.weight == 0 {
		return nil
	}
	return o.write(&perf.Sample{
		SampleHeader: bpf.SampleHeader{
			Record: bpf.RecordSample, Event: uint16(o.event.Def.Index), Pid: t.pid, Tid: tid, Time: at, Period: u.weight,
			Capability: eventlog.NoCapability, Stop: uint8(eventlog.StopRoot),
		},
		Frames: []uint64{uint64(eventlog.FrameWait)<<bpf.FrameKindShift | uint64(eventlog.StateUnwatched)},
	})
}
