package agent

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/engine"
	"ccagent/agent/invoker"
	"ccagent/agent/procfs"
	"ccagent/agent/sink"
	"ccagent/agent/source"
	"ccagent/agent/target"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/internal/credentials"
	"ccagent/perf"
)

// The ring buffer is emptied every pollInterval. At 1000 samples a second and CPU of the
// deepest stacks it holds several seconds' worth. At a capture's start nothing is known of
// what samples cost, and there may be many, so the cost is checked more often. Each
// time wakes several threads of Go's runtime.
const (
	pollInterval  = 100 * time.Millisecond
	earlyPeriod   = time.Second
	earlyInterval = 50 * time.Millisecond
)

// startPatience is how long the start of a capture waits for call frame information to be
// compiled. The rest is compiled while the target is sampled.
const startPatience = time.Second

// flushInterval is what a killed agent loses at most, and the granularity of
// loss and cost in the log.
const flushInterval = time.Second

// capture is a running capture: a program and what it executes and forks, with one log.
type capture struct {
	opts   Options
	stop   <-chan struct{}
	who    *invoker.User
	target *target.Process
	owner  credentials.Credentials // of the target's own user
	unpass func()                  // stops passing signals on

	asked  *source.Asked
	engine *engine.Engine
	log    *sink.Sink
	head   *eventlog.Capture
	// foreign is the target's program if that is not compiled by GHC.
	foreign string
	packer  string // what packed it; empty if nothing did

	names *names
	begun time.Time // when the log's time began, and as much later as that was paused
	sum   Summary
	cost  eventlog.AgentCost // as it was measured last
	dump  *dumping           // nil while no threads are read
}

// Run captures until the target ends, Options.Duration passes or stop is
// closed, then has the log symbolised. A program that was started runs on to
// its own end, and Run waits for it unless stop was closed. Cancelling ctx
// gives up what can be given up: symbols and waiting, not the log.
//
// The summary is of what was captured, also when an error ended it early.
func Run(ctx context.Context, stop <-chan struct{}, opts Options) (_ *Summary, err error) {
	c := &capture{opts: opts, stop: stop}
	defer func() { err = engine.ExplainDescriptors(errors.Join(err, c.close())) }()
	defer func() {
		if value := recover(); value != nil {
			err = c.panicked(ctx, value)
		}
	}()
	if err := c.prepare(); err != nil {
		return nil, err
	}
	reason, captureErr := c.follow()
	if c.target.Started() && reason == eventlog.EndFailed {
		c.log.Warn(fmt.Sprintf("%v; the program runs on unobserved", captureErr))
	}
	err = errors.Join(captureErr, c.finish(ctx, reason, captureErr))
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		err = fmt.Errorf("%w; what was recorded up to there is whole: make room and name its code with ccagent symbolize, or name another place with -o", err)
	}
	if reason == eventlog.EndDuration && c.target.Started() && c.opts.Waiting != nil {
		c.opts.Waiting(&c.sum, err)
	}
	if reason != eventlog.EndInterrupted {
		c.sum.Status, c.sum.HaveStatus = c.target.ExitStatus(ctx)
	}
	return &c.sum, err
}

// startGC is GOGC while a capture starts: what is read then is soon garbage, but collecting it
// at each 4 MB takes a tenth of the start's CPU time.
const startGC = 400

// prepare sets everything up to the point where the target may run, and lets it.
func (c *capture) prepare() (err error) {
	defer debug.SetGCPercent(debug.SetGCPercent(startGC))
	bpf.Prepare()
	if c.who, err = invoker.Find(c.opts.User); err != nil {
		return err
	}
	c.log = sink.New(sink.Config{Who: c.who, Unbegun: true, Rotate: c.opts.Rotate, Keep: c.opts.Keep, NoLabels: c.opts.NoLabels, Warn: c.opts.Warn})
	if c.asked, err = source.Parse(engine.Kinds(), c.opts.Events, c.opts.Rate); err != nil {
		return err
	}
	for _, line := range c.asked.Notes() {
		c.log.Warn(line)
	}
	if err := c.takeTarget(); err != nil {
		return err
	}
	if err := c.load(); err != nil {
		return err
	}
	if err := c.createLog(); err != nil {
		return err
	}
	if err := c.attach(); err != nil {
		return err
	}
	if err := c.engine.Sources.Unavailable(); err != nil {
		return err
	}
	if err := c.engine.Processes.TakeTables(startPatience); err != nil {
		return err
	}
	if err := c.engine.Start(); err != nil {
		return err
	}
	if err := c.engine.Sources.Unavailable(); err != nil { // some put their probes into running processes now
		return err
	}
	if c.opts.Started != nil {
		if err := c.opts.Started(c.log.File().File, c.target.PID); err != nil {
			return err
		}
	}
	if err := c.watchChanges(); err != nil {
		return err
	}
	if c.target.Started() {
		c.unpass = c.target.PassSignals()
	}
	if err := c.letRun(); err != nil {
		return err
	}
	return c.engine.WriteHead(c.log, c.head)
}

// letRun lets the target run, and with it the log's time: what was written before is of time 0,
// and while the agent holds the program at its own first instruction no time passes.
func (c *capture) letRun() error {
	c.begun = time.Now()
	c.log.Begin(perf.Monotonic())
	err := c.target.Run(func() error {
		held := time.Now()
		c.log.Pause(perf.Monotonic())
		defer func() {
			c.log.Resume(perf.Monotonic())
			c.begun = c.begun.Add(time.Since(held))
		}()
		if err := c.engine.Drain(); err != nil {
			return err
		}
		return c.engine.Processes.TakeTables(startPatience)
	})
	if unheld := c.target.Unheld(); unheld != nil {
		c.log.Warn(fmt.Sprintf("the program's first samples may lack their stacks: it was not held until its libraries were mapped (%v)", unheld))
	}
	return err
}

// takeTarget starts the program, or finds the process.
func (c *capture) takeTarget() (err error) {
	if c.opts.PID == 0 {
		c.owner = c.who.Credentials()
		c.target, err = target.Start(c.opts.Program, c.who, c.opts.Stdio)
		return err
	}
	if c.target, err = target.Attach(c.opts.PID); err != nil {
		return err
	}
	if err := target.MayTrace(c.target.PID, c.who); err != nil {
		return err
	}
	c.owner, err = target.Owner(c.target.PID)
	return err
}

// load loads the engine.
func (c *capture) load() error {
	plan, err := c.planMemory()
	if err != nil {
		return err
	}
	c.engine, err = engine.Open(engine.Config{
		Asked: c.asked, Logs: sink.NewSet(c.opts.Warn, c.log), Who: c.who,
		Default:   c.log,
		MaxFrames: c.opts.MaxFrames, KernelStacks: c.opts.KernelStacks,
		UnwindRows: plan.rows, Tight: plan.tight, LoadLate: c.target.Stripped(),
		MaxOverhead: c.opts.MaxOverhead, MaxPause: c.opts.MaxPause, KeepRates: c.opts.KeepRate, Expected: c.target.PID,
	})
	if err == nil {
		c.names = newNames(&c.opts, c.who, c.owner, c.log, c.engine.Processes)
	}
	return err
}

// watchChanges makes the side band wake the agent at each change of what processes run.
func (c *capture) watchChanges() error {
	fds, err := c.engine.Changes()
	if err != nil {
		return err
	}
	return c.target.Watch(fds)
}

// createLog creates the log.
func (c *capture) createLog() error {
	name := c.target.Path
	if len(c.target.Args) > 0 {
		name = c.target.Args[0]
	}
	return c.log.Create(c.opts.Output, name, c.target.PID)
}

// attach has the engine follow the target, and takes it in as it is now.
func (c *capture) attach() error {
	pid := c.target.PID
	if err := c.engine.Follow(pid); err != nil {
		return err
	}
	im, err := c.engine.Processes.Discover(c.log, uint32(pid), procfs.Comm(pid), c.target.Path, c.target.Started())
	if err != nil {
		return err
	}
	c.describe(im)
	return nil
}

// pace is how long to wait for the target until records are consumed again.
func (c *capture) pace() time.Duration {
	since := time.Since(c.begun)
	wait := pollInterval
	if since < earlyPeriod {
		wait = earlyInterval
	}
	for _, s := range c.engine.Sources.All {
		if p, ok := s.(source.Pacer); ok {
			wait = min(wait, p.Pace(since))
		}
	}
	if c.opts.Duration > 0 {
		wait = min(wait, c.opts.Duration-since)
	}
	return wait
}

// follow captures until something ends it.
func (c *capture) follow() (eventlog.EndReason, error) {
	defer c.endDump()
	flushed := c.begun
	for {
		ended, err := c.target.EndedWithin(c.pace())
		if err != nil {
			return eventlog.EndFailed, err
		}
		if reason, over := c.over(ended); over { // what is left to be drained is finish's
			return reason, nil
		}
		if err := c.engine.Drain(); err != nil {
			return eventlog.EndFailed, fmt.Errorf("capture: %w", err)
		}
		if err := c.engine.Throttle(); err != nil {
			return eventlog.EndFailed, fmt.Errorf("keep the budget: %w", err)
		}
		if err := c.stepDump(); err != nil {
			return eventlog.EndFailed, fmt.Errorf("write a thread dump: %w", err)
		}
		if t := time.Now(); t.Sub(flushed) >= flushInterval {
			flushed = t
			if err := c.account(); err != nil {
				return eventlog.EndFailed, fmt.Errorf("write log: %w", err)
			}
			if err := c.names.step(); err != nil {
				return eventlog.EndFailed, fmt.Errorf("write symbols: %w", err)
			}
			if err := c.rotate(); err != nil {
				return eventlog.EndFailed, fmt.Errorf("rotate log: %w", err)
			}
		}
	}
}

// over reports whether the capture is to end, and by what.
func (c *capture) over(ended bool) (eventlog.EndReason, bool) {
	select {
	case <-c.stop:
		return eventlog.EndInterrupted, true
	default:
	}
	switch {
	case ended:
		return eventlog.EndExited, true
	case c.opts.Duration > 0 && time.Since(c.begun) >= c.opts.Duration:
		return eventlog.EndDuration, true
	}
	return 0, false
}

// rotate begins a new log if it is time to.
func (c *capture) rotate() error {
	rotated, err := c.log.Rotate()
	if err != nil || !rotated {
		return err
	}
	return c.engine.Declare()
}
