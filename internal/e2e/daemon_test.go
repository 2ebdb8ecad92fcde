package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"ccagent/internal/testprog"
)

// host is a daemon under test.
type host struct {
	t                     *testing.T
	config, state, socket string
	more                  string // lines of the configuration
	env                   []string
	memory                int    // of the daemon's control group, in bytes; 0 for none
	without               string // a key of restrictions; empty for none
	daemon                *exec.Cmd
	ended                 func() result
}

// startHost starts a daemon that profiles the test programs, with short pieces.
func startHost(t *testing.T) *host {
	t.Helper()
	h := newHost(t)
	h.start()
	return h
}

// newHost is startHost without starting the daemon.
func newHost(t *testing.T) *host {
	t.Helper()
	testprog.NeedRoot(t)
	dir := sharedDir(t, 0o755)
	h := &host{t: t, config: filepath.Join(t.TempDir(), "ccagent.yaml"), state: filepath.Join(dir, "state"), socket: filepath.Join(dir, "control.sock")}
	// Only root may have written the configuration, so its folder is root's too.
	h.configure("  - {executable: spin31, profile: true}\n  - {executable: fork, profile: true}\n  - {executable: alloc31, profile: true}\n  - {profile: false}\n")
	return h
}

func (h *host) configure(rules string) {
	h.t.Helper()
	group := fmt.Sprint(nobodyID)
	if text, err := os.ReadFile("/etc/group"); err == nil {
		for line := range strings.Lines(string(text)) {
			if f := strings.Split(line, ":"); len(f) > 2 && f[2] == group {
				group = f[0]
			}
		}
	}
	text := "daemon:\n  frequency: 241\n  max-overhead: 0\n  piece: {age: 1s, size: 8MB}\n  group: " + group + "\n" + h.more + "  rules:\n" + rules
	if err := os.WriteFile(h.config, []byte(text), 0o600); err != nil {
		h.t.Fatal(err)
	}
}

func (h *host) start() {
	h.t.Helper()
	args := []string{"daemon", "--config", h.config, "--state-dir", h.state, "--socket", h.socket}
	if h.memory > 0 {
		h.daemon = inMemoryGroup(h.t, h.memory, ccagent, args...)
	} else if h.without != "" {
		h.daemon = restricted(h.t, h.without, append([]string{ccagent}, args...)...)
	} else {
		h.daemon = command(h.t, ccagent, args...)
	}
	h.daemon.Env = append(h.daemon.Environ(), h.env...)
	h.ended = background(h.t, h.daemon)
	eventually(h.t, "the daemon answers", func() bool {
		return run(h.t, command(h.t, ccagent, "status", "--socket", h.socket)).status == 0
	})
}

// seen is a process as ps lists it.
type seen struct {
	PID                          int
	Service, Program, GHC, State string
	Samples                      uint64
	Cost                         *float64
	Events                       []string
	Missing, Partly              []struct{ Event, Reason string }
	Boost                        *struct {
		Rate, UID uint64
		Left      float64 `json:"left_seconds"`
	}
}

// ps lists what a user sees, by process id.
func (h *host) ps(uid uint32, env ...string) map[int]seen {
	h.t.Helper()
	cmd := command(h.t, ccagent, "ps", "--socket", h.socket, "--format", "json")
	cmd.Env = append(os.Environ(), env...)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	r := run(h.t, cmd)
	var list struct{ Processes []seen }
	if err := json.Unmarshal([]byte(r.stdout), &list); err != nil || r.status != 0 {
		h.t.Fatalf("ccagent ps: status %d, %v\n%s%s", r.status, err, r.stdout, r.stderr)
	}
	all := map[int]seen{}
	for _, p := range list.Processes {
		all[p.PID] = p
	}
	return all
}

// listed counts the processes that the daemon lists of programs with these file names: other tests may start other programs meanwhile.
func (h *host) listed(programs ...string) (n int) {
	h.t.Helper()
	for _, p := range h.ps(0) {
		if slices.Contains(programs, filepath.Base(p.Program)) {
			n++
		}
	}
	return n
}

// health is how the daemon is.
type health struct {
	Stalled                 int
	Problem                 string
	Lost, Unwritten, Failed uint64
}

func (h *host) status() (s health) {
	h.t.Helper()
	r := run(h.t, command(h.t, ccagent, "status", "--socket", h.socket, "--format", "json"))
	if err := json.Unmarshal([]byte(r.stdout), &s); err != nil {
		h.t.Fatalf("ccagent status: %v\n%s", err, r.stderr)
	}
	return s
}

// pieces lists the pieces of a process, the oldest first.
func (h *host) pieces(pid int) []string {
	h.t.Helper()
	all, err := filepath.Glob(filepath.Join(h.state, "*", strconv.Itoa(pid)+"-*.eventlog"))
	if err != nil {
		h.t.Fatal(err)
	}
	return all
}

// closed lists the closed pieces of a process, at most so many of them.
func (h *host) closed(pid, most int) (pieces []string) {
	h.t.Helper()
	for _, p := range h.pieces(pid) {
		if len(pieces) == most {
			break
		}
		r := run(h.t, command(h.t, ccview, "info", p, "--format", "json"))
		var info totals
		if r.status == 0 && json.Unmarshal([]byte(r.stdout), &info) == nil && info.Complete && info.Symbolised && info.Program.End != "" {
			pieces = append(pieces, p)
		}
	}
	return pieces
}

// shows reports whether a log has samples of a binding.
func shows(t *testing.T, log, binding string) bool {
	t.Helper()
	var hot struct {
		Rows []struct {
			Element string
			Samples float64
		}
	}
	view(t, &hot, "hot", log)
	for _, r := range hot.Rows {
		if r.Element == binding && r.Samples > 0 {
			return true
		}
	}
	return false
}

// runOn starts a program that runs until the test's end.
func runOn(t *testing.T, attr *syscall.SysProcAttr, exe string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(exe, args...)
	cmd.Dir, cmd.SysProcAttr = "/", attr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd
}

const forever = "1000000000"

// The daemon finds programs of two releases that run, that start later, that are forked, and that
// are in namespaces of their own; each has closed pieces with its own names. Users see what is
// theirs.
func TestDaemonProfilesTheHost(t *testing.T) {
	testprog.NeedRoot(t)
	old, fresh := testprog.Build(t, "spin31", testprog.Options{}), testprog.Build(t, "spin31", testprog.Options{Release: "9.10.3"})
	forking := testprog.Build(t, "fork", testprog.Options{})
	running := runOn(t, nil, old, forever)
	h := startHost(t)
	theirs := runOn(t, &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyID, Gid: nobodyID}, Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}, readable(t, fresh), forever)

	forker := exec.Command(forking, "2", "100000000000")
	out, err := forker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := forker.Start(); err != nil {
		t.Fatal(err)
	}
	children := map[string]int{"parent": 0, "forked": 0, "started": 0}
	t.Cleanup(func() {
		for _, pid := range children {
			if pid > 0 {
				syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		forker.Wait()
	})
	for lines := bufio.NewScanner(out); children["started"] == 0 && lines.Scan(); {
		how, pid, _ := strings.Cut(lines.Text(), " ")
		if children[how], err = strconv.Atoi(pid); err != nil {
			t.Fatalf("the forking program says %q", lines.Text())
		}
	}

	expect := map[int]string{running.Process.Pid: "Main.three", theirs.Process.Pid: "Main.three"}
	for _, pid := range children {
		expect[pid] = "Main.spin"
	}
	for pid, binding := range expect {
		var pieces []string
		eventually(t, fmt.Sprintf("process %d has a closed piece", pid), func() bool {
			pieces = h.closed(pid, 1)
			return len(pieces) > 0
		})
		if !shows(t, pieces[0], binding) {
			t.Errorf("%s does not have %s", pieces[0], binding)
		}
	}
	all := h.ps(0)
	for pid := range expect {
		if p := all[pid]; p.State != "sampled" || p.Samples == 0 {
			t.Errorf("ps has %+v of process %d", p, pid)
		}
	}
	if a, b := all[running.Process.Pid].GHC, all[theirs.Process.Pid].GHC; a == b || b != "9.10.3" {
		t.Errorf("the releases are %q and %q", a, b)
	}
	sudo := []string{"SUDO_UID=" + strconv.Itoa(nobodyID), "SUDO_GID=" + strconv.Itoa(nobodyID)}
	for who, mine := range map[string]map[int]seen{"a user": h.ps(nobodyID), "a user by sudo": h.ps(0, sudo...)} {
		for pid := range expect {
			if own := pid == theirs.Process.Pid; own != (mine[pid].PID != 0) {
				t.Errorf("%s sees %v; of process %d that is wrong", who, mine, pid)
			}
		}
	}
	second := command(t, ccagent, "daemon", "--config", h.config, "--state-dir", t.TempDir(), "--socket", h.socket+"2")
	second.Env = append(os.Environ(), sudo...)
	if r := run(t, second); r.status != 125 || !strings.Contains(r.stderr, "processes of all users") {
		t.Errorf("a user starts a daemon by sudo: status %d\n%s", r.status, r.stderr)
	}

	log := filepath.Join(t.TempDir(), "snapshot.eventlog")
	r := run(t, command(t, ccagent, "snapshot", strconv.Itoa(running.Process.Pid), "--last", "1h", "-o", log, "--socket", h.socket))
	if r.status != 0 || !shows(t, log, "Main.three") {
		t.Errorf("snapshot: status %d\n%s", r.status, r.stderr)
	}
	const stranger = 54321
	for _, c := range []struct {
		uid, gid uint32
		status   int
		want     string
		args     []string
	}{
		{nobodyID, nobodyID, 125, "none of your processes", []string{"snapshot", strconv.Itoa(running.Process.Pid), "-o", "/dev/null"}},
		{0, 0, 125, `no sample of service "nothing" in the last 5m0s, and none is sampled now`, []string{"snapshot", "nothing", "-o", "/dev/null"}},
		{stranger, nobodyID, 0, "no Haskell process of yours runs", []string{"ps"}}, // in the group
		{stranger, stranger, 125, "adduser USER ccagent", []string{"ps"}},
	} {
		cmd := command(t, ccagent, append(c.args, "--socket", h.socket)...)
		cmd.SysProcAttr, cmd.Dir = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: c.uid, Gid: c.gid}}, "/"
		if r := run(t, cmd); r.status != c.status || !strings.Contains(r.stderr, c.want) {
			t.Errorf("user %d of group %d asks for %v: status %d, want %q\n%s", c.uid, c.gid, c.args, r.status, c.want, r.stderr)
		}
	}

	// When a process has ended it is no longer listed, and all of its pieces are closed.
	running.Process.Kill()
	running.Wait()
	eventually(t, "a process that has ended is not listed", func() bool { return h.ps(0)[running.Process.Pid].PID == 0 })
	eventually(t, "all pieces of a process that has ended are closed", func() bool {
		pieces := h.pieces(running.Process.Pid)
		last := max(0, len(pieces)-2) // with what was begun in the same second
		for _, p := range pieces[last:] {
			r := run(t, command(t, ccview, "info", p, "--format", "json"))
			var info totals
			if json.Unmarshal([]byte(r.stdout), &info) != nil || !info.Complete || !info.Symbolised {
				return false
			}
		}
		return true
	})

	// A wrong configuration changes nothing, a right one does.
	h.configure("  - {executable: '[', profile: true}\n")
	if r := run(t, command(t, ccagent, "reload", "--socket", h.socket)); r.status == 0 || !strings.Contains(r.stderr, "rules[0].executable") {
		t.Errorf("a wrong configuration: status %d\n%s", r.status, r.stderr)
	}
	h.configure("  - {executable: fork, profile: true}\n  - {profile: false}\n")
	if r := run(t, command(t, ccagent, "reload", "--socket", h.socket)); r.status != 0 {
		t.Errorf("reload: status %d\n%s", r.status, r.stderr)
	}
	if p := h.ps(0)[theirs.Process.Pid]; p.State != "excluded" {
		t.Errorf("after the rules have changed ps has %+v", p)
	}
	h.daemon.Process.Signal(syscall.SIGTERM)
	if r := h.ended(); r.status != 0 {
		t.Errorf("the daemon ends with status %d\n%s", r.status, r.stderr)
	}
}

// readable is a copy of a program where every user may execute it.
func readable(t *testing.T, exe string) string {
	t.Helper()
	text, err := os.ReadFile(exe)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(sharedDir(t, 0o755), filepath.Base(exe))
	if err := os.WriteFile(path, text, 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// A process that publishes what it is called while it runs is called so from its next piece on, which has its labels.
func TestDaemonReadsPublishedNames(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "publishes", testprog.Options{})
	h := newHost(t)
	h.configure("  - {executable: " + exe + ", profile: true}\n  - {profile: false}\n")
	h.start()
	pid := runOn(t, nil, exe).Process.Pid
	eventually(t, "the process is called as it publishes", func() bool {
		if h.ps(0)[pid].Service != "published-api" {
			return false
		}
		for _, piece := range h.closed(pid, 100) {
			if text, err := os.ReadFile(piece); err == nil && filepath.Base(filepath.Dir(piece)) == "published-api" && bytes.Contains(text, []byte("team")) {
				return true
			}
		}
		return false
	})
}

// The daemon notifies systemd when it is ready, reads its configuration and stops, and as often
// as the watchdog asks for.
func TestDaemonNotifiesSystemd(t *testing.T) {
	h := newHost(t)
	name := filepath.Join(filepath.Dir(h.socket), "notify")
	socket, err := net.ListenPacket("unixgram", name)
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	h.env = []string{"NOTIFY_SOCKET=" + name, "WATCHDOG_USEC=2000000"}
	h.start()
	// until waits for a state, and returns those before it.
	until := func(state string) (before []string) {
		t.Helper()
		buffer := make([]byte, 1<<10)
		if err := socket.SetReadDeadline(time.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		for {
			n, _, err := socket.ReadFrom(buffer)
			if err != nil {
				t.Fatalf("%s: %v after %q", state, err, before)
			}
			if strings.HasPrefix(string(buffer[:n]), state) {
				return before
			}
			before = append(before, string(buffer[:n]))
		}
	}
	if before := until("READY=1"); len(before) > 0 {
		t.Errorf("before it is ready: %q", before)
	}
	until("WATCHDOG=1")
	until("WATCHDOG=1")
	if r := run(t, command(t, ccagent, "reload", "--socket", h.socket)); r.status != 0 {
		t.Fatalf("reload: %s", r.stderr)
	}
	until("RELOADING=1\nMONOTONIC_USEC=")
	if between := until("READY=1"); len(between) > 0 {
		t.Errorf("while it reads the configuration: %q", between)
	}
	if err := h.daemon.Process.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	until("STOPPING=1")
}

// A daemon that is killed leaves readable pieces, and nothing in the kernel; the next one goes on.
func TestDaemonKilled(t *testing.T) {
	testprog.NeedRoot(t)
	p := runOn(t, nil, testprog.Build(t, "spin31", testprog.Options{}), forever)
	h := startHost(t)
	pid := p.Process.Pid
	eventually(t, "two pieces", func() bool { return len(h.pieces(pid)) > 1 })
	programs := programsOf(t, h.daemon.Process.Pid)
	if len(programs) == 0 {
		t.Fatal("the daemon has no BPF programs")
	}
	h.daemon.Process.Kill()
	h.ended()
	for _, id := range programs {
		eventually(t, "a program is gone from the kernel", func() bool {
			p, err := ebpf.NewProgramFromID(id)
			if err == nil {
				p.Close()
			}
			return errors.Is(err, fs.ErrNotExist)
		})
	}
	all, err := filepath.Glob(filepath.Join(h.state, "*", "*.eventlog"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		if st, err := os.Stat(path); err == nil && st.Size() == 0 {
			continue // it was begun a moment ago
		}
		if r := run(t, command(t, ccview, "info", path)); r.status != 0 {
			t.Errorf("%s: %s", path, r.stderr)
		}
	}
	left := h.pieces(pid)
	h.start()
	eventually(t, "the next daemon closes pieces", func() bool { return len(h.closed(pid, len(left)+1)) > len(left) })
	eventually(t, "the next daemon finishes what the killed one has left", func() bool {
		for _, p := range left {
			if r := run(t, command(t, ccview, "info", p, "--format", "json")); r.status == 0 {
				var info totals
				if json.Unmarshal([]byte(r.stdout), &info) != nil || !info.Complete || !info.Symbolised {
					return false
				}
			} else if _, err := os.Stat(p); err == nil { // an empty one is removed
				return false
			}
		}
		return true
	})
	h.daemon.Process.Signal(unix.SIGTERM)
	if r := h.ended(); r.status != 0 {
		t.Errorf("the daemon ends with status %d\n%s", r.status, r.stderr)
	}
}

// A daemon whose disk is full says so, and loses nothing if there is room again in time.
func TestDaemonFullDisk(t *testing.T) {
	testprog.NeedRoot(t)
	p := runOn(t, nil, testprog.Build(t, "spin31", testprog.Options{}), forever)
	h := newHost(t)
	if err := os.Mkdir(h.state, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("tmpfs", h.state, "tmpfs", 0, "size=4m"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Unmount(h.state, unix.MNT_DETACH) })
	h.start()
	eventually(t, "a closed piece", func() bool { return len(h.closed(p.Process.Pid, 1)) > 0 })

	ballast := filepath.Join(h.state, "ballast")
	f, err := os.Create(ballast)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 4096)
	eventually(t, "the disk is full for the daemon", func() bool {
		for err = nil; err == nil; {
			_, err = f.Write(block)
		}
		if !errors.Is(err, unix.ENOSPC) {
			t.Fatal(err)
		}
		s := h.status()
		return s.Stalled > 0 && strings.Contains(s.Problem, "no space left")
	})
	full := h.ps(0)[p.Process.Pid]
	eventually(t, "sampling goes on", func() bool {
		now := h.ps(0)[p.Process.Pid]
		return now.State == "sampled" && now.Samples > full.Samples+100
	})
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	f.Close()
	eventually(t, "all logs are written again", func() bool { return h.status().Stalled == 0 })
	s := h.status()
	if s.Problem != "" || s.Unwritten != 0 || s.Failed != 0 {
		t.Errorf("the status is %+v", s)
	}
	taken := h.ps(0)[p.Process.Pid].Samples
	h.daemon.Process.Signal(unix.SIGTERM)
	if r := h.ended(); r.status != 0 {
		t.Errorf("the daemon ends with status %d\n%s", r.status, r.stderr)
	}
	if kept := h.kept(p.Process.Pid); kept < taken {
		t.Errorf("the pieces have %d of %d samples", kept, taken)
	}
}

// kept counts the samples in the pieces of a process, all of which are whole.
func (h *host) kept(pid int) (samples uint64) {
	h.t.Helper()
	for _, path := range h.pieces(pid) {
		r := run(h.t, command(h.t, ccview, "info", path, "--format", "json"))
		var info totals
		if err := json.Unmarshal([]byte(r.stdout), &info); err != nil || !info.Complete || !info.Symbolised {
			h.t.Errorf("%s: %v\n%s", path, err, r.stderr)
		}
		for _, e := range info.Events {
			samples += e.Samples
		}
	}
	return samples
}

// programsOf lists the BPF programs that a process holds open.
func programsOf(t *testing.T, pid int) (ids []ebpf.ProgramID) {
	t.Helper()
	return heldPrograms(t, strconv.Itoa(pid))
}

// heldPrograms lists the BPF programs that are held by the file descriptors of processes, a pattern.
func heldPrograms(t *testing.T, pids string) (ids []ebpf.ProgramID) {
	t.Helper()
	infos, err := filepath.Glob("/proc/" + pids + "/fdinfo/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range infos {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // closed meanwhile
		}
		for line := range strings.Lines(string(text)) {
			if id, ok := strings.CutPrefix(line, "prog_id:"); ok {
				n, err := strconv.ParseUint(strings.TrimSpace(id), 10, 32)
				if err != nil {
					t.Fatal(err)
				}
				ids = append(ids, ebpf.ProgramID(n))
			}
		}
	}
	return ids
}
