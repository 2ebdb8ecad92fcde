package agent

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"ccagent/agent/process"
	"ccagent/agent/uprobe"
	"ccagent/bpf"
	"ccagent/perf"
)

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
	namespace, err := ownPIDNamespace()
	if err != nil {
		return err
	}
	c.sampler, err = bpf.Load(bpf.Config{
		MaxFrames:    c.opts.MaxFrames,
		KernelStacks: c.opts.KernelStacks,
		CPUs:         cpus,
		RingBytes:    ringBytes(cpus),
		MultiLinks:   c.asksFor(AllocEvent) && uprobe.Multi(),
		UnwindRows:   process.UnwindRows(c.target.CodeSize()),
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
	c.budget = newBudget(c.opts.MaxOverhead)
	c.budget.calibrate(c.asksFor(AllocEvent), c.interrupts())
	if err := c.loadPrograms(); err != nil {
		return explainBPF(err)
	}
	if c.samples, err = perf.NewSamples(c.sampler.Ring()); err != nil {
		return err
	}
	return nil
}

// loadPrograms loads what each event runs. The kernel verifies programs side by
// side, which is most of what the start of a capture takes.
func (c *capture) loadPrograms() error {
	errs := make([]error, len(c.events))
	var loads sync.WaitGroup
	for i := range c.events {
		loads.Go(func() {
			switch e := &c.events[i]; e.def.Requested {
			case AllocEvent:
				c.allocPrograms, errs[i] = c.sampler.AllocationPrograms(i)
			case OffCPUEvent:
				e.program, errs[i] = c.sampler.SwitchProgram(i)
			default:
				e.program, errs[i] = c.sampler.EventProgram(i)
			}
		})
	}
	loads.Wait()
	return errors.Join(errs...)
}

// explainBPF adds what helps to the kernel's refusal.
func explainBPF(err error) error {
	switch {
	case errors.Is(err, bpf.ErrNoJIT):
		return &UnsupportedError{"the stack walker cannot run", bpf.JITHelp, err}
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
