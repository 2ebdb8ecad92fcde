// Package restriction finds out what keeps a process from measuring that may measure by its user: capabilities that a
// container took from root, a filter of system calls, the kernel's lockdown.
package restriction

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"ccagent/internal/capset"
)

// Lockdown is how far the kernel is locked down: "integrity", "confidentiality", "none", or "" where that cannot be
// seen (kernel_lockdown(7)).
func Lockdown() string { return lockdown("/sys/kernel/security/lockdown") }

func lockdown(path string) string {
	text, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	// As in: none [integrity] confidentiality
	_, rest, _ := strings.Cut(string(text), "[")
	level, _, _ := strings.Cut(rest, "]")
	return level
}

// Filtered reports whether a seccomp filter decides which system calls this process may make.
func Filtered() bool {
	text, err := os.ReadFile("/proc/thread-self/status")
	return err == nil && strings.Contains(string(text), "\nSeccomp:\t2\n")
}

// Capability is a capability by which a process may measure others.
type Capability struct {
	Bit       int
	Name, Why string
}

// Capabilities are those that stand in for root.
var Capabilities = [...]Capability{
	{unix.CAP_BPF, "CAP_BPF", "to load the stack walker"},
	{unix.CAP_PERFMON, "CAP_PERFMON", "to open events and read the target's memory from BPF"},
	{unix.CAP_SYS_PTRACE, "CAP_SYS_PTRACE", "to see what other users' processes map"},
}

// Why gives the reason for which the kernel refused this process, by an error, what its user could do, and what helps; both are
// empty where there is no such reason. A filter of system calls is one only of an error that filters give: many services have
// a filter that lets them do all that they need.
func Why(refused error) (reason, help string) {
	sets, err := capset.Get()
	if err != nil {
		return "", ""
	}
	for _, c := range Capabilities {
		switch has := sets.Effective(c.Bit); {
		case !has && os.Geteuid() == 0:
			return fmt.Sprintf("root lacks %s here (in a container?)", c.Name),
				"run ccagent on the host, or give the container the capabilities BPF, PERFMON and SYS_PTRACE (docker run --cap-add) and the host's processes (--pid host)"
		case !has:
			return "", ""
		}
	}
	switch {
	case Lockdown() == "confidentiality":
		return "the kernel is locked down for confidentiality: no BPF program may read its memory",
			"boot without lockdown=confidentiality; lockdown=integrity, as with secure boot, is no hindrance"
	case (errors.Is(refused, unix.EPERM) || errors.Is(refused, unix.EACCES)) && Filtered():
		return "a filter of system calls forbids it (of a container?)",
			"run ccagent on the host, or the container without the filter (docker run --security-opt seccomp=unconfined; Kubernetes: seccompProfile: {type: Unconfined})"
	}
	return "", ""
}
