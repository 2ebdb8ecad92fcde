package agent

import (
	"bufio"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/census"
	"ccagent/agent/hold"
	"ccagent/agent/procfs"
	"ccagent/agent/sourcetest"
	"ccagent/internal/testprog"
)

// restless is a program whose heap is counted while it forks, executes, is stopped, or ends.
type restless struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startRestless(t *testing.T, threaded bool, args ...string) *restless {
	t.Helper()
	testprog.NeedRoot(t)
	r := &restless{Cmd: exec.Command(testprog.Build(t, "restless", testprog.Options{Threaded: threaded}), args...)}
	r.Stderr = os.Stderr
	in, out := testprog.Start(t, r.Cmd)
	t.Cleanup(func() { _ = r.Process.Kill(); _ = r.Wait() })
	r.in, r.out = in, bufio.NewReader(out)
	if line, err := r.out.ReadString('\n'); line != "ready\n" {
		t.Fatalf("it says %q, %v", line, err)
	}
	go io.Copy(io.Discard, r.out)
	return r
}

// counts are the ways of taking a census.
var counts = map[string]HeapOptions{
	"all while it stands": {Wait: 10 * time.Second},
	"beside":              {Wait: 10 * time.Second, MaxPause: time.Nanosecond},
	"at rest":             {Wait: time.Nanosecond},
	"graph":               {Wait: 10 * time.Second, MaxPause: 5 * time.Millisecond, Graph: true, GraphMemory: 1 << 28},
}

// count takes a census. What happens to the program may keep it from being finished.
func (r *restless) count(ctx context.Context, t *testing.T, o HeapOptions) (*HeapSummary, error) {
	o.Options = Options{PID: r.Process.Pid, Output: filepath.Join(t.TempDir(), "heap.eventlog"), NoArgs: true, Warn: func(string) {}}
	return Heap(ctx, o)
}

// untouched checks that no thread is traced, or stopped by a tracer.
func (r *restless) untouched(t *testing.T) {
	t.Helper()
	threads, err := procfs.Threads(r.Process.Pid)
	if err != nil {
		return // it has ended
	}
	for _, thread := range threads {
		if s, err := procfs.ReadStatus(thread.TID); err == nil && s.Tracer != 0 || thread.State == 't' {
			t.Errorf("thread %d is in state %c, traced by %d", thread.TID, thread.State, s.Tracer)
		}
	}
}

// status waits for the program's end, and says how it did. If something of it is left standing it never comes, and the test
// runs into its time limit. A plain wait would take stops of its threads from who traces them in this process.
func (r *restless) status() string {
	if fd, err := unix.PidfdOpen(r.Process.Pid, 0); err == nil { // else it has ended
		defer unix.Close(fd)
		for err = unix.EINTR; errors.Is(err, unix.EINTR); {
			_, err = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
		}
	}
	if err := r.Wait(); err != nil {
		return err.Error()
	}
	return r.ProcessState.String()
}

// A program that forks, or starts others, while its heap is counted, and its children, end as they would.
func TestCensusOfAForkingProgram(t *testing.T) {
	for mode, threaded := range map[string]bool{"fork": true, "spawn": false} {
		t.Run(mode, func(t *testing.T) {
			r := startRestless(t, threaded, mode)
			for name, o := range counts {
				taken := 0
				// What the program does may keep one from being finished.
				for tries := 0; tries < 2 || taken == 0 && tries < 200; tries++ {
					sum, err := r.count(t.Context(), t, o)
					if err != nil {
						t.Logf("%s: %v", name, err)
					} else if sum.Bytes == 0 {
						t.Errorf("%s: it has counted nothing", name)
					} else {
						taken++
					}
					r.untouched(t)
				}
				if taken == 0 {
					t.Errorf("%s: no census was taken", name)
				}
			}
			if _, err := r.in.Write([]byte("\n")); err != nil {
				t.Fatal(err)
			}
			if s := r.status(); s != "exit status 7" {
				t.Errorf("it ended with %s", s)
			}
		})
	}
}

// A program that executes itself while its heap is counted goes on to its own end.
func TestCensusOfAnExecutingProgram(t *testing.T) {
	r := startRestless(t, false, "exec", "30")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan string, 1)
	go func() {
		ended <- r.status()
		cancel()
	}()
	tries := 0 // that it has outlived
	for ctx.Err() == nil {
		for name, o := range counts {
			if _, err := r.count(ctx, t, o); err != nil {
				t.Logf("%s: %v", name, err)
			}
			if ctx.Err() == nil {
				tries++
			}
		}
	}
	if s := <-ended; s != "exit status 7" {
		t.Errorf("it ended with %s", s)
	}
	if tries == 0 {
		t.Error("no census was tried while it executed itself")
	}
}

// A program that is killed at any moment of a census ends, and the census with it.
func TestCensusOfAKilledProgram(t *testing.T) {
	for name, o := range counts {
		t.Run(name, func(t *testing.T) {
			// A whole census says how long one takes here.
			r := startRestless(t, true, "fork")
			begun := time.Now()
			_, err := r.count(t.Context(), t, o)
			took := time.Since(begun)
			t.Logf("took %v; %v", took, err)
			for range 2 {
				time.AfterFunc(rand.N(took), func() { _ = r.Process.Kill() })
				for err := error(nil); err == nil; {
					_, err = r.count(t.Context(), t, o)
				}
				if s := r.status(); s != "signal: killed" {
					t.Errorf("it ended with %s", s)
				}
				r = startRestless(t, true, "fork")
			}
		})
	}
}

// A program that another process traces, or that a signal has stopped, is left as it is. The census fails with the reason, or
// is one at rest.
func TestCensusOfAStoppedProgram(t *testing.T) {
	r := startRestless(t, true, "fork")
	pid := r.Process.Pid
	_, err := hold.Stilled(pid, func(s *hold.Still) error {
		if _, err := s.Stop(pid); err != nil {
			return err
		}
		for name, o := range counts {
			o.Wait = min(o.Wait, 100*time.Millisecond)
			traced := (*hold.TracedError)(nil)
			if _, err := r.count(t.Context(), t, o); !errors.As(err, &traced) || traced.Tracer != os.Getpid() {
				t.Errorf("%s: of a traced program: %v", name, err)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	r.untouched(t)
	if err := r.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	stopped := func() bool {
		s, err := procfs.Threads(pid)
		return err == nil && len(s) > 0 && s[0].State == 'T'
	}
	sourcetest.Until(t, "it is stopped", stopped)
	for name, o := range counts {
		o.Wait = min(o.Wait, 100*time.Millisecond)
		sum, err := r.count(t.Context(), t, o)
		if err == nil && !sum.AtRest || err != nil && !errors.Is(err, census.ErrBusy) { // it may have been stopped in a collection
			t.Errorf("%s: of a stopped program: %+v, %v", name, sum, err)
		}
		r.untouched(t)
		sourcetest.Until(t, name+": it is stopped again", stopped)
	}
	if err := r.Process.Signal(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if _, err := r.in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if s := r.status(); s != "exit status 7" {
		t.Errorf("it ended with %s", s)
	}
}
