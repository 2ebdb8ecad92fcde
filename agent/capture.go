package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"ccagent/agent/invoker"
	"ccagent/agent/process"
	"ccagent/agent/procfs"
	"ccagent/agent/rtsprobes"
	"ccagent/agent/target"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/internal/credentials"
	"ccagent/perf"
)

// pollInterval is how often the ring buffer is emptied. At 1000 samples a
// second and CPU of the deepest stacks it holds several seconds' worth. Where
// allocation is sampled what its probes cost is looked at as often, and twice as often
// while that is much. Each time wakes several threads of Go's runtime.
const (
	pollInterval  = 100 * time.Millisecond
	allocInterval = 50 * time.Millisecond
)

// startPatience is how long the target waits to be let run, or watched, for call
// frame information to be compiled. The rest follows while it is sampled.
const startPatience = time.Second

// flushInterval is what a killed agent loses at most, and the granularity of
// loss and cost in the log.
const flushInterval = time.Second

// capture is a running capture.
type capture struct {
	opts   Options
	stop   <-chan struct{}
	who    *invoker.User
	target *target.Process
	owner  credentials.Credentials // of the target's own user
	unpass func()                  // stops passing signals on
	file   *invoker.Log
	log    *eventlog.Writer
	start  uint64 // CLOCK_MONOTONIC at log time 0, ns

	events   []grantedEvent
	timeline rtsprobes.Wanted // groups of probes that were asked for
	offCPU   *offCPU          // nil unless waits are sampled
	sampler  *bpf.Sampler
	// allocPrograms run at the probes of allocation, if that is sampled.
	allocPrograms [bpf.AllocSites]*ebpf.Program
	statsOn       func() error
	sampled       []*perf.Sampled
	counters      counters
	samples       *perf.Samples
	sideBand      *perf.SideBand
	processes     *process.Table
	clocks        cpuClocks
	alloc         *allocProbes // nil unless allocation is sampled
	ticky         *ticky
	rts           *rtsprobes.Probes // nil unless a timeline is drawn
	stacks        *stacks
	centres       *centreStacks
	budget        *budget
	rotation      rotation
	seen          *seenAddresses
	live          *liveSymbols // nil unless Options.Live

	labels          map[threadKey]string // as last written
	batch           []perf.Sample
	changes         []perf.Change
	lost            map[lossKey]uint64 // as last written
	undecodable     uint64             // likewise
	walks           histogram          // what each sample took in the walker
	begun           time.Time          // when the target was let run
	targetCPUBefore uint64             // CPU time that an attached target had used, ns
	eventSamples    uint64             // samples of events, those of allocation left out
	throttle        throttle
	thins           bool     // overflows are passed over, as their rate cannot be changed
	drained         uint64   // CPU time of handling samples, ns
	warned          []string // before there was a log
	sum             Summary
}

// threadKey is a Haskell thread of a process.
type threadKey struct {
	pid uint32
	tso uint64
}

// Run captures until the target ends, Options.Duration passes or stop is
// closed, then has the log symbolised. A program that was started runs on to
// its own end, and Run waits for it unless stop was closed. Cancelling ctx
// gives up what can be given up: symbols and waiting, not the log.
//
// The summary is of what was captured, also when an error ended it early.
func Run(ctx context.Context, stop <-chan struct{}, opts Options) (_ *Summary, err error) {
	c := &capture{opts: opts, stop: stop, stacks: newStacks(), centres: newCentreStacks(), seen: newSeenAddresses(), clocks: cpuClocks{}, labels: map[threadKey]string{}, lost: map[lossKey]uint64{}}
	if opts.Live {
		c.live = newLiveSymbols()
	}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.prepare(); err != nil {
		return nil, err
	}
	reason, captureErr := c.follow()
	if c.target.Started() && reason == eventlog.EndFailed {
		c.warn(fmt.Sprintf("%v; the program runs on unobserved", captureErr))
	}
	err = errors.Join(captureErr, c.finish(ctx, reason, captureErr))
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		err = fmt.Errorf("%w; what was recorded up to there is whole: make room and name its code with ccagent symbolize, or name another place with -o", err)
	}
	if reason != eventlog.EndInterrupted {
		c.sum.Status, c.sum.HaveStatus = c.target.ExitStatus(ctx)
	}
	return &c.sum, err
}

// prepare sets everything up to the point where the target may run.
func (c *capture) prepare() (err error) {
	if c.who, err = invoker.Find(c.opts.User); err != nil {
		return err
	}
	names, timeline, err := rtsprobes.Split(c.opts.Events)
	if err != nil {
		return err
	}
	c.timeline = timeline
	if c.events, err = grantEvents(names, c.opts.Rate); err != nil {
		return err
	}
	for i := range c.events {
		g := &c.events[i]
		if g.def.Fallback != "" {
			c.warn(fmt.Sprintf("%s is sampled in place of %s: %s", g.def.Granted, g.def.Requested, g.def.Fallback))
		}
		if told := g.fit(); told != "" {
			c.warn(told)
		}
	}
	if c.opts.PID != 0 {
		if c.target, err = target.Attach(c.opts.PID); err != nil {
			return err
		}
		if err := target.MayTrace(c.target.PID, c.who); err != nil {
			return err
		}
		if c.owner, err = target.Owner(c.target.PID); err != nil {
			return err
		}
	} else if c.target, err = target.Start(c.opts.Program, c.who, c.opts.Stdio); err != nil {
		return err
	} else {
		c.owner = c.who.Credentials()
	}
	if err := c.loadSampler(); err != nil {
		return err
	}
	if err := c.createLog(); err != nil {
		return err
	}
	if err := c.openEvents(); err != nil {
		return err
	}
	if a := c.alloc; a != nil && a.failed != nil && len(c.events) == 1 {
		return &EventError{Err: fmt.Errorf("event %s is not available: %w", AllocEvent, a.failed)}
	}
	if err := c.rts.OnlyProblem(); err != nil && len(c.events) == 0 {
		return &EventError{Err: err}
	}
	if err := c.processes.TakeTables(startPatience); err != nil {
		return err
	}
	c.targetCPUBefore, _, _ = procfs.CPUTime(c.target.PID)
	// Probes are in a running target since a while, of which its time is not counted.
	if c.budget.last, err = c.spent(); err != nil {
		return err
	}
	for _, s := range c.sampled {
		if err := s.Enable(); err != nil {
			return err
		}
	}
	if err := c.watchSwitches(); err != nil {
		return err
	}
	if c.opts.Started != nil {
		if err := c.opts.Started(c.file.File, c.target.PID); err != nil {
			return err
		}
	}
	c.begun = time.Now()
	c.budget.logged.time = monotonic()
	if err := c.watchChanges(); err != nil {
		return err
	}
	if c.target.Started() {
		c.unpass = c.target.PassSignals()
	}
	return c.target.Run(func() error {
		if err := c.drain(); err != nil {
			return err
		}
		return c.processes.TakeTables(startPatience)
	})
}

// watchChanges has changes of what processes run attended to as they come: until the
// walker knows of them it takes their code for foreign.
func (c *capture) watchChanges() error {
	if c.sideBand == nil {
		return nil
	}
	fds, err := c.sideBand.Files()
	if err != nil {
		return err
	}
	return c.target.Watch(fds)
}

// createLog creates the log and writes what is known before the first sample.
func (c *capture) createLog() error {
	var err error
	path := c.opts.Output
	if path == "" {
		name := c.target.Path
		if len(c.target.Args) > 0 {
			name = c.target.Args[0]
		}
		c.file, err = invoker.CreateDefaultLog(name, c.target.PID, c.who)
	} else {
		c.file, err = invoker.CreateLog(path, c.who)
	}
	if err != nil {
		return err
	}
	c.sum.Log = c.file.Path
	c.start = monotonic()
	c.log = eventlog.NewWriter(c.file, nil)
	if err := c.logWarnings(); err != nil {
		return err
	}
	if c.rts, err = rtsprobes.New(rtsprobes.Config{
		Wanted: c.timeline, Waits: c.asksFor(OffCPUEvent), Budget: rtsPart * c.opts.MaxOverhead, Write: c.emitOn, Warn: c.warn,
	}, c.sampler); err != nil {
		return explainBPF(err)
	}
	c.ticky, c.alloc = newTicky(c.sampler.ShutdownProgram, c.warn), c.allocProbes()
	watchers := []process.Watcher{c.ticky}
	if c.rts != nil {
		watchers = append(watchers, c.rts)
	}
	if c.alloc != nil {
		watchers = append(watchers, c.alloc)
	}
	c.processes = process.New(c.sampler, c.emit, c.warn, c.who, watchers...)
	return nil
}

// asksFor reports whether an event is among those that are sampled.
func (c *capture) asksFor(name string) bool {
	return slices.ContainsFunc(c.events, func(g grantedEvent) bool { return g.def.Requested == name })
}

// openEvents opens the side band and the sampled events, and takes in the
// target as it is now.
func (c *capture) openEvents() error {
	pid := c.target.PID
	cpus, err := procfs.OnlineCPUs()
	if err != nil {
		return err
	}
	// A thread that is created while the others' events are being opened
	// may or may not inherit them; then all are opened again.
	for range 8 {
		tids, err := perf.Threads(pid)
		if err != nil {
			return fmt.Errorf("attach: %w", err)
		}
		if err := c.openOn(tids, cpus); err != nil {
			return err
		}
		raced, err := perf.NewThreads(pid, tids)
		if err != nil || !raced {
			break
		}
		c.closeEvents()
	}
	if c.sideBand == nil && len(c.sampled) == 0 {
		return fmt.Errorf("attach: process %d creates threads faster than they can be followed; try again", pid)
	}
	im, err := c.processes.Discover(uint32(pid), procfs.Comm(pid), c.target.Path, c.target.Started())
	if err != nil {
		return err
	}
	if err := c.describe(im); err != nil {
		return err
	}
	return c.writeHead()
}

// allocProbes is nil unless allocation is to be sampled.
func (c *capture) allocProbes() *allocProbes {
	for i := range c.events {
		if c.events[i].def.Requested == AllocEvent {
			a := newAllocProbes(&c.events[i], c.allocPrograms, c.sampler, &c.budget.alloc, c.warn)
			a.emit = c.settled
			return a
		}
	}
	return nil
}

func (c *capture) openOn(tids, cpus []int) error {
	sideBand, err := perf.OpenSideBand(tids, cpus)
	if err != nil && !errors.Is(err, perf.ErrTooManyThreads) {
		return err
	}
	c.sideBand = sideBand
	c.counters = make(counters, len(c.events))
	for i := range c.events {
		g := &c.events[i]
		if !g.counted() {
			continue // probes follow when the run-time system is seen; switches are traced
		}
		g.now = g.rate
		s, err := perf.Open(g.event, g.rate, g.program, tids)
		if err != nil {
			return err
		}
		c.sampled = append(c.sampled, s)
		c.counters[g.def.Index] = &counter{index: g.def.Index, sampled: s, scale: 1}
	}
	return nil
}

func (c *capture) closeEvents() error {
	var err error
	for _, s := range c.sampled {
		err = errors.Join(err, s.Close())
	}
	c.sampled, c.counters = nil, nil
	if c.sideBand != nil {
		err = errors.Join(err, c.sideBand.Close())
		c.sideBand = nil
	}
	return err
}

// emit writes one of our events; time is CLOCK_MONOTONIC or now.
func (c *capture) emit(time uint64, e eventlog.Event) error {
	if time == process.Now {
		time = monotonic()
	}
	// What happened before the log's time 0 is written as of 0.
	at := max(time, c.start) - c.start
	c.remember(at, e)
	return c.log.Write(at, eventlog.NoCap, e)
}

func (c *capture) emitNow(e eventlog.Event) error { return c.emit(process.Now, e) }

// emitOn writes an event of a capability; time is CLOCK_MONOTONIC.
func (c *capture) emitOn(time uint64, cap int, e eventlog.Event) error {
	return c.log.Write(max(time, c.start)-c.start, cap, e)
}

// follow captures until something ends it.
func (c *capture) follow() (eventlog.EndReason, error) {
	flushed := c.begun
	for {
		ended, err := c.target.EndedWithin(c.pace())
		if err != nil {
			return eventlog.EndFailed, err
		}
		if err := c.drain(); err != nil {
			return eventlog.EndFailed, fmt.Errorf("capture: %w", err)
		}
		if err := c.regulate(); err != nil {
			return eventlog.EndFailed, fmt.Errorf("keep the budget: %w", err)
		}
		if t := time.Now(); t.Sub(flushed) >= flushInterval {
			flushed = t
			if err := c.account(); err != nil {
				return eventlog.EndFailed, fmt.Errorf("write log: %w", err)
			}
			if err := c.stepLive(); err != nil {
				return eventlog.EndFailed, fmt.Errorf("write symbols: %w", err)
			}
			if err := c.rotate(); err != nil {
				return eventlog.EndFailed, fmt.Errorf("rotate log: %w", err)
			}
		}
		select {
		case <-c.stop:
			return eventlog.EndInterrupted, nil
		default:
		}
		switch {
		case ended:
			return eventlog.EndExited, nil
		case c.opts.Duration > 0 && time.Since(c.begun) >= c.opts.Duration:
			return eventlog.EndDuration, nil
		}
	}
}
