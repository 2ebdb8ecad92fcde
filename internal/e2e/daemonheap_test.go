package e2e

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ccagent/internal/testprog"
)

// sizes are the bytes of each band of a census.
func (d *heapDoc) sizes() map[string]uint64 {
	all := map[string]uint64{}
	for _, b := range d.Bands {
		all[b.Band] = b.Bytes[0]
	}
	return all
}

// standBeside starts two programs that stand still, of root's and of another user's.
func standBeside(t *testing.T) (ours *standing, theirs *exec.Cmd) {
	t.Helper()
	o := testprog.Options{Threaded: true, Release: "9.10.3"}
	ours = stand(t, o, dumpsAlike...)
	theirs = command(t, readable(t, testprog.Build(t, "standstill", o)), dumpsAlike...)
	theirs.SysProcAttr, theirs.Dir = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyID, Gid: nobodyID}}, "/"
	standsStill(t, theirs, func(string) {})
	return ours, theirs
}

// sampled waits until the daemon samples processes.
func (h *host) sampled(pids ...int) {
	h.t.Helper()
	eventually(h.t, "the programs are sampled", func() bool {
		all := h.ps(0)
		return !slices.ContainsFunc(pids, func(pid int) bool { return all[pid].State != "sampled" })
	})
}

// collecting starts a program that keeps 20 MB alive and collects its heap, and returns its process id once it does.
func collecting(t *testing.T) (pid int) {
	t.Helper()
	collects := command(t, testprog.Build(t, "footprint", testprog.Options{}), "live", "20")
	in, out := io.Pipe()
	collects.Stdout = out
	if _, err := collects.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	background(t, collects)
	lines := bufio.NewReader(in)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, lines)
	return collects.Process.Pid
}

// The daemon counts the heap of a process, with no more rights than its unit leaves it, and finds what the command by itself finds: at rest
// of a program that stands still, and at the end of a major collection. A user gets that of their own processes alone.
func TestDaemonHeap(t *testing.T) {
	testprog.NeedRoot(t)
	ours, theirs := standBeside(t)
	collects := collecting(t)
	h := newHost(t)
	// So small a part of the time may it stand that it is left alone for minutes.
	h.configure("  - {executable: standstill, profile: true, overhead: 0.0001}\n  - {executable: footprint, profile: true}\n  - {profile: false}\n")
	h.without = "all but the unit's capabilities"
	h.start()
	h.sampled(ours.Process.Pid, theirs.Process.Pid, collects)
	dir := t.TempDir()
	census := func(pid int, args ...string) (doc heapDoc, stderr string) {
		t.Helper()
		log := filepath.Join(dir, "heap.eventlog")
		r := run(t, command(t, ccagent, append([]string{"heap", "--max-pause", "0", "-o", log, strconv.Itoa(pid)}, args...)...))
		if r.status != 0 {
			t.Fatalf("ccagent heap %v: status %d\n%s", args, r.status, r.stderr)
		}
		view(t, &doc, "heap", log)
		if len(doc.Total) != 1 || doc.Total[0] == 0 {
			t.Fatalf("ccagent heap %v: %+v", args, doc)
		}
		return doc, r.stderr
	}
	want, _ := census(ours.Process.Pid, "--wait", "1ms")
	got, says := census(ours.Process.Pid, "--wait", "1ms", "--socket", h.socket)
	// What waits for files and timers leaves a few hundred bytes of garbage each time that it looks.
	has := got.sizes()
	for band, bytes := range want.sizes() {
		if n := has[band]; bytes >= 4<<10 && (float64(n) < 0.9*float64(bytes) || float64(n) > 1.1*float64(bytes)) {
			t.Errorf("the daemon counts %d bytes of %s, and the command by itself %d", n, band, bytes)
		}
	}
	wantLine(t, says, "at rest, garbage included; stopped ")
	if strings.Contains(says, h.state) {
		t.Errorf("the answer names the daemon's folder:\n%s", says)
	}
	whole, _ := census(collects, "--wait", "1m")
	moving, says := census(collects, "--wait", "1m", "--socket", h.socket)
	wantLine(t, says, "at the end of a major collection; stopped ")
	if a, b := float64(moving.Total[0]), float64(whole.Total[0]); a < 0.9*b || a > 1.1*b {
		t.Errorf("the daemon counts %v bytes, and the command by itself %v", a, b)
	}

	ask := func(uid uint32, args ...string) result {
		cmd := command(t, ccagent, append([]string{"heap", "--socket", h.socket}, args...)...)
		cmd.SysProcAttr, cmd.Dir = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}, "/"
		return run(t, cmd)
	}
	pid, none := strconv.Itoa(ours.Process.Pid), filepath.Join(dir, "none")
	for _, c := range []struct {
		uid  uint32
		args []string
		want string
	}{
		{nobodyID, []string{pid}, "is not sampled"},
		{0, []string{"1"}, "is not sampled"},
		{0, []string{"standstill"}, "2 processes"},
		{0, []string{pid, "--user", "root"}, "leave out --user"},
		{0, []string{pid, "--graph"}, "leave out --daemon"},
		{0, []string{pid, "--wait", "1h"}, "not for 3600 s"},
		{0, []string{pid, "--max-pause", "1h"}, "not 3600 s"},
	} {
		if r := ask(c.uid, append(c.args, "-o", none)...); r.status == 0 || !strings.Contains(r.stderr, c.want) {
			t.Errorf("user %d asks for %v: status %d, %s, want %q", c.uid, c.args, r.status, r.stderr, c.want)
		}
	}
	sudo := command(t, ccagent, "heap", "--socket", h.socket, "-o", none, pid)
	sudo.Env = append(os.Environ(), "SUDO_UID="+strconv.Itoa(nobodyID), "SUDO_GID="+strconv.Itoa(nobodyID))
	if r := run(t, sudo); r.status == 0 || !strings.Contains(r.stderr, "is not sampled") {
		t.Errorf("a user gets another's heap by sudo: status %d, %s", r.status, r.stderr)
	}
	if _, err := os.Stat(none); err == nil {
		t.Error("there is a log of what was refused")
	}

	// What only one process of theirs is called names it. The log is theirs.
	log := filepath.Join(sharedDir(t, 0o777), "heap.eventlog")
	if r := ask(nobodyID, "standstill", "--wait", "1ms", "-o", log); r.status != 0 {
		t.Fatalf("a user asks for their own process: status %d, %s", r.status, r.stderr)
	}
	var st unix.Stat_t
	if err := unix.Stat(log, &st); err != nil || st.Uid != nobodyID || st.Mode&0o777 != 0o600 {
		t.Errorf("the log is user %d's, mode %o (%v)", st.Uid, st.Mode, err)
	}
	if left, err := os.ReadDir(filepath.Join(h.state, ".threads")); err != nil || len(left) > 0 {
		t.Errorf("the daemon keeps %v (%v)", left, err)
	}
	// What has stood is left alone, whatever is asked for.
	if r := run(t, command(t, ccagent, "threads", "--socket", h.socket, strconv.Itoa(theirs.Process.Pid))); r.status == 0 || !strings.Contains(r.stderr, "ask again in") {
		t.Errorf("after a census of a moment ago: status %d\n%s", r.status, r.stderr)
	}
	if err := h.daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if r := h.ended(); r.status != 0 || !strings.Contains(r.stderr, "user "+strconv.Itoa(nobodyID)) || !strings.Contains(r.stderr, "asks for the heap of process "+pid) {
		t.Errorf("the daemon ends with status %d\n%s", r.status, r.stderr)
	}
}

// With a period for it the daemon counts the heap of each process now and then, at major collections that the process makes, with no more rights than
// its unit leaves it. Pieces have what the command by itself finds; ccview shows all censuses of a service.
func TestDaemonHeapSeries(t *testing.T) {
	testprog.NeedRoot(t)
	h := newHost(t)
	h.more = "  heap: 1s\n  heap-pause: 1s\n  process-overhead: 0\n"
	h.configure("  - {executable: footprint, profile: true}\n  - {executable: spin31, profile: true, without: [heap]}\n  - {profile: false}\n")
	h.without = "all but the unit's capabilities"
	collects := collecting(t) // has all that it keeps alive by now
	h.start()
	left := runOn(t, nil, testprog.Build(t, "spin31", testprog.Options{}), forever)
	h.await(collects, "cpu-clock", "alloc", "gc", "heap")
	eventually(t, "a rule leaves it out", func() bool {
		for _, m := range h.ps(0)[left.Process.Pid].Missing {
			if m.Event == "heap" && strings.Contains(m.Reason, "a rule") {
				return true
			}
		}
		return false
	})
	var doc heapDoc
	eventually(t, "pieces have several censuses", func() bool {
		r := run(t, command(t, ccview, "heap", h.state, "--service", "footprint", "--format", "json"))
		return r.status == 0 && json.Unmarshal([]byte(r.stdout), &doc) == nil && len(doc.Total) >= 3
	})
	// A process has one tracer.
	if err := h.daemon.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if r := h.ended(); r.status != 0 {
		t.Errorf("the daemon ends with status %d\n%s", r.status, r.stderr)
	}
	log := filepath.Join(t.TempDir(), "heap.eventlog")
	if r := run(t, command(t, ccagent, "heap", "--max-pause", "0", "--wait", "1m", "-o", log, strconv.Itoa(collects))); r.status != 0 {
		t.Fatal(r.stderr)
	}
	var want heapDoc
	view(t, &want, "heap", log)
	for n, total := range doc.Total {
		if a, b := float64(total), float64(want.Total[0]); a < 0.9*b || a > 1.1*b {
			t.Errorf("census %d of the daemon has %v bytes, the command by itself %v", n, a, b)
		}
	}
}
