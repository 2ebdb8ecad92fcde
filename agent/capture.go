package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"
)

// pollInterval is how often the ring buffer is emptied. At 1000 samples a
// second and CPU of the deepest stacks it holds several seconds' worth.
const pollInterval = 50 * time.Millisecond

// flushInterval is what a killed agent loses at most, and the granularity of
// loss and cost in the log.
const flushInterval = time.Second

// capture is a running capture.
type capture struct {
	opts   Options
	stop   <-chan struct{}
	who    *Invoker
	target *Target
	unpass func() // stops passing signals on
	file   *os.File
	log    *eventlog.Writer
	start  uint64 // CLOCK_MONOTONIC at log time 0, ns

	events    []grantedEvent
	sampler   *bpf.Sampler
	statsOn   func() error
	sampled   []*perf.Sampled
	samples   *perf.Samples
	sideBand  *perf.SideBand
	processes *processes
	stacks    *stacks
	seen      *seenAddresses

	labels          map[threadKey]string // as last written
	batch           []perf.Sample
	changes         []perf.Change
	ringFull        []uint64  // per CPU, as last reported
	undecodable     uint64    // likewise
	walks           histogram // what each sample took in the walker
	begun           time.Time // when the target was let run
	targetCPUBefore uint64    // CPU time that an attached target had used, ns
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
	c := &capture{opts: opts, stop: stop, stacks: newStacks(), seen: newSeenAddresses(), labels: map[threadKey]string{}}
	defer func() { err = errors.Join(err, c.close()) }()
	if err := c.prepare(); err != nil {
		return nil, err
	}
	reason, captureErr := c.follow()
	if c.target.child != nil && reason == eventlog.EndFailed {
		c.opts.Warn(fmt.Sprintf("%v; the program runs on unobserved", captureErr))
	}
	err = errors.Join(captureErr, c.finish(ctx, reason, captureErr))
	if reason != eventlog.EndInterrupted {
		c.sum.Status, c.sum.HaveStatus = c.target.ExitStatus(ctx)
	}
	return &c.sum, err
}

// prepare sets everything up to the point where the target may run.
func (c *capture) prepare() (err error) {
	if c.who, err = FindInvoker(c.opts.User); err != nil {
		return err
	}
	if err := checkRate(c.opts.Rate); err != nil {
		return err
	}
	if c.events, err = grantEvents(c.opts.Events, c.opts.Rate); err != nil {
		return err
	}
	for _, g := range c.events {
		if g.def.Fallback != "" {
			c.opts.Warn(fmt.Sprintf("%s is sampled in place of %s: %s", g.def.Granted, g.def.Requested, g.def.Fallback))
		}
	}
	if c.opts.PID != 0 {
		if c.target, err = attach(c.opts.PID); err != nil {
			return err
		}
		if err := mayTrace(c.target.PID, c.who); err != nil {
			return err
		}
	} else if c.target, err = start(c.opts.Program, c.who); err != nil {
		return err
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
	c.targetCPUBefore, _ = cpuTime(c.target.PID)
	for _, s := range c.sampled {
		if err := s.Enable(); err != nil {
			return err
		}
	}
	c.begun = time.Now()
	if c.target.child != nil {
		c.unpass = c.target.passSignals()
	}
	return c.target.Run()
}

// UnsupportedError is a kernel that lacks something that cannot be done without.
type UnsupportedError struct {
	What string
	Help string
	Err  error
}

func (e *UnsupportedError) Error() string { return fmt.Sprintf("%s: %v; %s", e.What, e.Err, e.Help) }
func (e *UnsupportedError) Unwrap() error { return e.Err }

func (c *capture) loadSampler() error {
	if err := rlimit.RemoveMemlock(); err != nil {
		return fmt.Errorf("raise the limit on locked memory: %w", err)
	}
	if err := raiseFileLimit(); err != nil {
		return err
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return fmt.Errorf("count CPUs: %w", err)
	}
	c.ringFull = make([]uint64, cpus)
	namespace, err := ownPIDNamespace()
	if err != nil {
		return err
	}
	c.sampler, err = bpf.Load(bpf.Config{
		MaxFrames:    c.opts.MaxFrames,
		KernelStacks: c.opts.KernelStacks,
		CPUs:         cpus,
		RingBytes:    ringBytes(cpus),
		UnwindRows:   unwindRowsFor(c.target.programSize()),
		PIDNamespace: namespace,
	})
	if err != nil {
		return explainBPF(err)
	}
	// Costs two reads of the clock a sample; without it the run time of
	// the walker is not known.
	if stats, err := ebpf.EnableStats(unix.BPF_STATS_RUN_TIME); err == nil {
		c.statsOn = stats.Close
	}
	for i := range c.events {
		prog, err := c.sampler.Program(i)
		if err != nil {
			return explainBPF(err)
		}
		c.events[i].program = prog
	}
	if c.samples, err = perf.NewSamples(c.sampler.Ring()); err != nil {
		return err
	}
	return nil
}

// explainBPF adds what helps to the kernel's refusal.
func explainBPF(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES) && os.Geteuid() != 0:
		return &UnsupportedError{"permission denied", "run it as root (sudo), or with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE", err}
	case errors.Is(err, unix.ENOSYS):
		return &UnsupportedError{"the kernel is built without BPF", "a kernel with CONFIG_BPF_SYSCALL is needed", err}
	}
	if _, statErr := os.Stat("/sys/kernel/btf/vmlinux"); statErr != nil {
		return &UnsupportedError{"the kernel tells no types (BTF)", "a kernel with CONFIG_DEBUG_INFO_BTF is needed", err}
	}
	return &UnsupportedError{"the kernel refused the stack walker", "Linux 5.17 or newer is needed; ccagent doctor tells more", err}
}

// ringBytes scales the ring buffer with the CPUs that fill it.
func ringBytes(cpus int) int {
	size := 4 << 20
	for size < cpus<<20 && size < 64<<20 {
		size <<= 1
	}
	return size
}

// raiseFileLimit allows as many events as there may be threads and CPUs.
func raiseFileLimit() error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("read the limit on open files: %w", err)
	}
	l.Cur = l.Max
	if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
		return fmt.Errorf("raise the limit on open files: %w", err)
	}
	return nil
}

// ownPIDNamespace is nil in the initial pid namespace.
func ownPIDNamespace() (*bpf.PIDNamespace, error) {
	const initialInode = 0xeffffffc // include/linux/proc_ns.h
	var st unix.Stat_t
	if err := unix.Stat("/proc/self/ns/pid", &st); err != nil {
		return nil, fmt.Errorf("read own pid namespace: %w; /proc must be mounted", err)
	}
	if st.Ino == initialInode {
		return nil, nil
	}
	return &bpf.PIDNamespace{Dev: st.Dev, Ino: st.Ino}, nil
}

// createLog creates the log and writes what is known before the first sample.
func (c *capture) createLog() error {
	path := c.opts.Output
	if path == "" {
		name := c.target.Path
		if len(c.target.Args) > 0 {
			name = c.target.Args[0]
		}
		path = defaultLogName(name, c.target.PID)
	}
	var err error
	if c.file, err = createLog(path, c.who); err != nil {
		return err
	}
	c.sum.Log = path
	c.start = monotonic()
	c.log = eventlog.NewWriter(c.file, nil)
	c.processes = newProcesses(c.sampler, c.emit, c.opts.Warn)
	return nil
}

// openEvents opens the side band and the sampled events, and takes in the
// target as it is now.
func (c *capture) openEvents() error {
	pid := c.target.PID
	cpus, err := onlineCPUs()
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
	if len(c.sampled) == 0 {
		return fmt.Errorf("attach: process %d creates threads faster than they can be followed; try again", pid)
	}
	if err := c.writeHead(); err != nil {
		return err
	}
	im, err := c.processes.discover(uint32(pid), readComm(pid), c.target.Path)
	if err != nil {
		return err
	}
	return c.describe(im)
}

func (c *capture) openOn(tids, cpus []int) error {
	sideBand, err := perf.OpenSideBand(tids, cpus)
	if err != nil && !errors.Is(err, perf.ErrTooManyThreads) {
		return err
	}
	c.sideBand = sideBand
	for _, g := range c.events {
		s, err := perf.Open(g.event, g.rate, g.program, tids)
		if err != nil {
			return err
		}
		c.sampled = append(c.sampled, s)
	}
	return nil
}

func (c *capture) closeEvents() error {
	var err error
	for _, s := range c.sampled {
		err = errors.Join(err, s.Close())
	}
	c.sampled = nil
	if c.sideBand != nil {
		err = errors.Join(err, c.sideBand.Close())
		c.sideBand = nil
	}
	return err
}

// writeHead writes the standard events that other tools look for, and the
// definitions of the sampled events.
func (c *capture) writeHead() error {
	const capset = 0
	pid := uint32(c.target.PID)
	wall := time.Now().UnixNano() - int64(monotonic()-c.start)
	args := c.target.Args
	if len(args) == 0 {
		args = []string{c.target.Path}
	}
	head := []eventlog.Event{
		&eventlog.CapsetCreate{Capset: capset, Type: eventlog.CapsetOSProcess},
		&eventlog.OSProcessPID{Capset: capset, PID: pid},
		&eventlog.WallClock{Capset: capset, Sec: uint64(wall / 1e9), Nsec: uint32(wall % 1e9)},
		&eventlog.ProgramArgs{Capset: capset, Args: args},
	}
	for _, e := range head {
		if err := c.emit(c.start, e); err != nil {
			return err
		}
	}
	c.sum.Events = c.sum.Events[:0]
	for i := range c.events {
		d := &c.events[i].def
		if err := c.emit(c.start, d); err != nil {
			return err
		}
		c.sum.Events = append(c.sum.Events, EventSummary{Requested: d.Requested, Granted: d.Granted, Fallback: d.Fallback, Unit: d.Unit})
	}
	return nil
}

// describe writes the Capture event and warns about what will be missing.
func (c *capture) describe(im *image) error {
	wall := time.Now().UnixNano() - int64(monotonic()-c.start)
	e := &eventlog.Capture{
		AgentVersion: c.opts.AgentVersion,
		StartUnixNs:  uint64(wall),
		PID:          uint32(c.target.PID),
		UID:          c.who.UID,
		Program:      c.target.Path,
		Args:         c.target.Args,
		Kernel:       release(),
		Arch:         runtime.GOARCH,
		CPUModel:     cpuModel(),
		CPUs:         uint32(runtime.NumCPU()),
	}
	if c.target.child == nil {
		e.Mode = eventlog.CaptureAttach
	}
	if im.exe != nil {
		b := im.exe.binary
		if im.rts != nil {
			b = im.rts.binary
		}
		e.GHCVersion, e.Way = b.GHCVersion, b.Way
		if im.rts != nil {
			e.LayoutAssumed, _ = im.deriveLayout()
		}
		c.warnAboutBinary(im, e.LayoutAssumed)
	}
	return c.emit(c.start, e)
}

func (c *capture) warnAboutBinary(im *image, assumed bool) {
	exe := &im.exe.binary
	switch {
	case im.exe.why != nil:
		c.opts.Warn(fmt.Sprintf("%v; its code will have no names", im.exe.why))
	case !exe.GHC && im.rts == nil:
		c.opts.Warn(fmt.Sprintf("%s is not a Haskell program compiled by GHC: only its C code is sampled", im.exe.path))
	case assumed:
		c.opts.Warn(fmt.Sprintf("GHC version %q is not one that is known: its stacks are walked by the newest known layout", exe.GHCVersion))
	}
	switch {
	case !exe.GHC:
	case !exe.HasSymtab:
		c.opts.Warn(fmt.Sprintf("%s is stripped: code without debug information will have no names; install it unstripped (cabal: --disable-executable-stripping)", im.exe.path))
	case !exe.HasNotes:
		c.opts.Warn(fmt.Sprintf("%s has no source notes: names will be those of compiled code; build it with ghc -g3 (ccagent doctor %s tells how)", im.exe.path, im.exe.path))
	}
}

// emit writes one of our events; time is CLOCK_MONOTONIC or now.
func (c *capture) emit(time uint64, e eventlog.Event) error {
	if time == now {
		time = monotonic()
	}
	// What happened before the log's time 0 is written as of 0.
	return c.log.Write(max(time, c.start)-c.start, eventlog.NoCap, e)
}

// follow captures until something ends it.
func (c *capture) follow() (eventlog.EndReason, error) {
	flushed := c.begun
	for {
		ended, err := c.target.EndedWithin(pollInterval)
		if err != nil {
			return eventlog.EndFailed, err
		}
		if err := c.drain(); err != nil {
			return eventlog.EndFailed, fmt.Errorf("capture: %w", err)
		}
		if t := time.Now(); t.Sub(flushed) >= flushInterval {
			flushed = t
			if err := c.account(); err != nil {
				return eventlog.EndFailed, fmt.Errorf("write log: %w", err)
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

// drain takes everything that has arrived.
func (c *capture) drain() error {
	for {
		more, err := c.drainBatch()
		if err != nil || !more {
			return err
		}
	}
}

// batchSize bounds the samples that are held at once to be merged with changes.
const batchSize = 2048

// drainBatch merges samples with changes by time. Samples are read first, so
// that every change that precedes one of them is there to be merged.
func (c *capture) drainBatch() (more bool, err error) {
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
	c.changes = c.changes[:0]
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
			if err := c.processes.apply(c.changes[next]); err != nil {
				return false, err
			}
			next++
		}
		if err := c.sample(s); err != nil {
			return false, err
		}
	}
	for ; next < len(c.changes); next++ {
		if err := c.processes.apply(c.changes[next]); err != nil {
			return false, err
		}
	}
	return n == batchSize, nil
}

// sample writes one sample, after the stack nodes that it needs; or the label
// of a thread that was sampled.
func (c *capture) sample(s *perf.Sample) error {
	if s.Record == bpf.RecordLabel {
		return c.label(s)
	}
	im := c.processes.images[s.Pid]
	if im == nil {
		// Its fork or exec has not been told, or was lost.
		var err error
		if im, err = c.processes.discover(s.Pid, readComm(int(s.Pid)), readExe(s.Pid)); err != nil {
			return err
		}
	}
	node, err := c.stacks.intern(im, s.Frames,
		func(addr uint64) (uint32, uint64, error) { return c.processes.locate(im, s.Time, addr) },
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
	return c.emit(s.Time, &eventlog.Sample{
		Event: uint32(s.Event), CPU: s.Cpu, PID: s.Pid, TID: s.Tid,
		Capability: uint32(s.Capability), TSO: s.Tso, Weight: s.Period, Node: node,
		Stop: eventlog.StopReason(s.Stop), Flags: eventlog.SampleFlags(s.Flags),
		SkippedWords: s.SkippedWords, FoldedFrames: s.FoldedFrames,
	})
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
	return c.emit(now, &eventlog.ThreadLabel{Thread: uint32(s.Tso), Label: s.Label})
}

// countSample keeps the summary's counts.
func (c *capture) countSample(im *image, s *perf.Sample) error {
	if int(s.Event) >= len(c.sum.Events) {
		return fmt.Errorf("sample of unknown event %d", s.Event)
	}
	e := &c.sum.Events[s.Event]
	e.Samples++
	e.Weight += s.Period
	c.sum.Samples++
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
	if im.rts != nil {
		c.sum.Haskell = true
	}
	if leaf, ok := leafAddress(s.Frames); ok {
		module, addr, _ := im.resolve(leaf)
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
	stats, err := c.sampler.Stats()
	if err != nil {
		return err
	}
	for cpu, s := range stats {
		if lost := s.RingFull - c.ringFull[cpu]; lost > 0 {
			c.ringFull[cpu] = s.RingFull
			c.sum.Lost += lost
			if err := c.emit(now, &eventlog.Loss{CPU: uint32(cpu), Reason: eventlog.LossRingFull, Count: lost}); err != nil {
				return err
			}
		}
	}
	if bad := c.samples.Undecodable; bad > c.undecodable {
		if err := c.emit(now, &eventlog.Loss{Reason: eventlog.LossDecode, Count: bad - c.undecodable}); err != nil {
			return err
		}
		c.sum.Lost += bad - c.undecodable
		c.undecodable = bad
	}
	cost, err := c.measureCost()
	if err != nil {
		return err
	}
	if err := c.emit(now, cost); err != nil {
		return err
	}
	return c.log.Flush()
}
