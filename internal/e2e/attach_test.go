package e2e

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"

	"golang.org/x/sys/unix"
)

func pidOf(cmd *exec.Cmd) string { return fmt.Sprint(cmd.Process.Pid) }

// Attaching samples the threads that exist and those that are created during the capture.
func TestAttachFollowsThreads(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "threads100", testprog.Options{Threaded: true})
	target := command(t, exe, "5000", "100", "4", "lines", "+RTS", "-N2")
	out, lines := linePipe(t)
	target.Stdout = out
	begin, err := target.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	waitTarget := background(t, target)
	out.Close()
	text := ""
	for range 100 {
		text += lines.want(t, "thread") + "\n"
	}

	log := filepath.Join(t.TempDir(), "run.eventlog")
	wait := background(t, command(t, ccagent, "attach", "--max-overhead", "0", "-F", "997", "-o", log, pidOf(target)))
	eventually(t, "a sample is in the log", func() bool { return has(log, isSample) })
	// Both halves of the program are in the capture as a whole.
	if _, err := begin.Write([]byte("\n\n")); err != nil {
		t.Fatal(err)
	}
	if r := wait(); r.status != 0 {
		t.Fatalf("ccagent attach: status %d\n%s", r.status, r.stderr)
	}
	if tr := waitTarget(); tr.status != 0 {
		t.Fatalf("the program ended with status %d\n%s", tr.status, tr.stderr)
	}
	for range 4 {
		text += lines.want(t, "bound") + "\n"
	}
	l := readLog(t, log)
	l.wantWhole(t)
	if l.capture.Mode != eventlog.CaptureAttach || l.end.Reason != eventlog.EndExited {
		t.Errorf("the log says mode %v, end %v", l.capture.Mode, l.end.Reason)
	}
	sampled := map[uint64]int{}
	for _, s := range l.samples {
		if frames := l.frames(s); len(frames) > 0 && l.source(frames[0]) == "bottom" {
			sampled[s.TSO]++
		}
	}
	for tso, th := range parseThreads(t, text) {
		if sampled[tso] == 0 {
			t.Errorf("thread %d (bound: %v) has no sample", tso, th.bound)
		}
	}
}

// --duration and ctrl-c end the capture and leave the program running.
func TestAttachEnds(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "spin31", testprog.Options{})
	target := command(t, exe, endless)
	begin(t, target)
	alive := func() {
		t.Helper()
		if err := target.Process.Signal(syscall.Signal(0)); err != nil {
			t.Fatalf("the program is gone: %v", err)
		}
	}

	log := filepath.Join(t.TempDir(), "duration.eventlog")
	if r := run(t, command(t, ccagent, "attach", "-F", "997", "--duration", "1s", "-o", log, pidOf(target))); r.status != 0 {
		t.Fatalf("--duration: status %d\n%s", r.status, r.stderr)
	}
	alive()
	l := readLog(t, log)
	l.wantWhole(t)
	if l.end.Reason != eventlog.EndDuration {
		t.Errorf("--duration: the log says %v ended it", l.end.Reason)
	}
	hotOf(t, log).element(t, "Main.three")

	for _, sig := range []syscall.Signal{unix.SIGINT, unix.SIGTERM} {
		log := filepath.Join(t.TempDir(), "signal.eventlog")
		cmd := command(t, ccagent, "attach", "-o", log, pidOf(target))
		wait := background(t, cmd)
		eventually(t, "a log with samples", func() bool { return has(log, isSample) })
		if err := cmd.Process.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if r := wait(); r.status != 0 {
			t.Fatalf("%v: status %d\n%s", sig, r.status, r.stderr)
		}
		alive()
		l := readLog(t, log)
		l.wantWhole(t)
		if l.end.Reason != eventlog.EndInterrupted || len(l.samples) == 0 {
			t.Errorf("%v: the log says %v ended it, with %d samples", sig, l.end.Reason, len(l.samples))
		}
	}
}

func TestAttachToNothing(t *testing.T) {
	testprog.NeedRoot(t)
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	r := run(t, command(t, ccagent, "attach", pidOf(gone)))
	if r.status != 125 {
		t.Errorf("status %d, want 125", r.status)
	}
	wantLine(t, r.stderr, pidOf(gone), "no process")
}

// A process that sleeps gives no sample, and that is an error.
func TestAttachToIdleProcess(t *testing.T) {
	testprog.NeedRoot(t)
	target := command(t, "sleep", "1000")
	begin(t, target)
	eventually(t, "it sleeps", func() bool { return strings.Contains(stateOf(t, target.Process.Pid), "S (sleeping)") })
	r := run(t, command(t, ccagent, "attach", "--duration", "100ms", "-o", filepath.Join(t.TempDir(), "l"), pidOf(target)))
	if r.status != 125 {
		t.Errorf("status %d, want 125", r.status)
	}
	wantLine(t, r.stderr, "no sample")
	if strings.Contains(r.stderr, "panic") {
		t.Error(r.stderr)
	}
}

// That an idle program had no collection, no switch of threads and no wait is a result where these were watched: the log is
// written, and the command says that there is no sample.
func TestNothingHappenedIsAResult(t *testing.T) {
	testprog.NeedRoot(t)
	target := command(t, testprog.Build(t, "waits", testprog.Options{}), "1000000")
	begin(t, target)
	eventually(t, "it sleeps", func() bool { return strings.Contains(stateOf(t, target.Process.Pid), "S (sleeping)") })
	log := filepath.Join(t.TempDir(), "l")
	r := run(t, command(t, ccagent, "attach", "-e", "gc,threads,off-cpu", "--duration", "100ms", "-o", log, pidOf(target)))
	if r.status != 0 {
		t.Errorf("status %d, want 0: %s", r.status, r.stderr)
	}
	wantLine(t, r.stderr, "no sample was taken", "no thread waited")
	if r := run(t, command(t, ccview, "info", log)); r.status != 0 {
		t.Errorf("the log is not readable: %s", r.stderr)
	}
}
