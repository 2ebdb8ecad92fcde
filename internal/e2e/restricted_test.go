package e2e

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"ccagent/internal/capset"
)

// restrictedEnv names, by its key in restrictions, what is taken from a process of this test's own program. The program, started again,
// gives it up and executes the command that follows.
const restrictedEnv = "CCAGENT_TEST_RESTRICTED"

var restrictions = map[string]func() error{
	// As Docker's default profile forbids measuring.
	"bpf and events": func() error {
		return forbid(systemCall(unix.SYS_BPF), systemCall(unix.SYS_PERF_EVENT_OPEN))
	},
	// As a container's filter may forbid probes; they can still be attached in the older way.
	"links": func() error { return forbid(createLink) },
	"links and attaching by ioctl": func() error {
		return forbid(createLink, systemCall(unix.SYS_IOCTL, argument{1, unix.PERF_EVENT_IOC_SET_BPF}))
	},
	// What Docker leaves to a container's root.
	"capabilities": func() error {
		return capset.Bound(unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FSETID, unix.CAP_FOWNER, unix.CAP_MKNOD, unix.CAP_NET_RAW, unix.CAP_SETGID,
			unix.CAP_SETUID, unix.CAP_SETFCAP, unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_CHROOT, unix.CAP_KILL, unix.CAP_AUDIT_WRITE)
	},
	// What the service leaves to the daemon, which is of the group that may ask.
	"all but the unit's capabilities": func() error {
		return errors.Join(syscall.Setgroups([]int{nobodyID}), capset.Bound(slices.Collect(maps.Values(unitCapabilities))...), unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
	},
}

// unitCapabilities are those that the service has.
var unitCapabilities = map[string]int{
	"CAP_BPF": unix.CAP_BPF, "CAP_PERFMON": unix.CAP_PERFMON, "CAP_SYS_PTRACE": unix.CAP_SYS_PTRACE, "CAP_DAC_READ_SEARCH": unix.CAP_DAC_READ_SEARCH,
	"CAP_CHECKPOINT_RESTORE": unix.CAP_CHECKPOINT_RESTORE, "CAP_SETUID": unix.CAP_SETUID, "CAP_SETGID": unix.CAP_SETGID, "CAP_KILL": unix.CAP_KILL,
}

func init() {
	how := os.Getenv(restrictedEnv)
	if how == "" {
		return
	}
	os.Unsetenv(restrictedEnv)
	runtime.LockOSThread()
	err := restrictions[how]()
	if err == nil {
		err = syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(125)
}

// restricted gives the command without what restrictions[how] takes.
func restricted(t *testing.T, how string, args ...string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := command(t, self, args...)
	cmd.Env = append(os.Environ(), restrictedEnv+"="+how)
	return cmd
}

// argument is the value of a system call's argument, counted from 0. Its lower half is compared.
type argument struct{ index, value uint32 }

var createLink = systemCall(unix.SYS_BPF, argument{0, 28}) // BPF_LINK_CREATE

// systemCall gives the instructions of a seccomp filter that let the system call with these arguments fail with EPERM.
func systemCall(number uint32, args ...argument) []unix.SockFilter {
	const numberAt, argsAt = 0, 16 // in struct seccomp_data
	rule := []unix.SockFilter{{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}}
	only := func(at, value uint32) {
		rule = append([]unix.SockFilter{
			{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at},
			{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: uint8(len(rule)), K: value},
		}, rule...)
	}
	for _, a := range slices.Backward(args) {
		only(argsAt+8*a.index, a.value)
	}
	only(numberAt, number)
	return rule
}

// forbid sets a seccomp filter of these rules for the process.
func forbid(rules ...[]unix.SockFilter) error {
	filter := append(slices.Concat(rules...), unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW})
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0); err != nil {
		return fmt.Errorf("set the filter: %w", err)
	}
	return nil
}
