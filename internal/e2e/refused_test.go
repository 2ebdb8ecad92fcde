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

	"ccagent/internal/testprog"

	"golang.org/x/sys/unix"
)

// refuse is set to make this test's own program, started again, execute the command that
// follows with probes refused by a filter.
const refuse = "CCAGENT_TEST_REFUSE"

func init() {
	how := os.Getenv(refuse)
	if how == "" {
		return
	}
	os.Unsetenv(refuse)
	runtime.LockOSThread()
	err := forbidLinks(how == "all")
	if err == nil {
		err = syscall.Exec(os.Args[1], os.Args[1:], os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(125)
}

// forbidLinks sets a seccomp filter that forbids BPF links, as a container's may, and
// optionally also the older way of attaching.
func forbidLinks(all bool) error {
	const (
		linkCreate = 28 // BPF_LINK_CREATE
		allow      = unix.SECCOMP_RET_ALLOW
		deny       = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	)
	load := func(offset uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offset}
	}
	equals := func(k uint32, otherwise uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, Jf: otherwise, K: k}
	}
	give := func(what uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: what} }
	// Offsets in struct seccomp_data.
	const number, first, second = 0, 16, 24
	filter := []unix.SockFilter{load(number), equals(unix.SYS_BPF, 3), load(first), equals(linkCreate, 1), give(deny)}
	if all {
		filter = append(filter, load(number), equals(unix.SYS_IOCTL, 3), load(second), equals(unix.PERF_EVENT_IOC_SET_BPF, 1), give(deny))
	}
	filter = append(filter, give(allow))
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if err := unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&prog)), 0, 0); err != nil {
		return fmt.Errorf("set the filter: %w", err)
	}
	return nil
}

// If the kernel refuses probes, each event that needs them is reported as not available,
// with the remedy, and the other events are recorded; if no event is left, that is an error.
func TestProbesRefused(t *testing.T) {
	testprog.NeedRoot(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	exe := testprog.Build(t, "maps", testprog.Options{})
	log := filepath.Join(t.TempDir(), "run.eventlog")
	refused := func(how, events string) *exec.Cmd {
		cmd := command(t, self, ccagent, "record", "-e", events, "-o", log, "--", exe, "20000", "4")
		cmd.Env = append(os.Environ(), refuse+"="+how)
		return cmd
	}
	r := run(t, refused("links", "cpu-clock,alloc,gc,threads"))
	if r.status != 0 {
		t.Fatalf("status %d\n%s", r.status, r.stderr)
	}
	wantLine(t, r.stderr, "gc, threads", "not available", "seccomp", "the other events go on")
	if s := readStory(t, log); s.probes["gc"].Problem == "" || s.probes["threads"].Problem == "" {
		t.Errorf("the log says nothing of it: %+v", s.probes)
	}
	// Probes without cookies can be attached in the older way.
	if l := readLog(t, log); len(l.samples) == 0 || len(l.allocations) == 0 {
		t.Errorf("%d samples, %d of allocation", len(l.samples), len(l.allocations))
	}
	for _, alone := range []string{"alloc", "gc", "threads"} {
		if r := run(t, refused("all", alone)); r.status != 125 {
			t.Errorf("%s alone: status %d\n%s", alone, r.status, r.stderr)
		} else {
			wantLine(t, r.stderr, alone, "not available", "seccomp")
		}
	}
}
