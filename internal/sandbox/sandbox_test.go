package sandbox

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"ccagent/internal/testprog"

	"golang.org/x/sys/unix"
)

// Environment variables that make the test binary run as one of the tests' other processes.
const (
	parentVariable   = "SANDBOX_TEST_PARENT"    // starts a child, which holds a secret
	noFilterVariable = "SANDBOX_TEST_NO_FILTER" // starts a child where the kernel has no seccomp(2)
	attackerVariable = "SANDBOX_TEST_ATTACKER"  // attacks the process of that id
)

// dumpableAtExec is whether this process was dumpable when it began.
var dumpableAtExec, _, _ = unix.Syscall(unix.SYS_PRCTL, unix.PR_GET_DUMPABLE, 0, 0)

func TestMain(m *testing.M) {
	if os.Getenv(childVariable) == "leave" {
		os.Exit(0)
	}
	Main(map[string]Role{"hold": hold, "dumpable": func(c *Conn, _ []*os.File) error {
		if err := c.Send(7, []byte(fmt.Sprint("dumpable ", dumpableAtExec))); err != nil {
			return err
		}
		_, _, _ = c.Receive(0)
		return nil
	}, "settings": func(c *Conn, _ []*os.File) error {
		return c.Send(7, fmt.Appendf(nil, "%d CPUs, a heap of %d MB", runtime.GOMAXPROCS(0), debug.SetMemoryLimit(-1)>>20))
	}, "attack": attack, "panic": func(*Conn, []*os.File) error { panic("as the test asks") }, "spin": func(*Conn, []*os.File) error {
		for spun := 0; ; spun++ {
		}
	}})
	switch {
	case os.Getenv(parentVariable) != "":
		os.Exit(report(parent()))
	case os.Getenv(noFilterVariable) != "":
		os.Exit(report(withoutFilter()))
	case os.Getenv(attackerVariable) != "":
		os.Exit(report(attackFromOutside(os.Getenv(attackerVariable))))
	}
	os.Exit(m.Run())
}

func report(err error) int {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// hold keeps what it was given until the parent closes the socket.
func hold(c *Conn, files []*os.File) error {
	if err := c.Send(7, nil); err != nil {
		return err
	}
	_, _, err := c.Receive(1)
	runtime.KeepAlive(files)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// parent starts a child with the role in the variable, prints its process id and its
// message, and waits until its standard input is closed.
func parent() error {
	role := os.Getenv(parentVariable)
	var files []*os.File
	for _, path := range os.Args[1:] {
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		files = append(files, f)
	}
	c, err := Start(context.Background(), Config{Role: role, Name: "child", Memory: 512 << 20}, files...)
	if err != nil {
		return err
	}
	_, b, err := c.Receive(1 << 20)
	if err != nil {
		return errors.Join(err, c.Wait(), errors.New(string(c.Stderr())))
	}
	fmt.Printf("%d %d %s\n", c.PID(), c.Confined.UID, b)
	if c.Confined.Filter != "" {
		return errors.New(c.Confined.Filter)
	}
	_, _ = io.Copy(io.Discard, os.Stdin)
	c.Close()
	return c.Wait()
}

// runParent runs parent as a user, and returns its child's process id and uid, and the
// child's message.
func runParent(t *testing.T, exe, role string, who *syscall.Credential, files ...string) (pid int, uid uint32, said string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), exe, files...)
	cmd.Env = []string{parentVariable + "=" + role}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: who}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		in.Close()
		if err := cmd.Wait(); err != nil && t.Context().Err() == nil {
			t.Errorf("the child's parent: %v\n%s", err, stderr.String())
		}
	})
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatalf("no child: %v\n%s", err, stderr.String())
	}
	fields := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 3)
	pid, err = strconv.Atoi(fields[0])
	if err != nil {
		t.Fatal(err)
	}
	id, err := strconv.ParseUint(fields[1], 10, 32)
	if err != nil {
		t.Fatal(err)
	}
	return pid, uint32(id), fields[2]
}

// everyonesCopy is a copy of this test binary that every user may execute.
func everyonesCopy(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "sandbox-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	b, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, "test")
	if err := errors.Join(os.WriteFile(exe, b, 0o755), os.Chmod(dir, 0o755)); err != nil {
		t.Fatal(err)
	}
	return exe
}

// asUsers runs a test with a parent that is root, and with one that is not.
func asUsers(t *testing.T, f func(t *testing.T, exe string, who *syscall.Credential)) {
	testprog.NeedRoot(t)
	if _, err := program(true); err != nil {
		testprog.Skip(t, &testprog.UnsupportedError{Need: err.Error()})
	}
	exe := everyonesCopy(t)
	for name, id := range map[string]uint32{"root": 0, "user": 54321} {
		t.Run(name, func(t *testing.T) { f(t, exe, &syscall.Credential{Uid: id, Gid: id}) })
	}
}

// attempts maps names of attacks to their results: an error if refused, nil if successful.
type attempts map[string]error

func (a attempts) outcome() map[string]string {
	out := map[string]string{}
	for name, err := range a {
		out[name] = ""
		if err != nil {
			out[name] = err.Error()
		}
	}
	return out
}

// attackFromOutside tries to take over a process with its own uid.
func attackFromOutside(target string) error {
	pid, err := strconv.Atoi(target)
	if err != nil {
		return err
	}
	a := attempts{}
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return err
	}
	a["pidfd_getfd"] = unix.EPERM
	for fd := range 32 {
		if _, err := unix.PidfdGetfd(pidfd, fd, 0); err == nil {
			a["pidfd_getfd"] = nil
		}
	}
	runtime.LockOSThread()
	a["ptrace attach"] = unix.PtraceAttach(pid)
	a["ptrace seize"] = unix.PtraceSeize(pid)
	_, a["/proc/PID/fd"] = os.ReadDir("/proc/" + target + "/fd")
	_, a["/proc/PID/fd/3"] = os.Open("/proc/" + target + "/fd/3")
	_, a["/proc/PID/mem"] = os.OpenFile("/proc/"+target+"/mem", os.O_RDWR, 0)
	_, a["/proc/PID/maps"] = os.ReadFile("/proc/" + target + "/maps")
	_, a["/proc/PID/environ"] = os.ReadFile("/proc/" + target + "/environ")
	_, a["/proc/PID/root"] = os.ReadDir("/proc/" + target + "/root/")
	b := make([]byte, 8)
	local := []unix.Iovec{{Base: &b[0], Len: 8}}
	remote := []unix.RemoteIovec{{Base: uintptr(unsafe.Pointer(&b[0])), Len: 8}}
	_, err = unix.ProcessVMReadv(pid, local, remote, 0)
	if errors.Is(err, unix.EFAULT) {
		err = nil // it was let in
	}
	a["process_vm_readv"] = err
	return json.NewEncoder(os.Stdout).Encode(a.outcome())
}

// A process with the child's uid cannot trace the child or reach its memory or its
// descriptors, one of which is a file that only root may open.
func TestTakeoverFromOutside(t *testing.T) {
	asUsers(t, func(t *testing.T, exe string, who *syscall.Credential) {
		secret := filepath.Join(filepath.Dir(exe), "secret."+filepath.Base(t.Name()))
		if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(secret, int(who.Uid), int(who.Gid)); err != nil {
			t.Fatal(err)
		}
		pid, uid, _ := runParent(t, exe, "hold", who, secret)
		if (uid == who.Uid) == (who.Uid == 0) {
			t.Errorf("the child of uid %d has uid %d", who.Uid, uid)
		}
		cmd := exec.Command(exe)
		cmd.Env = []string{attackerVariable + "=" + strconv.Itoa(pid)}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("attack: %v\n%s", err, out)
		}
		var got map[string]string
		if err := json.Unmarshal(out, &got); err != nil {
			t.Fatal(err)
		}
		if len(got) < 10 {
			t.Fatalf("the attacker tried %v", got)
		}
		for name, refused := range got {
			if refused == "" {
				t.Errorf("%s: nothing held the attacker back", name)
			}
		}
		examine(t, pid, uid, who.Uid == 0)
	})
}

// examine checks as root that all of a child's threads are confined, and that it has exactly
// the descriptors that it was given.
func examine(t *testing.T, pid int, uid uint32, ofRoot bool) {
	t.Helper()
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/status", pid))
	if err != nil || len(tasks) < 2 {
		t.Fatalf("threads of the child: %v, %v", tasks, err)
	}
	const none = "0000000000000000"
	id := strconv.FormatUint(uint64(uid), 10)
	want := []string{
		"Uid:\t" + strings.Join(slices.Repeat([]string{id}, 4), "\t"), "Groups:\t \n", "NoNewPrivs:\t1", "Seccomp:\t2",
		"CapInh:\t" + none, "CapPrm:\t" + none, "CapEff:\t" + none, "CapAmb:\t" + none,
	}
	if ofRoot {
		want = append(want, "Gid:\t"+strings.Join(slices.Repeat([]string{id}, 4), "\t"))
	}
	for _, task := range tasks {
		status, err := os.ReadFile(task)
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(string(status), w) {
				t.Errorf("%s lacks %q:\n%s", task, w, status)
			}
		}
	}
	fds, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, fd := range fds {
		to, err := os.Readlink(fd)
		if err != nil {
			t.Fatal(err)
		}
		kind, _, _ := strings.Cut(to, ":[")
		if strings.HasPrefix(filepath.Base(to), "secret.") {
			kind = "secret"
		}
		kinds[kind]++
	}
	for kind, n := range kinds {
		switch {
		case kind == "socket" && n == 1, kind == "pipe" && n == 1, kind == "secret" && n == 1, kind == "/dev/null" && n == 2:
		case strings.HasPrefix(kind, "anon_inode"), strings.Contains(kind, "/cpu."): // Go's epoll, eventfd, and limits of CPU time
		default:
			t.Errorf("the child has %d of %q open", n, kind)
		}
	}
	if kinds["secret"] != 1 || kinds["socket"] != 1 {
		t.Errorf("the child has %v open", kinds)
	}
	if info, err := os.Stat(fmt.Sprintf("/proc/%d/maps", pid)); err != nil || info.Sys().(*syscall.Stat_t).Uid != 0 {
		t.Errorf("the child is dumpable: %v", err)
	}
}

// attack is the role of a child under an attacker's control.
func attack(c *Conn, _ []*os.File) error {
	call := func(number uintptr, args ...uintptr) error {
		args = append(args, make([]uintptr, 6)...)
		if _, _, errno := unix.RawSyscall6(number, args[0], args[1], args[2], args[3], args[4], args[5]); errno != 0 {
			return errno
		}
		return nil
	}
	path := func(s string) uintptr { return uintptr(unsafe.Pointer(unsafe.StringData(s + "\x00"))) }
	here := unix.AT_FDCWD
	at := uintptr(here)
	parent := uintptr(unix.Getppid())
	try := func() attempts {
		var cwd [64]byte
		return attempts{
			"open /etc/shadow":   call(unix.SYS_OPENAT, at, path("/etc/shadow"), unix.O_RDONLY),
			"open /etc/passwd":   call(unix.SYS_OPENAT, at, path("/etc/passwd"), unix.O_RDONLY),
			"openat2":            call(unix.SYS_OPENAT2, at, path("/etc/passwd"), uintptr(unsafe.Pointer(&unix.OpenHow{})), unix.SizeofOpenHow),
			"create a file":      call(unix.SYS_OPENAT, at, path("/tmp/planted"), unix.O_CREAT|unix.O_WRONLY, 0o600),
			"stat":               call(unix.SYS_NEWFSTATAT, at, path("/etc"), uintptr(unsafe.Pointer(&unix.Stat_t{})), 0),
			"getcwd":             call(unix.SYS_GETCWD, uintptr(unsafe.Pointer(&cwd)), 64),
			"inet socket":        call(unix.SYS_SOCKET, unix.AF_INET, unix.SOCK_STREAM, 0),
			"unix socket":        call(unix.SYS_SOCKET, unix.AF_UNIX, unix.SOCK_STREAM, 0),
			"netlink socket":     call(unix.SYS_SOCKET, unix.AF_NETLINK, unix.SOCK_RAW, 0),
			"socketpair":         call(unix.SYS_SOCKETPAIR, unix.AF_UNIX, unix.SOCK_STREAM, 0, uintptr(unsafe.Pointer(&[2]int32{}))),
			"signal the parent":  call(unix.SYS_KILL, parent, 0),
			"signal all":         call(unix.SYS_KILL, ^uintptr(0), 0),
			"signal by tgkill":   call(unix.SYS_TGKILL, parent, parent, 0),
			"signal by fcntl":    call(unix.SYS_FCNTL, 0, unix.F_SETOWN, parent),
			"pidfd":              call(unix.SYS_PIDFD_OPEN, parent, 0),
			"ptrace":             call(unix.SYS_PTRACE, unix.PTRACE_SEIZE, parent),
			"read memory":        call(unix.SYS_PROCESS_VM_READV, parent),
			"fork":               call(unix.SYS_CLONE, uintptr(unix.SIGCHLD)),
			"fork sharing":       call(unix.SYS_CLONE, unix.CLONE_VM|uintptr(unix.SIGCHLD)),
			"clone3":             call(unix.SYS_CLONE3),
			"exec":               call(unix.SYS_EXECVE, path("/bin/true"), 0, 0),
			"execveat":           call(unix.SYS_EXECVEAT, at, path("/bin/true"), 0, 0, 0),
			"user namespace":     call(unix.SYS_UNSHARE, unix.CLONE_NEWUSER),
			"become dumpable":    call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE, 1),
			"64 bits of prctl":   call(unix.SYS_PRCTL, unix.PR_SET_DUMPABLE|1<<32, 1),
			"64 bits of tgkill":  call(unix.SYS_TGKILL, parent|1<<32, parent, 0),
			"64 bits of clone":   call(unix.SYS_CLONE, uintptr(unix.SIGCHLD)|1<<32),
			"x32 open":           call(1<<30|2, path("/etc/passwd"), unix.O_RDONLY),
			"x32 exec":           call(1<<30|520, path("/bin/true"), 0, 0),
			"give descriptors":   call(unix.SYS_SENDMSG, 3, 0, 0),
			"take descriptors":   call(unix.SYS_PIDFD_GETFD, 3, 0, 0),
			"lock a file":        call(unix.SYS_FLOCK, 0, unix.LOCK_EX),
			"lock by fcntl":      call(unix.SYS_FCNTL, 0, unix.F_SETLK, 0),
			"become root":        call(unix.SYS_SETUID, 0),
			"code":               call(unix.SYS_MMAP, 0, 4096, unix.PROT_EXEC|unix.PROT_READ, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uintptr(0)),
			"code at an address": call(unix.SYS_MMAP, prSetVMA&^0xfff, 4096, 157, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS, ^uintptr(0)),
			"make data code":     call(unix.SYS_MPROTECT, path("x")&^0xfff, 4096, unix.PROT_EXEC|unix.PROT_READ),
			"io_uring":           call(unix.SYS_IO_URING_SETUP, 1, uintptr(unsafe.Pointer(&[128]byte{}))),
			"bpf":                call(unix.SYS_BPF),
			"keys":               call(unix.SYS_KEYCTL),
			"memfd":              call(unix.SYS_MEMFD_CREATE, path("x"), 0),
			"raise a limit":      call(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&unix.Rlimit{Cur: 1, Max: 1}))),
			"mount":              call(unix.SYS_MOUNT, path("x"), path("/"), path("tmpfs")),
			"ioctl":              call(unix.SYS_IOCTL, 0, unix.TIOCSTI, path("x")),
		}
	}
	// On this thread, and on others: old ones, and new ones.
	all := []attempts{try()}
	for range 8 {
		done := make(chan attempts)
		go func() {
			runtime.LockOSThread()
			done <- try()
		}()
		all = append(all, <-done)
	}
	merged := map[string]string{}
	for _, a := range all {
		for name, text := range a.outcome() {
			if was, ok := merged[name]; !ok || was != "" {
				merged[name] = text
			}
		}
	}
	b, err := json.Marshal(merged)
	if err != nil {
		return err
	}
	if err := c.Send(7, b); err != nil {
		return err
	}
	return hold(c, nil)
}

// A child under an attacker's control cannot open files or sockets, send signals, start
// processes, make executable memory, or leave its confinement, from any thread.
func TestTakenOver(t *testing.T) {
	asUsers(t, func(t *testing.T, exe string, who *syscall.Credential) {
		_, _, said := runParent(t, exe, "attack", who)
		var got map[string]string
		if err := json.Unmarshal([]byte(said), &got); err != nil {
			t.Fatalf("%v: %s", err, said)
		}
		for name, refused := range got {
			want := unix.EPERM
			if name == "clone3" {
				want = unix.ENOSYS
			}
			if refused != want.Error() {
				t.Errorf("%s: %q, want %q", name, refused, want.Error())
			}
		}
		if len(got) < 30 {
			t.Errorf("tried only %d things", len(got))
		}
	})
}

// A child that ends before it has confined itself is an error, also where it ends with
// status 0.
func TestChildLeavesAtOnce(t *testing.T) {
	c, err := Start(t.Context(), Config{Role: "leave", Name: "leave"})
	if err == nil || c != nil {
		t.Errorf("Start gave %v, %v, want an error", c, err)
	}
}

// A child's id is shared with no other child and no other process or user.
func TestPrivateID(t *testing.T) {
	testprog.NeedRoot(t)
	a, ok := privateID()
	if !ok {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "CAP_SETUID, CAP_SETGID and CAP_KILL, and more than one user id"})
	}
	b, ok := privateID()
	if !ok || a == b || a == 65534 || b == 65534 || a == 0 || b == 0 {
		t.Errorf("ids %d and %d, %t", a, b, ok)
	}
	// An id in use by a process is not free, nor is one in /etc/passwd.
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: a, Gid: a}}
	if !unused(a) {
		t.Errorf("%d is used", a)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if unused(a) {
		t.Errorf("%d, which a process has, is taken for free", a)
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	if unused(0) || unused(1) {
		t.Error("ids of /etc/passwd are taken for free")
	}
}

// Ranges of ids are parsed from files that an administrator wrote; malformed lines are
// errors.
func TestParseRange(t *testing.T) {
	for line, want := range map[string]idRange{
		"         0          0 4294967295": {0, 4294967294},
		"0 100000 65536":                   {0, 65535},
		"alice:100000:65536":               {100000, 165535},
	} {
		if got, err := parseRange(line); err != nil || got != want {
			t.Errorf("%q is %v, %v", line, got, err)
		}
	}
	for _, line := range []string{"", "a", "1 2", "a b c", "alice:x:1", "alice:1:0", "0 0 99999999999"} {
		if r, err := parseRange(line); err == nil {
			t.Errorf("%q is %v", line, r)
		}
	}
}

// The standard error of a child that fails is available to its parent.
func TestStderr(t *testing.T) {
	c, err := Start(context.Background(), Config{Role: "panic", Name: "child"})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err == nil || !strings.Contains(string(c.Stderr()), "as the test asks") {
		t.Errorf("%v, %q", err, c.Stderr())
	}
}

// A frugal child has one CPU and a small heap, and no more memory than it is given.
func TestFrugal(t *testing.T) {
	for memory, want := range map[uint64]string{0: "1 CPUs, a heap of 64 MB", 256 << 20: "1 CPUs, a heap of 64 MB", 32 << 20: "1 CPUs, a heap of 32 MB"} {
		c, err := Start(t.Context(), Config{Role: "settings", Name: "test", Memory: memory, Frugal: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, got, err := c.Receive(100); err != nil || string(got) != want {
			t.Errorf("of %d bytes: %s, %v; %s expected", memory, got, err, want)
		}
		if err := c.Wait(); err != nil {
			t.Error(err)
		}
	}
}

// A child that takes more CPU time than it may is killed, by no clock of ours.
func TestCPULimit(t *testing.T) {
	c, err := Start(t.Context(), Config{Role: "spin", Name: "child", Memory: 512 << 20, CPU: 1})
	if err != nil {
		t.Fatal(err)
	}
	var ended *exec.ExitError
	if err := c.Wait(); !errors.As(err, &ended) {
		t.Fatalf("it ended with %v", err)
	}
	if s := ended.Sys().(syscall.WaitStatus); !s.Signaled() || s.Signal() != unix.SIGKILL {
		t.Errorf("it ended with %v", ended)
	}
	if spent := ended.UserTime() + ended.SystemTime(); spent < time.Second/2 {
		t.Errorf("it was killed after %v of CPU time", spent)
	}
}

// A child of a parent that has capabilities without being root is protected from its user
// from its first instruction, not only once it has confined itself.
func TestNoTakeoverBeforeConfinement(t *testing.T) {
	testprog.NeedRoot(t)
	cmd := exec.Command(everyonesCopy(t))
	cmd.Env = []string{parentVariable + "=dumpable"}
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 54321, Gid: 54321}, AmbientCaps: []uintptr{unix.CAP_SYS_PTRACE}}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasSuffix(string(out), " dumpable 0\n") {
		t.Errorf("%v, %q", err, out)
	}
}

// withoutFilter hides seccomp(2) as an old kernel would, starts a child, and prints what
// its confinement lacks.
func withoutFilter() error {
	filter := []unix.SockFilter{
		{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: offNumber},
		{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: unix.SYS_SECCOMP, Jf: 1},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS)},
		{Code: unix.BPF_RET | unix.BPF_K, K: unix.SECCOMP_RET_ALLOW},
	}
	prog := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, unix.SECCOMP_FILTER_FLAG_TSYNC, uintptr(unsafe.Pointer(&prog))); errno != 0 {
		return errno
	}
	c, err := Start(context.Background(), Config{Role: "hold", Name: "child"})
	if err != nil {
		return err
	}
	fmt.Println(Incomplete())
	if _, _, err := c.Receive(0); err != nil {
		return errors.Join(err, c.Wait(), errors.New(string(c.Stderr())))
	}
	c.Close()
	if err := c.Wait(); err != nil {
		return errors.Join(err, errors.New(string(c.Stderr())))
	}
	return nil
}

// A child that the kernel gives no system call filter, or that keeps root's uid, is reported.
func TestIncompleteConfinementIsReported(t *testing.T) {
	testprog.NeedRoot(t)
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = []string{noFilterVariable + "=1"}
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), errNoFilter.Error()) {
		t.Errorf("%v, %q", err, out)
	}
	for c, want := range map[Confinement]bool{{UID: 5}: false, {}: true, {UID: 5, Filter: "none"}: true} {
		if got := c.lacks(0) != ""; got != want {
			t.Errorf("%+v lacks something: %t", c, got)
		}
	}
	if c := (Confinement{UID: 5}); c.lacks(5) != "" {
		t.Error("a child of another user than root needs no uid of its own")
	}
}

// BenchmarkStart measures starting a child, which is most of the time of a short look-up of
// names.
func BenchmarkStart(b *testing.B) {
	for b.Loop() {
		c, err := Start(context.Background(), Config{Role: "hold", Name: "child", Memory: 512 << 20})
		if err != nil {
			b.Fatal(err)
		}
		if _, _, err := c.Receive(0); err != nil {
			b.Fatal(err)
		}
		c.Close()
		_ = c.Wait()
	}
}
