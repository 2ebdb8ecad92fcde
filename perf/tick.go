package perf

import (
	"errors"
	"time"

	"ccagent/bpf"

	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// TickEvent is CPU time sampled at the kernel's tick.
const TickEvent = "tick"

// mostTicks is how many ticks a second are sampled at the most: on kernels that tick at 1000 Hz
// one in four, drawn at random.
const mostTicks = 250

// percpu is the section of per-CPU variables in the kernel's types.
const percpu = ".data..percpu"

// FindTick finds the kernel's tick. The error is an *UnavailableError if there is none that can be
// sampled.
//
// The tick is a timer in tick_cpu_sched, at a fixed distance from hrtimer_bases, on every CPU;
// what its handler is called differs between kernels.
func FindTick() (bpf.Tick, error) {
	var fine, coarse unix.Timespec
	// The coarse clock is set at ticks; the other is as fine as timers are.
	err := errors.Join(unix.ClockGetres(unix.CLOCK_MONOTONIC, &fine), unix.ClockGetres(unix.CLOCK_MONOTONIC_COARSE, &coarse))
	if err != nil {
		return noTick("the kernel does not say how long it is from tick to tick", "", err)
	}
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return noTick("the kernel has no type information (BTF)", "boot a kernel with CONFIG_DEBUG_INFO_BTF", err)
	}
	return findTick(kernel, time.Duration(fine.Nano()), time.Duration(coarse.Nano()))
}

// noTick explains why there is none.
func noTick(reason, help string, err error) (bpf.Tick, error) {
	const instead = "use " + ClockEvent
	if help != "" {
		help += ", or "
	}
	return bpf.Tick{}, &UnavailableError{Event: TickEvent, Reason: reason, Help: help + instead, Err: err}
}

// findTick finds the tick of a kernel by its types and by the resolutions of its clocks.
func findTick(kernel *btf.Spec, fine, coarse time.Duration) (t bpf.Tick, err error) {
	if fine >= coarse || coarse <= 0 {
		return noTick("the kernel has no high-resolution timers, so its tick is no timer", "boot without highres=off", nil)
	}
	t.Period, t.Share = coarse, uint32(max(time.Second/mostTicks/coarse, 1))
	var traced *btf.Typedef
	if err := kernel.TypeByName("btf_trace_hrtimer_expire_exit", &traced); err != nil {
		return noTick("the kernel has no tracepoint hrtimer_expire_exit", "boot a kernel with CONFIG_FTRACE", err)
	}
	base, err := perCPUVariable(kernel, "hrtimer_bases")
	tick, errTick := perCPUVariable(kernel, "tick_cpu_sched")
	regs, errRegs := perCPUVariable(kernel, "__irq_regs")
	var sched *btf.Struct
	if err := errors.Join(err, errTick, errRegs, kernel.TypeByName("tick_sched", &sched)); err != nil {
		return noTick("the kernel's type information does not say where its tick is", "", err)
	}
	for _, m := range sched.Members {
		if m.Name == "sched_timer" {
			t.Timer, t.Regs = tick+int64(m.Offset.Bytes())-base, regs-base
			return t, nil
		}
	}
	return noTick("the kernel's tick has no timer", "", nil)
}

// perCPUVariable is the place of a variable in the section of per-CPU variables.
func perCPUVariable(kernel *btf.Spec, name string) (int64, error) {
	var section *btf.Datasec
	if err := kernel.TypeByName(percpu, &section); err != nil {
		return 0, err
	}
	for _, v := range section.Vars {
		if is, ok := v.Type.(*btf.Var); ok && is.Name == name {
			return int64(v.Offset), nil
		}
	}
	return 0, errors.New("no per-CPU variable " + name)
}
