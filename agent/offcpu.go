package agent

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// OffCPUEvent is the sampling of waits, in ns: when a thread has waited, the stack
// with which it began to, and for how long it was off the CPU. A capability's OS
// thread that has nothing to run is idle, not waiting.
const OffCPUEvent = "off-cpu"

// grantOffCPU grants the sampling of waits.
func grantOffCPU() grantedEvent {
	return grantedEvent{def: eventlog.EventDef{
		Requested: OffCPUEvent, Granted: OffCPUEvent, Unit: "ns", RateMode: eventlog.RatePeriod,
	}}
}

// maxWaits bounds the threads whose waits are followed at a time.
const maxWaits = 1 << 16

// offCPU follows the target's threads from where they cease to run to where they run
// again. A nil one does nothing.
type offCPU struct {
	link link.Link
	// isIdle reports whether a Haskell thread is one of the RTS's own, which wait
	// on behalf of others.
	isIdle  func(threadKey) bool
	waiting map[uint32]*wait // by kernel thread
	idleNs  uint64           // of threads without Haskell context, and of the RTS's own
	lost    uint64           // waits that ended and had no beginning
}

type wait struct {
	sample perf.Sample
	idle   bool
}

// attach has the program run at every switch of threads.
func (o *offCPU) attach(prog *ebpf.Program) (err error) {
	if o.link, err = link.AttachTracing(link.TracingOptions{Program: prog}); err != nil {
		return fmt.Errorf("attach to switches of threads: %w; the kernel has to have BTF and tracing (CONFIG_FPROBE or CONFIG_FTRACE)", err)
	}
	return nil
}

// begins takes a thread's stack as it ceases to run.
func (o *offCPU) begins(s *perf.Sample) {
	if len(o.waiting) >= maxWaits {
		clear(o.waiting)
	}
	stop := eventlog.StopReason(s.Stop)
	w := &wait{sample: *s}
	w.idle = stop == eventlog.StopNoHaskell || stop == eventlog.StopNoUserContext
	w.sample.Frames = slices.Clone(s.Frames)
	o.waiting[s.Tid] = w
}

// ends gives the sample of a wait of so many ns that has ended; nil if it was
// idleness.
func (o *offCPU) ends(tid uint32, at, ns uint64) *perf.Sample {
	w := o.waiting[tid]
	if w == nil {
		o.lost++
		return nil
	}
	delete(o.waiting, tid)
	// Threads are given their labels when they run already.
	if w.idle || o.isIdle(threadKey{w.sample.Pid, w.sample.Tso}) {
		o.idleNs += ns
		return nil
	}
	w.sample.Record, w.sample.Time, w.sample.Period = bpf.RecordSample, at, ns
	return &w.sample
}

// unfinished gives the waits that last at the end of a capture.
func (o *offCPU) unfinished(at uint64, exited func(pid uint32) bool) (last []*perf.Sample) {
	if o == nil {
		return nil
	}
	for _, tid := range slices.Sorted(maps.Keys(o.waiting)) {
		w := o.waiting[tid]
		if exited(w.sample.Pid) || at <= w.sample.Time {
			continue
		}
		if s := o.ends(tid, at, at-w.sample.Time); s != nil {
			last = append(last, s)
		}
	}
	return last
}

func (o *offCPU) Close() error {
	if o == nil || o.link == nil {
		return nil
	}
	err := o.link.Close()
	o.link = nil
	return err
}

// managers are the labels of the threads in which GHC's base library waits for files
// and timers on behalf of all others.
var managers = []string{"IOManager", "TimerManager"}

func isManager(label string) bool {
	for _, m := range managers {
		if strings.HasPrefix(label, m) {
			return true
		}
	}
	return false
}

// watchSwitches begins to sample waits, if they are to be.
func (c *capture) watchSwitches() error {
	for i := range c.events {
		if c.events[i].def.Requested != OffCPUEvent {
			continue
		}
		c.offCPU = &offCPU{
			waiting: map[uint32]*wait{},
			isIdle:  func(t threadKey) bool { return isManager(c.labels[t]) },
		}
		return c.offCPU.attach(c.events[i].program)
	}
	return nil
}
