// Package offcpu samples waits, in ns: when a thread has waited, the stack with which it
// began to, and for how long it was off the CPU. A capability's OS thread that has nothing to
// run is idle, not waiting.
//
// Switches of threads are traced in windows where tracing them all would cost more than the budget (watch.go). What was not watched is
// known for each thread, and has samples of its own; it is never divided among calls.
package offcpu

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"ccagent/agent/procfs"
	"ccagent/agent/sink"
	"ccagent/agent/source"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// name is the event's.
const name = "off-cpu"

// Kind makes the source of waits. It recognises the threads of GHC's I/O manager by label.
func Kind() source.Kind {
	return source.Kind{Grant: grant, New: open, Needs: source.Labels, Known: known}
}

func grant(asked string, _ perf.Rate) (*source.Event, bool, error) {
	return &source.Event{Samples: true, Def: eventlog.EventDef{
		Requested: name, Granted: name, Unit: "ns", RateMode: eventlog.RatePeriod,
	}}, asked == name, nil
}

func known() []source.Known {
	k := source.Known{Name: name, Unit: "ns", About: "waits in calls from Haskell"}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		k.Reason = "the kernel has no type information (/sys/kernel/btf/vmlinux)"
		k.Help = "boot a kernel with CONFIG_DEBUG_INFO_BTF, which every distribution's has"
	}
	return []source.Known{k}
}

// offCPU follows the target's threads from where they cease to run to where they run
// again.
type offCPU struct {
	source.Base
	host    *source.Host
	event   *source.Event
	program *ebpf.Program
	link    link.Link // nil while switches are not traced
	waiting map[uint32]*wait
	idleNs  uint64 // of threads without Haskell context, and of the RTS's own
	taken   uint64 // samples
	missed  uint64 // waits that are not known, though their stack was sent
	watch   watch
}

// wait is the wait of one kernel thread.
type wait struct {
	sample perf.Sample
	idle   bool
	ran    uint64 // CPU time of the thread when it began, ns
	// unsure is set if switches were not traced for a while since. The thread was still in it at until, ns, if that is not 0.
	unsure bool
	until  uint64
}

// maxWaits bounds the threads whose waits are followed at a time.
const maxWaits = 1 << 16

func open(h *source.Host, asked []*source.Event, _ source.Need) source.Source {
	if len(asked) == 0 {
		return nil
	}
	h.Budget.NeedWaits()
	return &offCPU{host: h, event: asked[0], waiting: map[uint32]*wait{}, watch: watch{threads: map[uint32]*thread{}}}
}

// Load loads what runs where the kernel switches threads.
func (o *offCPU) Load() (err error) {
	o.program, err = o.host.Walker.SwitchProgram(int(o.event.Def.Index))
	return err
}

// Receives returns the types of the records at the beginning and end of waits.
func (o *offCPU) Receives() []uint8 { return []uint8{bpf.RecordWait, bpf.RecordWake} }

// Start has the program run at every switch of threads.
func (o *offCPU) Start() error {
	o.watch.bucket, o.watch.time, o.watch.target = o.host.Budget.Waits(), perf.Monotonic(), o.host.TargetCPU()
	return o.attach()
}

func (o *offCPU) attach() (err error) {
	if o.link, err = link.AttachTracing(link.TracingOptions{Program: o.program}); err != nil {
		return fmt.Errorf("attach to switches of threads: %w; the kernel has to have BTF and tracing (CONFIG_FPROBE or CONFIG_FTRACE)", err)
	}
	return nil
}

// Consume takes the beginning or the end of a wait.
func (o *offCPU) Consume(r *perf.Sample) error {
	if r.Record == bpf.RecordWait {
		return o.begins(r)
	}
	return o.write(o.ends(r.Tid, r.Time, r.Period))
}

// write writes the sample of a wait, if there is one.
func (o *offCPU) write(r *perf.Sample) error {
	if r == nil {
		return nil
	}
	im, err := o.host.Image(r.Pid)
	if err != nil {
		return err
	}
	o.taken++
	_, err = o.host.Write(im, r)
	return err
}

// begins keeps the stack of a thread that stops running.
func (o *offCPU) begins(s *perf.Sample) error {
	t := o.thread(s.Pid, s.Tid)
	t.unsent(s.Period)
	if w := o.waiting[s.Tid]; w != nil && w.unsure {
		if err := o.leave(t, s.Tid, w); err != nil {
			return err
		}
	} else if w != nil {
		o.missed++ // the record of its end was lost
	} else if len(o.waiting) >= maxWaits {
		o.missed += uint64(len(o.waiting))
		clear(o.waiting)
	}
	stop := eventlog.StopReason(s.Stop)
	if t.blind != nil && s.Time >= t.blind.time {
		n := now{time: s.Time, ran: s.Total}
		_, n.delayed, n.known = procfs.ThreadTimes(int(s.Pid), int(s.Tid)) // since then it may have waited for more: it is less that is known
		t.pass(n)
		t.blind = nil
	}
	w := &wait{sample: *s, ran: s.Total}
	w.sample.Period, w.sample.Total = 0, 0
	w.idle = stop == eventlog.StopNoHaskell || stop == eventlog.StopNoUserContext
	w.sample.Frames = slices.Clone(s.Frames)
	o.waiting[s.Tid] = w
	return nil
}

// ends returns the sample of a wait of so many ns that has ended; nil if the thread was idle, or
// if the record of its beginning was lost, which is counted already.
func (o *offCPU) ends(tid uint32, at, ns uint64) *perf.Sample {
	w := o.waiting[tid]
	if w == nil {
		return nil
	}
	delete(o.waiting, tid)
	if o.idle(w) {
		o.idleNs += ns
		return nil
	}
	o.thread(w.sample.Pid, tid).calls = true
	w.sample.Time, w.sample.Period = at, ns
	return &w.sample
}

// idle reports whether a wait is none in a call. Threads are given their labels when they run already; labels go with their process.
func (o *offCPU) idle(w *wait) bool {
	im := o.host.Processes.Images[w.sample.Pid]
	w.idle = w.idle || im != nil && source.IOManager(im.Log.LabelOf(w.sample.Pid, w.sample.Tso))
	return w.idle
}

// Finish writes the waits that have not ended when the capture does. A thread that the kernel says
// is not waiting has ended its wait, but the record of it was lost.
func (o *offCPU) Finish(at uint64) error {
	if len(o.waiting) == 0 && len(o.watch.threads) == 0 {
		return nil
	}
	if err := o.takeUnsent(); err != nil {
		return err
	}
	if err := o.look(); err != nil {
		return err
	}
	asleep, err := o.host.Walker.Asleep()
	if err != nil {
		return err
	}
	for _, tid := range slices.Sorted(maps.Keys(o.waiting)) {
		w := o.waiting[tid]
		if o.host.Processes.Exited(w.sample.Pid) || at <= w.sample.Time {
			continue
		}
		if !asleep[tid] && !w.unsure {
			o.missed++
			continue
		}
		if err := o.write(o.ends(tid, at, at-w.sample.Time)); err != nil {
			return err
		}
	}
	if err := o.writeAllUnwatched(at); err != nil {
		return err
	}
	for _, t := range o.watch.threads {
		o.watch.lost += t.time.weight // those that wait in calls have nothing left
	}
	return o.describe()
}

// switchNs is what a wait costs besides, where it begins and ends: the calls of the program and
// a look-up, ns.
const switchNs = 500

// Cost returns what tracing the target's switches has cost it. The program runs at those of all
// other processes, too.
func (o *offCPU) Cost() (c source.Cost, err error) {
	stats, err := o.host.Walker.Stats()
	for _, s := range stats {
		c.Samples.Runs += s.Waits
		c.Samples.Ns += s.WaitNs + s.Waits*switchNs
	}
	c.Handled = o.taken
	return c, err
}

// Account writes what was lost, and what was not watched.
func (o *offCPU) Account() error {
	if o.watch.paused || o.blind() {
		if err := o.look(); err != nil {
			return err
		}
	}
	if err := o.writeAllUnwatched(perf.Monotonic()); err != nil {
		return err
	}
	if err := o.describe(); err != nil {
		return err
	}
	if err := o.host.Lost(o.event); err != nil {
		return err
	}
	return o.host.Log.Lost(sink.Place{Event: int(o.event.Def.Index), Reason: eventlog.LossWait}, o.missed)
}

// Stop ends the tracing of switches.
func (o *offCPU) Stop() error {
	if o.watch.paused {
		o.watch.outNs += perf.Monotonic() - o.watch.outAt
	}
	o.watch.bucket = nil
	return o.detach()
}

func (o *offCPU) detach() error {
	if o.link == nil {
		return nil
	}
	err := o.link.Close()
	o.link = nil
	return err
}

// Report adds the time of idle threads to the summary, and what was not watched.
func (o *offCPU) Report(sum *source.Summary) {
	e := &sum.Events[o.event.Def.Index]
	w := &o.watch
	e.Idle = time.Duration(o.idleNs)
	e.Unwatched = source.Unwatched{Out: time.Duration(w.outNs), Least: time.Duration(w.least), Most: time.Duration(w.most), Idle: time.Duration(w.lost)}
	e.WhyNone = "no thread waited in a call from Haskell code; what else waited was idle"
}

// Close ends the tracing of switches.
func (o *offCPU) Close() error { return o.Stop() }
