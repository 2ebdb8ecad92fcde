package agent

import (
	"errors"
	"fmt"
	"os"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sync/errgroup"
	"golang.org/x/sys/unix"

	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/source"
	"ccagent/bpf"
	"ccagent/perf"
)

// UnsupportedError reports that the kernel lacks a feature that captures need.
type UnsupportedError struct {
	What string
	Help string
	Err  error
}

func (e *UnsupportedError) Error() string { return fmt.Sprintf("%s: %v; %s", e.What, e.Err, e.Help) }
func (e *UnsupportedError) Unwrap() error { return e.Err }

// load loads the stack walker and all programs of sources, in parallel: verifying them takes
// most of the start of a capture.
func (c *capture) load() error {
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
	namespace, err := bpf.OwnPIDNamespace()
	if err != nil {
		return err
	}
	plan, err := c.planMemory()
	if err != nil {
		return err
	}
	c.walker, err = bpf.Load(bpf.Config{
		MaxFrames:    c.opts.MaxFrames,
		KernelStacks: c.opts.KernelStacks,
		CPUs:         cpus,
		RingBytes:    ringBytes(cpus),
		UnwindRows:   plan.rows,
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
	c.makeSources()
	var loads errgroup.Group
	if plan.tight {
		loads.SetLimit(1) // the kernel takes tens of megabytes to verify one
	}
	for _, s := range c.sources.All {
		loads.Go(s.Load)
	}
	if err := loads.Wait(); err != nil {
		return explainBPF(err)
	}
	c.records, err = perf.NewSamples(c.walker.Ring())
	return err
}

// makeSources makes the sources and their Host.
func (c *capture) makeSources() {
	c.host = &source.Host{
		Walker: c.walker, Log: c.log, Budget: overhead.NewBudget(c.opts.MaxOverhead),
		Timed: c.statsOn != nil, Walks: &c.meter.walks,
		Image: c.image, Code: func(module uint32, addr uint64) { c.names.seen.addCode(module, addr) },
		Write: c.write, Place: c.place, WriteAt: c.writeAt, WriteKnown: c.writeKnown,
		Threads: c.threads, Drain: c.drain, TargetCPU: c.meter.targetCPU,
	}
	c.host.Budget.KeepRates = c.opts.KeepRate
	c.sources = c.asked.Sources(c.host)
	watchers := make([]process.Watcher, len(c.sources.All))
	for i, s := range c.sources.All {
		watchers[i] = s
	}
	c.processes = process.New(c.walker, c.log, c.who, watchers...)
	c.host.Processes = c.processes
	c.routes = routesTo(c.sources)
	c.meter.open(c.host, c.sources.All)
	c.names = newNames(&c.opts, c.who, c.owner, c.log, c.processes)
	c.host.Budget.Costs.Calibrate()
}

// explainDescriptors adds what helps where too many files are open.
func explainDescriptors(err error) error {
	explained := (*UnsupportedError)(nil)
	if !errors.Is(err, unix.EMFILE) || errors.As(err, &explained) {
		return err
	}
	var l unix.Rlimit
	limit := "too low"
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) == nil {
		limit = fmt.Sprint(l.Cur)
	}
	return &UnsupportedError{"the limit on open files is " + limit, "raise it (ulimit -n 1024; more for programs of many threads)", unix.EMFILE}
}

// explainBPF adds what helps to the kernel's refusal.
func explainBPF(err error) error {
	switch {
	case errors.Is(err, unix.EMFILE):
		return explainDescriptors(err)
	case errors.Is(err, bpf.ErrNoJIT):
		return &UnsupportedError{"the stack walker cannot run", bpf.JITHelp, err}
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES) && os.Geteuid() != 0:
		return &UnsupportedError{"permission denied", "run it as root (sudo), or with CAP_BPF, CAP_PERFMON and CAP_SYS_PTRACE", err}
	case errors.Is(err, unix.ENOSYS):
		return &UnsupportedError{"the kernel is built without BPF", "a kernel with CONFIG_BPF_SYSCALL is needed", err}
	}
	if _, statErr := os.Stat("/sys/kernel/btf/vmlinux"); statErr != nil {
		return &UnsupportedError{"the kernel has no type information (BTF)", "a kernel with CONFIG_DEBUG_INFO_BTF is needed", err}
	}
	return &UnsupportedError{"the kernel refused the stack walker", "Linux 5.17 or newer is needed; see ccagent doctor", err}
}

// ringBytes scales the ring buffer with the CPUs that fill it.
func ringBytes(cpus int) int {
	size := 4 << 20
	for size < cpus<<20 && size < 64<<20 {
		size <<= 1
	}
	return size
}

// leastFiles is about what loading the walker opens. With fewer, the checks of what the
// kernel supports fail as well, and would blame the kernel.
const leastFiles = 128

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
	if l.Cur < leastFiles {
		return explainDescriptors(unix.EMFILE)
	}
	return nil
}
