// Package engine measures processes: it owns the loaded BPF programs, the ring buffer, the
// side band, the sources, and the table of processes, and writes what it measures of each
// process into that process's log.
//
// A capture of one program has an engine with one log, into which all that the program forks and
// executes is written too; a daemon has one engine for all processes of the host, each with a
// log of its own. Processes are added and removed while the engine runs, which loads nothing.
//
// An Engine is used by one goroutine. It owns all that it opens but the logs.
package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"ccagent/agent/closures"
	"ccagent/agent/invoker"
	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/procfs"
	"ccagent/agent/sink"
	"ccagent/agent/source"
	"ccagent/agent/target"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// Config says what an engine measures, and how.
type Config struct {
	Asked *source.Asked
	Logs  *sink.Set
	Who   *invoker.User // on whose behalf
	// Default is the log of a process whose first samples have arrived before the side band's
	// record of its fork or exec, or where that was lost.
	Default *sink.Sink
	// Chooser says what is measured where there is no Default.
	Chooser Chooser
	// Collected, if not nil, is notified of collections where there is no Default (source.Host).
	Collected    func(im *process.Image, pause uint64, major bool)
	MaxFrames    int
	KernelStacks bool
	UnwindRows   int  // room for call frame information
	Tight        bool // memory is short
	LoadLate     bool // see source.Host
	// Expected is the process that is to be discovered first; 0 if it is not known. Its files are read while
	// programs are loaded.
	Expected int
	// MaxPause is for how long a process may be stopped at once; 0 is no bound.
	MaxPause time.Duration
	// MaxOverhead and KeepRates are those of the budget.
	MaxOverhead float64
	KeepRates   bool
}

// A Chooser chooses among all processes of the host, and gives each a log.
type Chooser interface {
	// Changed is called with each change before it is applied to the table of processes, and
	// reports whether that is not to be done.
	Changed(c perf.Change) (done bool, err error)
	// Unknown returns the image of a process that is sampled, but not in the table: a fork of one that
	// is. Nil passes its samples over.
	Unknown(pid uint32) (*process.Image, error)
}

// Engine measures processes.
type Engine struct {
	Processes *process.Table
	Sources   *source.Set

	config   Config
	measured map[uint32]*measured // processes that have logs of their own
	walker   *bpf.Sampler
	host     *source.Host
	records  *perf.Samples
	sideBand *perf.SideBand
	statsOn  func() error // the kernel's statistics of BPF programs off again
	routes   routes
	batch    []perf.Sample
	drained  int // records, by the last Drain
	changes  []perf.Change
	applied  uint64 // CPU time of applying changes in the last Drain, ns
	// lostChanges is set when the user was warned that some changes were lost.
	lostChanges bool
	meter       meter
	absent      *absent
}

// Open loads the stack walker and all programs of sources, in parallel: verifying them takes
// most of the start of a capture.
func Open(c Config) (_ *Engine, err error) {
	e := &Engine{config: c, measured: map[uint32]*measured{}, absent: readAbsent()}
	defer func() {
		if err != nil {
			err = errors.Join(err, e.Close())
		}
	}()
	if err := rlimit.RemoveMemlock(); err != nil {
		return nil, fmt.Errorf("raise the limit on locked memory: %w", err)
	}
	if err := raiseFileLimit(); err != nil {
		return nil, err
	}
	if err := overhead.GiveWay(); err != nil {
		c.Logs.Warn(fmt.Sprintf("%v; programs are interrupted more often", err))
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, fmt.Errorf("count CPUs: %w", err)
	}
	namespace, err := bpf.OwnPIDNamespace()
	if err != nil {
		return nil, err
	}
	e.walker, err = bpf.Load(bpf.Config{
		MaxFrames:    c.MaxFrames,
		KernelStacks: c.KernelStacks,
		CPUs:         cpus,
		RingBytes:    ringBytes(cpus),
		UnwindRows:   c.UnwindRows,
		ManyUsers:    c.Default == nil,
		PIDNamespace: namespace,
	})
	if err != nil {
		return nil, explainBPF(err)
	}
	// Costs two reads of the clock a sample; without it the run time of
	// the walker is not known.
	if stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME); err == nil {
		e.statsOn = stats.Close
	}
	e.makeSources()
	var loads errgroup.Group
	if c.Tight {
		loads.SetLimit(1) // the kernel takes tens of megabytes to verify one
	}
	if c.Expected != 0 {
		loads.Go(func() error {
			e.Processes.Expect(uint32(c.Expected))
			return nil
		})
	}
	for _, s := range e.Sources.All {
		loads.Go(s.Load)
	}
	if err := loads.Wait(); err != nil {
		return nil, explainBPF(err)
	}
	e.records, err = perf.NewSamples(e.walker.Ring())
	return e, err
}

// makeSources makes the sources and their Host.
func (e *Engine) makeSources() {
	e.host = &source.Host{
		Walker: e.walker, Closures: closures.NewRegistry(), Log: e.config.Logs, Budget: overhead.NewBudget(e.config.MaxOverhead), OwnLogs: e.config.Default == nil, LoadLate: e.config.LoadLate, MaxPause: e.config.MaxPause,
		Timed: e.statsOn != nil, Walks: &e.meter.walks,
		Image: e.image, LogOf: e.logOf, Write: e.write, Place: e.place, WriteAt: e.writeAt, WriteKnown: e.writeKnown,
		Threads: e.threads, Drain: e.Drain, TargetCPU: e.meter.targetCPU,
	}
	e.host.Budget.KeepRates = e.config.KeepRates
	if e.host.OwnLogs {
		e.meter.since = e.usedSince
		e.host.Budgets, e.host.Without, e.host.Collected = e.budgetOf, e.without, e.config.Collected
	}
	e.host.CPUTime = e.config.Asked.CPUTime()
	e.Sources = e.config.Asked.Sources(e.host)
	watchers := make([]process.Watcher, len(e.Sources.All))
	for i, s := range e.Sources.All {
		watchers[i] = s
	}
	e.Processes = process.New(e.walker, e.config.Logs, e.config.Who, watchers...)
	e.host.Processes = e.Processes
	e.routes = routesTo(e.Sources)
	e.meter.open(e.host, e.Sources.All)
	e.host.Budget.Costs.Calibrate()
}

// Follow opens the side band, and has the sources follow a process and all that it forks.
func (e *Engine) Follow(pid int) error {
	// A thread that is created while the others' events are being opened
	// may or may not inherit them; then all are opened again.
	for range 8 {
		tids, err := perf.Threads(pid)
		if err != nil {
			return fmt.Errorf("attach: %w", err)
		}
		if err := e.followThreads(tids); err != nil {
			return err
		}
		if raced, err := perf.NewThreads(pid, tids); err != nil || !raced {
			return nil
		}
		if err := e.Unfollow(); err != nil {
			return err
		}
	}
	return fmt.Errorf("attach: process %d creates threads faster than they can be followed; try again", pid)
}

// FollowHost opens the side band, and has the sources measure what is added later, on all CPUs.
func (e *Engine) FollowHost() error { return e.followThreads(nil) }

// Join has a process sampled that runs already. What it forks is sampled from then on too.
func (e *Engine) Join(pid uint32) error {
	for _, s := range e.Sources.All {
		if j, ok := s.(source.Joiner); ok {
			if err := j.Join(pid); err != nil {
				return err
			}
		}
	}
	return nil
}

// Add adds a process that runs already, to be recorded in a log of its own from now on.
func (e *Engine) Add(log *sink.Sink, terms Terms, pid uint32, comm, path string) (*process.Image, error) {
	if err := e.Join(pid); err != nil {
		return nil, err
	}
	e.measured[pid] = newMeasured(terms, pid)
	return e.Processes.Discover(log, pid, comm, path, false)
}

// Remove removes a process, if it was added.
func (e *Engine) Remove(pid uint32) error {
	var err error
	if im := e.Processes.Images[pid]; im != nil {
		e.meter.remove(pid, im)
		err = e.Processes.Remove(im, perf.Monotonic())
	}
	delete(e.measured, pid)
	return errors.Join(err, e.walker.RemoveTarget(pid))
}

func (e *Engine) followThreads(tids []int) error {
	cpus, err := procfs.OnlineCPUs()
	if err != nil {
		return err
	}
	if e.sideBand, err = perf.OpenSideBand(cpus); err != nil {
		return err
	}
	for _, s := range e.Sources.All {
		if err := s.Follow(tids); err != nil {
			return err
		}
	}
	return nil
}

// Unfollow undoes Follow.
func (e *Engine) Unfollow() error {
	var errs []error
	if e.Sources != nil {
		for _, s := range e.Sources.All {
			errs = append(errs, s.Unfollow())
		}
	}
	if e.sideBand != nil {
		errs = append(errs, e.sideBand.Close())
		e.sideBand = nil
	}
	return errors.Join(errs...)
}

// Changes are descriptors that poll as readable once at each change of what processes run: the
// walker takes new code for foreign until Drain has handled the change.
func (e *Engine) Changes() ([]int, error) {
	if e.sideBand == nil {
		return nil, nil
	}
	return e.sideBand.Files()
}

// Start begins to measure.
func (e *Engine) Start() error {
	e.meter.begin()
	for _, s := range e.Sources.All {
		if err := s.Start(); err != nil {
			return err
		}
	}
	e.meter.logged.time = perf.Monotonic()
	return nil
}

// Throttle has the sources keep within the budget.
func (e *Engine) Throttle() error { return e.meter.throttle() }

// NextLook is how long it is until Look has something to do; source.Never if it never has.
func (e *Engine) NextLook() time.Duration {
	wait := source.Never
	for _, s := range e.Sources.All {
		if l, ok := s.(source.Looker); ok {
			wait = min(wait, l.NextLook())
		}
	}
	return wait
}

// Look has the sources look at processes whose moment has come.
func (e *Engine) Look() error {
	for _, s := range e.Sources.All {
		if l, ok := s.(source.Looker); ok {
			if err := l.Look(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Account writes what was lost, and what the sources have counted, into the logs.
func (e *Engine) Account() error {
	if err := e.accountLosses(); err != nil {
		return err
	}
	for _, s := range e.Sources.All {
		if err := s.Account(); err != nil {
			return err
		}
	}
	return nil
}

// accountLosses writes what was lost before any source had it.
func (e *Engine) accountLosses() error {
	nests := 0 // only probes can be interrupted by their like
	for i, event := range e.config.Asked.Events {
		if event.Nests {
			nests = i
		}
	}
	stats, err := e.walker.Stats()
	if err != nil {
		return err
	}
	for cpu, s := range stats {
		if err := e.config.Logs.Lost(sink.Place{CPU: cpu, Event: nests, Reason: eventlog.LossNested}, s.Nested); err != nil {
			return err
		}
	}
	if err := e.config.Logs.Lost(sink.Place{Reason: eventlog.LossDecode}, e.records.Undecodable); err != nil {
		return err
	}
	return e.accountSideBand()
}

// accountSideBand writes how many changes of what processes run were lost.
func (e *Engine) accountSideBand() error {
	if e.sideBand == nil || e.sideBand.Lost == 0 {
		return nil
	}
	if !e.lostChanges {
		e.lostChanges = true
		e.config.Logs.Warn(fmt.Sprintf("%d changes of what processes map, execute and fork were lost: some code may have no names, and some processes no samples", e.sideBand.Lost))
	}
	return e.config.Logs.Lost(sink.Place{Reason: eventlog.LossSideBand}, e.sideBand.Lost)
}

// Declare has the sources repeat what new logs need.
func (e *Engine) Declare() error {
	at := perf.Monotonic()
	e.host.Closures.ForgetWritten()
	for _, s := range e.Sources.All {
		if err := s.Declare(at); err != nil {
			return err
		}
	}
	return nil
}

// Redirect has a process recorded in another log from now on, unless that fails.
func (e *Engine) Redirect(im *process.Image, log *sink.Sink, comm, path string) error {
	for _, s := range e.Sources.All {
		if err := s.Leave(im); err != nil {
			return err
		}
	}
	if err := e.Processes.Redirect(im, log, comm, path); err != nil {
		return err
	}
	at := perf.Monotonic()
	for _, s := range e.Sources.All {
		if err := s.Enter(im, at); err != nil {
			return err
		}
	}
	return nil
}

// threads lists the threads of all processes that are sampled, in order; false where not all
// processes may be known.
func (e *Engine) threads() (all []int, sure bool, err error) {
	for pid, im := range e.Processes.Images {
		if im.Exited || target.MayTrace(int(pid), e.config.Who) != nil {
			continue
		}
		tids, err := perf.Threads(int(pid))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		all = append(all, tids...)
	}
	slices.Sort(all)
	return all, e.sideBand != nil && e.sideBand.Lost == 0, nil
}

// Close releases everything, in the reverse order of its making. It may be called at any time.
func (e *Engine) Close() error {
	var errs []error
	if e.records != nil {
		errs = append(errs, e.records.Close())
	}
	errs = append(errs, e.Unfollow())
	if e.Processes != nil {
		e.Processes.StopCompiling(0)
	}
	if e.Sources != nil {
		for _, s := range e.Sources.All {
			errs = append(errs, s.Close())
		}
	}
	if e.Processes != nil {
		errs = append(errs, e.Processes.Close())
	}
	errs = append(errs, e.meter.close())
	if e.statsOn != nil {
		errs = append(errs, e.statsOn())
	}
	if e.walker != nil {
		errs = append(errs, e.walker.Close())
	}
	e.absent.close() // nothing is drained any more
	return errors.Join(errs...)
}

// LostChanges is how many changes of what processes map, execute and fork were lost, of whatever process.
func (e *Engine) LostChanges() uint64 {
	if e.sideBand == nil {
		return 0
	}
	return e.sideBand.Lost
}
