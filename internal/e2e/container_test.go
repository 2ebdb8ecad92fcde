package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"ccagent/internal/capset"
	"ccagent/internal/testprog"
)

// contained is set to make this test's own program, started again, execute the command that follows as root of a
// container may: with "filter" behind a filter that forbids bpf and perf_event_open, with "capabilities" with those that Docker
// leaves.
const contained = "CCAGENT_TEST_CONTAINED"

func init() {
	how := os.Getenv(contained)
	if how == "" {
		return
	}
	os.Unsetenv(contained)
	runtime.LockOSThread()
	var err error
	if how == "filter" {
		err = forbidMeasuring()
	} else {
		err = capset.Bound(unix.CAP_CHOWN, unix.CAP_DAC_OVERRIDE, unix.CAP_FSETID, unix.CAP_FOWNER, unix.CAP_MKNOD, unix.CAP_NET_RAW, unix.CAP_SETGID,
			unix.CAP_SETUID, unix.CAP_SETFCAP, unix.CAP_SETPCAP, unix.CAP_NET_BIND_SERVICE, unix.CAP_SYS_CHROOT, unix.CAP_KILL, unix.CAP_AUDIT_WRITE)
	}
	if err == nil {
		err = syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(125)
}

// forbidMeasuring sets a seccomp filter by which bpf and perf_event_open fail with EPERM, as by Docker's default profile.
func forbidMeasuring() error {
	jump := func(k uint32, otherwise uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: otherwise, K: k}
	}
	deny := unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)}
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS}, // the system call's number
		jump(unix.SYS_BPF, 1), deny, jump(unix.SYS_PERF_EVENT_OPEN, 1), deny,
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0); err != nil {
		return fmt.Errorf("set the filter: %w", err)
	}
	return nil
}

// In a container that forbids measuring, the reason is named with what helps, and the program is not run.
func TestInAContainer(t *testing.T) {
	testprog.NeedRoot(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for how, says := range map[string][]string{
		"filter":       {"a filter of system calls forbids it", "seccomp=unconfined"},
		"capabilities": {"root lacks CAP_BPF here", "--cap-add"},
	} {
		t.Run(how, func(t *testing.T) {
			inside := func(args ...string) *exec.Cmd {
				cmd := command(t, self, append([]string{ccagent}, args...)...)
				cmd.Env = append(os.Environ(), contained+"="+how)
				return cmd
			}
			log := filepath.Join(t.TempDir(), "run.eventlog")
			r := run(t, inside("record", "-e", "cpu-clock", "-o", log, "--", "/bin/echo", "ran"))
			if r.status != 125 || r.stdout != "" {
				t.Errorf("status %d, output %q", r.status, r.stdout)
			}
			wantLine(t, r.stderr, says...)
			r = run(t, inside("doctor"))
			if r.status != 1 {
				t.Errorf("doctor: status %d", r.status)
			}
			wantLine(t, r.stdout, "failed", "BPF", says[0])
			wantLine(t, r.stdout, says[1])
		})
	}
}

// A user who is not root reads in doctor's report which capability is missing, and the level of perf_event_paranoid if that
// forbids events.
func TestWithoutRights(t *testing.T) {
	testprog.NeedRoot(t)
	cmd := command(t, ccagent, "doctor")
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyID, Gid: nobodyID}}
	r := run(t, cmd)
	wantLine(t, r.stdout, "failed", "privileges", "CAP_BPF is missing")
	wantLine(t, r.stdout, "failed", "BPF", "permission denied")
	level, err := os.ReadFile("/proc/sys/kernel/perf_event_paranoid")
	if err != nil {
		t.Fatal(err)
	}
	if level[0] >= '3' { // Debian's own level, at which nothing is sampled
		wantLine(t, r.stdout, "failed", "CPU clock", "kernel.perf_event_paranoid is "+string(level[:1]))
	}
}
