package doctor

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strings"

	"ccagent/agent/process"
	"ccagent/bpf"
	"ccagent/internal/capset"
	"ccagent/internal/restriction"
	"ccagent/perf"

	"golang.org/x/sys/unix"
)

// Machine checks the kernel and the caller's privileges.
func Machine() []Check {
	return []Check{kernel(), privileges(), typeInformation(), walker(), clock(), counters(), rate(), probes(), groups()}
}

func kernel() Check {
	c := Check{Name: "kernel", Status: OK}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return Check{Name: "kernel", Status: Failed, Detail: err.Error(), Fix: "run it on Linux"}
	}
	release := unix.ByteSliceToString(u.Release[:])
	c.Detail = fmt.Sprintf("Linux %s on %s", release, runtime.GOARCH)
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err == nil && (major < 5 || major == 5 && minor < 17) {
		c.Status, c.Fix = Failed, "the stack walker needs bpf_loop: Linux 5.17 or newer"
	}
	return c
}

func privileges() Check {
	c := Check{Name: "privileges", Status: OK, Detail: "root"}
	sets, err := capset.Get()
	if err != nil {
		return Check{Name: c.Name, Status: Warning, Detail: "cannot read own capabilities: " + err.Error(), Fix: "run it as root (sudo)"}
	}
	if os.Geteuid() != 0 {
		c.Detail = "not root, but with the capabilities that are needed"
	}
	for _, w := range restriction.Capabilities {
		if !sets.Effective(w.Bit) {
			c.Status = Failed
			c.Detail = fmt.Sprintf("%s is missing (%s)", w.Name, w.Why)
			c.Fix = "run it as root (sudo), or: setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep ccagent"
			if _, help := restriction.Why(unix.EPERM); help != "" {
				c.Fix = help
			}
			break
		}
	}
	return c
}

func typeInformation() Check {
	c := Check{Name: "BTF", Status: OK, Detail: "/sys/kernel/btf/vmlinux is there"}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		c.Status, c.Detail, c.Fix = Failed, "the kernel has no type information", "use a kernel built with CONFIG_DEBUG_INFO_BTF (every current distribution's is)"
	}
	return c
}

// walker loads the real program: the verifier has the last word.
func walker() Check {
	c := Check{Name: "BPF", Status: OK, Detail: "the kernel takes the stack walker"}
	err := loadWalker()
	reason, help := restriction.Why(err)
	switch {
	case err == nil:
	case reason != "":
		c.Status, c.Detail, c.Fix = Failed, reason, help
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES) && os.Geteuid() != 0:
		c.Status, c.Detail, c.Fix = Failed, "permission denied", "run it as root (sudo), or with CAP_BPF and CAP_PERFMON"
	case errors.Is(err, bpf.ErrNoJIT):
		c.Status, c.Detail, c.Fix = Failed, err.Error(), bpf.JITHelp
	case errors.Is(err, unix.ENOSYS):
		c.Status, c.Detail, c.Fix = Failed, "the kernel is built without BPF", "use a kernel with CONFIG_BPF_SYSCALL"
	case typeInformation().Status != OK:
		c.Status, c.Detail, c.Fix = Failed, "the stack walker needs the kernel's type information", typeInformation().Fix
	default:
		c.Status, c.Detail, c.Fix = Failed, err.Error(), "report this with the kernel's release; Linux 5.17 or newer should take it"
	}
	return c
}

func loadWalker() error {
	s, err := bpf.Load(bpf.Config{MaxFrames: 16, CPUs: 1, RingBytes: 4096 * 4, UnwindRows: 1})
	if err != nil {
		return err
	}
	defer s.Close()
	_, err = s.EventProgram(0)
	return err
}

func clock() Check {
	c := Check{Name: "CPU clock", Status: OK, Detail: perf.ClockEvent + " can be sampled"}
	e, err := perf.Lookup(perf.ClockEvent)
	if err == nil {
		err = perf.Probe(e)
	}
	if err != nil {
		c.Status, c.Detail, c.Fix = Failed, err.Error(), "run it as root, or lower kernel.perf_event_paranoid"
		var why *perf.UnavailableError
		if errors.As(err, &why) && why.Help != "" {
			c.Detail, c.Fix = why.Reason, why.Help
		}
	}
	return c
}

func counters() Check {
	c := Check{Name: "PMU", Status: OK, Detail: "the CPU's counters can be sampled"}
	if may := clock(); may.Status != OK {
		return Check{Name: c.Name, Status: Warning, Detail: "not known: no event can be opened", Fix: may.Fix}
	}
	if !perf.HasPMU() {
		c.Status = Warning
		c.Detail = "no hardware counters: cycles falls back to " + perf.ClockEvent + ", cache and branch events are missing"
		c.Fix = "on a virtual machine enable the virtual PMU in the hypervisor (libvirt: <cpu mode='host-passthrough'/>); else use the hardware itself"
	}
	return c
}

func rate() Check {
	limit, ok := perf.MaxRate()
	c := Check{Name: "sampling rate", Status: OK, Detail: fmt.Sprintf("up to %d Hz", limit)}
	if !ok {
		c.Status, c.Detail, c.Fix = Warning, "the kernel's limit cannot be read", "mount /proc"
	} else if limit < 997 {
		c.Status, c.Fix = Warning, "sysctl kernel.perf_event_max_sample_rate=10000; the kernel lowers it when interrupts take long"
	}
	return c
}

// probes are what all events of the run-time system need, and what is sampled by clocks and counters does not.
func probes() Check {
	c := Check{Name: "probes", Status: OK, Detail: "the kernel can put probes into programs"}
	if reason, help := process.WhyNoProbes(); reason != "" {
		c.Status, c.Fix = Warning, help
		c.Detail = reason + ": events of the run-time system are missing, such as alloc, gc, threads and heap"
	}
	return c
}

// groups checks which version of control groups the kernel has: the daemon finds units and containers by their paths.
func groups() Check {
	text, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return Check{
			Name: "control groups", Status: Warning, Detail: "the kernel has none: the daemon names no units and no containers",
			Fix: "use a kernel with CONFIG_CGROUPS; or select processes by executable, user or service",
		}
	}
	return groupsOf(string(text))
}

// groupsOf judges what /proc/PID/cgroup shows of any process: a line for each hierarchy (cgroups(7)).
func groupsOf(text string) Check {
	c := Check{Name: "control groups", Status: OK, Detail: "version 2"}
	first, systemd := false, false
	for line := range strings.Lines(text) {
		if hierarchy, rest, ok := strings.Cut(line, ":"); ok && hierarchy != "0" {
			first = true
			systemd = systemd || strings.HasPrefix(rest, "name=systemd:")
		}
	}
	switch {
	case !first:
	case systemd:
		c.Status, c.Detail = Warning, "version 1: of its several hierarchies the daemon reads a process's unit in systemd's, and its container in any"
		c.Fix = "nothing, if its rules select by unit or container; for one path to each process, boot with systemd.unified_cgroup_hierarchy=1"
	default:
		c.Status, c.Detail = Warning, "version 1, without systemd's hierarchy: the daemon names no units"
		c.Fix = "select processes by executable, user or service; or boot with systemd.unified_cgroup_hierarchy=1"
	}
	return c
}
