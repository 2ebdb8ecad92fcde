package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"ccagent/agent/census"
	"ccagent/agent/procfs"
	"ccagent/agent/sourcetest"
	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// spinner starts the test program of that name, and returns once it has made its tokens.
func spinner(t *testing.T, o testprog.Options, args ...string) *exec.Cmd {
	t.Helper()
	testprog.NeedRoot(t)
	cmd := exec.Command(testprog.Build(t, "spinner", o), args...)
	_, out := testprog.Start(t, cmd)
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	ready := make([]byte, len("ready\n"))
	if _, err := io.ReadFull(out, ready); err != nil || string(ready) != "ready\n" {
		t.Fatalf("it says %q, %v", ready, err)
	}
	if args[0] == "below" {
		return cmd // it uses no CPU time, and what it holds is the same before its loop
	}
	// It is in its loop once it has used CPU time for more than writing that line.
	began, _, _ := procfs.CPUTime(cmd.Process.Pid)
	sourcetest.Until(t, "it is in its loop", func() bool {
		used, _, ok := procfs.CPUTime(cmd.Process.Pid)
		return ok && used > began+uint64(50*time.Millisecond)
	})
	return cmd
}

// graphOf takes a census at rest with pointers, and returns what it says of the closures of which there are n, and of roots.
func graphOf(t *testing.T, pid, n int) (sum *HeapSummary, tokens eventlog.HeapBand, roots []eventlog.HeapRoot) {
	t.Helper()
	h := HeapOptions{
		Options: Options{PID: pid, Output: filepath.Join(t.TempDir(), "heap.eventlog"), Warn: func(string) {}},
		Wait:    time.Millisecond, Graph: true, GraphMemory: 1 << 29,
	}
	// One that meets a major collection is not at rest; and where the thread is in the scheduler whenever it is stopped, or is not stopped in
	// time, what it holds is not known.
	for tries := 0; ; tries++ {
		var err error
		sum, err = Heap(t.Context(), h)
		if err != nil && (tries == mostTries || !errors.Is(err, census.ErrBusy)) {
			t.Fatal(err)
		}
		if err == nil && (tries == mostTries || sum.AtRest && sum.Graph.Complete) {
			break
		}
	}
	log, err := os.ReadFile(sum.Log)
	if err != nil {
		t.Fatal(err)
	}
	for r := eventlog.NewReader(bytes.NewReader(log)); r.Next(); {
		switch e := r.Record().Event.(type) {
		case *eventlog.HeapBand:
			if e.Count == uint64(n) && e.Bytes > tokens.Bytes {
				tokens = *e
			}
		case *eventlog.HeapRoot:
			roots = append(roots, *e)
		}
	}
	return sum, tokens, roots
}

// mostTries bounds what a busy machine makes necessary.
const mostTries = 100

// What only a thread that runs holds, in registers, on its stack, in what it has just allocated, or by its code, is alive: as much as the
// program has made.
func TestRunningThreadHolds(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "registers of x86-64"})
	}
	const n = 50000
	for _, o := range []testprog.Options{{}, {Threaded: true, Release: "9.6.6"}} {
		for _, mode := range []string{"register", "stack", "fresh", "code", "c", "below", "steady"} {
			t.Run(fmt.Sprintf("%s %+v", mode, o), func(t *testing.T) {
				cmd := spinner(t, o, mode, fmt.Sprint(n))
				const token = 24 // bytes
				for range 2 {
					sum, tokens, roots := graphOf(t, cmd.Process.Pid, n)
					g := sum.Graph
					held := tokens.Retained
					if !sum.AtRest || !g.Complete || tokens.Bytes < n*token {
						t.Fatalf("at rest: %v; %+v; %+v", sum.AtRest, g, tokens)
					}
					if p := sum.Stops; p.Number < 1 || p.Longest <= 0 || p.Sum < p.Longest || p.Number == 1 && p.Sum != p.Longest || g.PauseNs != uint64(p.Longest) {
						t.Errorf("it was stopped: %+v; the log says %d ns", p, g.PauseNs)
					}
					if held != n*token {
						t.Errorf("%d bytes of tokens are held; there are %d; %+v", held, tokens.Bytes, roots)
					}
					if garbage := g.UnreachedBytes; mode != "steady" && garbage > 64<<10 {
						t.Errorf("%d bytes of %d are reached from no root", garbage, g.Bytes)
					}
				}
			})
		}
	}
}
