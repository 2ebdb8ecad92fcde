package engine

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"

	"ccagent/bpf"
	"ccagent/internal/restriction"
)

// UnsupportedError reports that the kernel lacks a feature that captures need.
type UnsupportedError struct {
	What string
	Help string
	Err  error
}

func (e *UnsupportedError) Error() string { return fmt.Sprintf("%s: %v; %s", e.What, e.Err, e.Help) }
func (e *UnsupportedError) Unwrap() error { return e.Err }

// ExplainDescriptors adds what helps where too many files are open.
func ExplainDescriptors(err error) error {
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
		return ExplainDescriptors(err)
	case errors.Is(err, bpf.ErrNoJIT):
		return &UnsupportedError{"the stack walker cannot run", bpf.JITHelp, err}
	}
	if reason, help := restriction.Why(err); reason != "" {
		return &UnsupportedError{reason, help, err}
	}
	switch {
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
		return ExplainDescriptors(unix.EMFILE)
	}
	return nil
}
