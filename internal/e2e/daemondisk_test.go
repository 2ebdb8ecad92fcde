package e2e

import (
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/procfs"
	"ccagent/internal/testprog"
)

// ownMounts gives the test, and what it starts, mounts of its own. They end with it.
func ownMounts(t *testing.T) {
	t.Helper()
	runtime.LockOSThread() // until the goroutine ends, and its thread with it
	if err := unix.Unshare(unix.CLONE_FS | unix.CLONE_NEWNS); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		t.Fatal(err)
	}
}

// mountDisk has the daemon keep its logs on a disk of its own.
func (h *host) mountDisk() {
	t := h.t
	t.Helper()
	ownMounts(t)
	if err := os.Mkdir(h.state, 0o700); err != nil {
		t.Fatal(err)
	}
	image := filepath.Join(t.TempDir(), "disk")
	if err := os.WriteFile(image, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(image, 64<<20); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"mkfs.ext4", "-q", image}, {"mount", "-o", "loop", image, h.state}} {
		if r := run(t, command(t, args[0], args[1:]...)); r.status != 0 {
			testprog.Skip(t, &testprog.UnsupportedError{Need: "a file system in a file: " + r.stderr})
		}
	}
	t.Cleanup(func() { unix.Unmount(h.state, unix.MNT_DETACH) })
}

// freeze makes every write to the daemon's disk block in the kernel until thaw is called, or until the test ends, also by a panic. The
// daemon must be running.
func (h *host) freeze() (thaw func()) {
	t := h.t
	t.Helper()
	disk, err := os.Open(h.state)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { disk.Close() })
	const freeze, unfreeze = 0xC0045877, 0xC0045878 // FIFREEZE, FITHAW of linux/fs.h
	// It hangs up when the test program is no more.
	guard := exec.Command("sh", "-c", `echo; cat; exec fsfreeze --unfreeze "$0"`, h.state)
	guard.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	until, err := guard.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	ready, err := guard.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := guard.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := ready.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		until.Close()
		guard.Wait() // fails, since it is thawed
	})
	t.Cleanup(func() { unix.IoctlSetInt(int(disk.Fd()), unfreeze, 0) })
	if err := unix.IoctlSetInt(int(disk.Fd()), freeze, 0); err != nil {
		t.Fatal(err)
	}
	return func() {
		t.Helper()
		if err := unix.IoctlSetInt(int(disk.Fd()), unfreeze, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// While the disk takes nothing, only the daemon's logs wait: old and new processes are sampled, the daemon answers requests, says
// what is wrong, and goes on notifying systemd's watchdog. The samples of that time are in the logs afterwards.
func TestDaemonFrozenDisk(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "spin31", testprog.Options{})
	p, ends := runOn(t, nil, exe, forever), runOn(t, nil, exe, forever)
	h := newHost(t)
	at := freeAddress(t)
	h.more = "  metrics: " + at + "\n  keep: {size: 16MB, age: 1h}\n"
	h.configure("  - {executable: spin31, profile: true}\n  - {profile: false}\n")
	h.mountDisk()
	name := filepath.Join(filepath.Dir(h.socket), "notify")
	socket, err := net.ListenPacket("unixgram", name)
	if err != nil {
		t.Fatal(err)
	}
	var alive atomic.Int64
	listening := make(chan struct{})
	t.Cleanup(func() {
		socket.Close()
		<-listening
	})
	go func() {
		defer close(listening)
		for buffer := make([]byte, 1<<10); ; {
			n, _, err := socket.ReadFrom(buffer)
			if err != nil {
				return
			}
			if strings.HasPrefix(string(buffer[:n]), "WATCHDOG=1") {
				alive.Add(1)
			}
		}
	}()
	h.env = []string{"NOTIFY_SOCKET=" + name, "WATCHDOG_USEC=2000000"}
	h.start()
	eventually(t, "closed pieces", func() bool { return len(h.closed(p.Process.Pid, 1)) > 0 && len(h.closed(ends.Process.Pid, 1)) > 0 })

	before := h.ps(0)[p.Process.Pid].Samples
	thaw := h.freeze()
	ns, ok := procfs.ProcessTime(p.Process.Pid)
	if !ok {
		t.Fatal("the program has ended")
	}
	eventually(t, "the daemon says that the disk hangs", func() bool {
		s := h.status()
		return s.Stalled > 0 && strings.Contains(s.Problem, "the disk does not take")
	})
	told := alive.Load()
	eventually(t, "systemd is told that the daemon is alive", func() bool { return alive.Load() >= told+2 })
	frozen, scraped := h.ps(0)[p.Process.Pid].Samples, metricOf(t, at, "ccagent_samples_total")
	eventually(t, "sampling goes on, and metrics say so", func() bool {
		return h.ps(0)[p.Process.Pid].Samples > frozen+100 && metricOf(t, at, "ccagent_samples_total") > scraped
	})
	late := runOn(t, nil, exe, forever)
	eventually(t, "a program that starts meanwhile is sampled", func() bool { return h.ps(0)[late.Process.Pid].Samples > 0 })
	ends.Process.Kill()
	ends.Wait()
	eventually(t, "a program that ends meanwhile is not listed", func() bool { return h.ps(0)[ends.Process.Pid].PID == 0 })
	log := filepath.Join(t.TempDir(), "snapshot.eventlog")
	snapshot := background(t, command(t, ccagent, "snapshot", strconv.Itoa(p.Process.Pid), "--last", "1h", "-o", log, "--socket", h.socket))
	now, ok := procfs.ProcessTime(p.Process.Pid)
	if !ok {
		t.Fatal("the program has ended")
	}
	taken := h.ps(0)[p.Process.Pid].Samples
	thaw()

	eventually(t, "all logs are written again", func() bool { return h.status().Stalled == 0 })
	if s := h.status(); s != (health{}) {
		t.Errorf("the status is %+v", s)
	}
	if r := snapshot(); r.status != 0 {
		t.Errorf("a snapshot that was asked for meanwhile: status %d\n%s", r.status, r.stderr)
	}
	h.daemon.Process.Signal(unix.SIGTERM)
	if r := h.ended(); r.status != 0 || !strings.Contains(r.stderr, "logs cannot be written now") || !strings.Contains(r.stderr, "all logs are written again\n") {
		t.Errorf("the daemon ends with status %d\n%s", r.status, r.stderr)
	}
	expected := time.Duration(now-ns).Seconds() * 241 // as configured
	if kept := h.kept(p.Process.Pid); kept < taken || float64(kept-before) < expected/2 {
		t.Errorf("the pieces have %d of %d samples, of some %.0f while the disk was frozen", kept-before, taken-before, expected)
	}
	if h.kept(late.Process.Pid) == 0 || h.kept(ends.Process.Pid) == 0 {
		t.Error("nothing is left of programs that began or ended meanwhile")
	}
}

// metricOf is the sum of all series of a metric.
func metricOf(t *testing.T, at, name string) (sum float64) {
	t.Helper()
	for line := range strings.Lines(get(t, "http://"+at+"/metrics")) {
		if rest, ok := strings.CutPrefix(line, name); ok && (rest[0] == ' ' || rest[0] == '{') {
			n, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

// Where the disk takes nothing for so long that there is no room for what comes, that is dropped and counted: by the daemon, and in the log that
// lacks it, which is whole otherwise.
func TestDaemonFrozenForLong(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "pingpong", testprog.Options{Threaded: true})
	p := runOn(t, nil, exe, forever)
	h := newHost(t)
	at := freeAddress(t)
	h.more = "  metrics: " + at + "\n  events: [cpu-clock, threads]\n  process-overhead: 0\n"
	h.configure("  - {executable: pingpong, profile: true}\n  - {profile: false}\n")
	h.mountDisk()
	h.start()
	eventually(t, "a closed piece", func() bool { return len(h.closed(p.Process.Pid, 1)) > 0 })
	thaw := h.freeze()
	eventually(t, "events are dropped", func() bool { return h.status().Unwritten > 0 })
	thaw()
	eventually(t, "all logs are written again", func() bool { return h.status().Stalled == 0 })
	left := len(h.pieces(p.Process.Pid))
	eventually(t, "pieces are closed that began afterwards", func() bool { return len(h.closed(p.Process.Pid, left+1)) > left })
	s := h.status()
	if s.Problem != "" || s.Unwritten == 0 || s.Failed != 0 {
		t.Errorf("the status is %+v", s)
	}
	eventually(t, "metrics have what was dropped", func() bool { return metricOf(t, at, "ccagent_events_unwritten_total") == float64(s.Unwritten) })
	p.Process.Signal(unix.SIGSTOP) // there are many events
	h.daemon.Process.Signal(unix.SIGTERM)
	if r := h.ended(); r.status != 0 || !strings.Contains(r.stderr, " events were dropped, since the disk") {
		t.Errorf("the daemon ends with status %d\n%s", r.status, r.stderr)
	}
	if h.kept(p.Process.Pid) == 0 {
		t.Error("there are no samples")
	}
	told := false
	for _, path := range h.pieces(p.Process.Pid) {
		var info struct {
			Warnings []string
			Log      struct {
				Loss []struct{ Reason string }
			}
		}
		if r := run(t, command(t, ccview, "info", path, "--format", "json")); json.Unmarshal([]byte(r.stdout), &info) != nil {
			t.Fatal(r.stderr)
		}
		for _, w := range info.Warnings {
			told = told || strings.Contains(w, "events are missing: the disk was full or took nothing for too long")
		}
	}
	if !told {
		t.Error("no piece says what it lacks")
	}
}
