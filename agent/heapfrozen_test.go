package agent

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/census"
	"ccagent/agent/procfs"
	"ccagent/agent/sourcetest"
	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// counted is what the log of a census has.
type counted struct {
	sum   *HeapSummary
	bands map[string]uint64                  // by closure type
	kinds map[eventlog.HeapBand]int          // of the graph
	roots map[eventlog.HeapRootKind][]uint64 // what each retains
}

// countAtRest takes a census at rest, with pointers.
func countAtRest(ctx context.Context, t *testing.T, pid int) (*counted, error) {
	t.Helper()
	c := &counted{bands: map[string]uint64{}, kinds: map[eventlog.HeapBand]int{}, roots: map[eventlog.HeapRootKind][]uint64{}}
	var err error
	c.sum, err = Heap(ctx, HeapOptions{
		Options: Options{PID: pid, Output: filepath.Join(t.TempDir(), "heap.eventlog"), Warn: func(string) {}},
		Wait:    time.Millisecond, Graph: true, GraphMemory: 1 << 29,
	})
	if err != nil {
		return nil, err
	}
	log, err := os.ReadFile(c.sum.Log)
	if err != nil {
		t.Fatal(err)
	}
	for r := eventlog.NewReader(bytes.NewReader(log)); r.Next(); {
		switch e := r.Record().Event.(type) {
		case *eventlog.HeapSampleString:
			c.bands[e.Label] += e.Bytes
		case *eventlog.HeapBand:
			c.kinds[*e]++
		case *eventlog.HeapRoot:
			c.roots[e.Kind] = append(c.roots[e.Kind], e.Retained)
		}
	}
	return c, nil
}

// sameCount compares two censuses of a process that has not run in between.
func sameCount(t *testing.T, what string, got, want *counted) {
	t.Helper()
	if !got.sum.AtRest || !got.sum.Graph.Complete || got.sum.Bytes == 0 {
		t.Errorf("%s: %+v, %+v", what, got.sum, got.sum.Graph)
	}
	if !maps.Equal(got.bands, want.bands) || !maps.Equal(got.kinds, want.kinds) || fmt.Sprint(got.roots) != fmt.Sprint(want.roots) {
		t.Errorf("%s:\n%+v\n%+v\n%+v\n%+v\n%+v\n%+v", what, got.bands, want.bands, got.kinds, want.kinds, got.roots, want.roots)
	}
	if g, w := got.sum.Graph, want.sum.Graph; g.Unreached != w.Unreached || g.Pointers != w.Pointers || g.Closures != w.Closures {
		t.Errorf("%s: %+v, %+v", what, g, w)
	}
}

// letRun thaws a process and waits until it has run: one that is frozen again at once, on a busy machine, is found where it was.
func letRun(t *testing.T, pid int, thaw func()) {
	t.Helper()
	used, _, _ := procfs.CPUTime(pid)
	thaw()
	sourcetest.Until(t, "it runs", func() bool {
		now, _, ok := procfs.CPUTime(pid)
		return ok && now > used
	})
}

// tracedBy counts the threads of a process that are traced.
func tracedBy(t *testing.T, pid int) (n int) {
	t.Helper()
	threads, err := procfs.Threads(pid)
	if err != nil {
		t.Fatal(err)
	}
	for _, thread := range threads {
		if s, err := procfs.ReadStatus(thread.TID); err == nil && s.Tracer != 0 {
			n++
		}
	}
	return n
}

// A program in a frozen control group, of which no thread can be stopped (version 1) or takes a signal (version 2), is counted as it is, with what its threads hold that
// run Haskell code: the same, to the byte, as when it is thawed and has been stopped by a signal before it could run on.
func TestCensusOfAFrozenProgram(t *testing.T) {
	if runtime.GOARCH != "amd64" {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "registers of x86-64"})
	}
	const n, token = 50000, 24
	o := testprog.Options{Threaded: true}
	for _, c := range []struct {
		mode    string
		of      testprog.Options
		args    []string
		held    uint64 // bytes of tokens that threads retain at the least, 0 where other roots do
		unified bool   // version 2
	}{
		{"pair", o, []string{"+RTS", "-N2", "-RTS"}, n * token, false},
		{"pair", testprog.Options{Threaded: true, Release: "9.6.6"}, []string{"+RTS", "-N2", "-RTS"}, n * token, false},
		{"pair", o, []string{"+RTS", "-N2", "-RTS"}, n * token, true},
		{"steady", o, nil, n * token, true},
		{"register", testprog.Options{}, nil, n * token, false},
		{"c", o, nil, n * token, false},
		{"below", o, nil, 0, false},
		{"steady", o, []string{"+RTS", "-N2", "-RTS"}, n * token, false},
	} {
		t.Run(fmt.Sprintf("%s %+v %v", c.mode, c.of, c.unified), func(t *testing.T) {
			cmd := spinner(t, c.of, append([]string{c.mode, fmt.Sprint(n)}, c.args...)...)
			pid := cmd.Process.Pid
			freeze, thaw := testprog.Freezer(t, pid, c.unified)
			defer thaw()
			var frozen *counted
			for tries := 0; frozen == nil; tries++ { // it may be frozen in a collection, or where a thread begins to run
				freeze()
				var err error
				frozen, err = countAtRest(t.Context(), t, pid)
				if err != nil && !errors.Is(err, census.ErrFrozen) || tries == mostTries {
					t.Fatal(err)
				}
				if err != nil || !frozen.sum.Graph.Complete {
					frozen = nil
					letRun(t, pid, thaw)
				}
			}
			if s := frozen.sum.Stops; s.Number != 0 || s.Sum != 0 {
				t.Errorf("it was stopped: %+v", s)
			}
			if by := tracedBy(t, pid); by != 0 {
				t.Errorf("%d of its threads are traced", by)
			}
			var most uint64
			for _, retained := range frozen.roots[eventlog.HeapRootThread] {
				most += retained
			}
			if most < c.held || frozen.sum.Graph.UnreachedBytes > 64<<10 && c.mode != "steady" {
				t.Errorf("its threads retain %d bytes, want %d; %d are reached from no root", most, c.held, frozen.sum.Graph.UnreachedBytes)
			}
			again, err := countAtRest(t.Context(), t, pid)
			if err != nil {
				t.Fatal(err)
			}
			sameCount(t, "frozen, and a moment later", again, frozen)
			if err := cmd.Process.Signal(unix.SIGSTOP); err != nil { // taken when it is thawed
				t.Fatal(err)
			}
			thaw()
			sourcetest.Until(t, "it is stopped", func() bool {
				threads, err := procfs.Threads(pid)
				return err == nil && threads[0].State == 'T'
			})
			stopped, err := countAtRest(t.Context(), t, pid)
			if err != nil {
				t.Fatal(err)
			}
			sameCount(t, "frozen and stopped", frozen, stopped)
			t.Logf("%d bytes in %d bands, %d threads retain %d", frozen.sum.Bytes, len(frozen.bands), len(frozen.roots[eventlog.HeapRootThread]), most)
		})
	}
}

// A program that is frozen when its collection is waited for, when it is traced already, is counted as it is, and let go of when it is thawed.
func TestCensusOfAProgramThatIsFrozenMeanwhile(t *testing.T) {
	for version, unified := range map[string]bool{"version 1": false, "version 2": true} {
		t.Run(version, func(t *testing.T) {
			cmd := spinner(t, testprog.Options{Threaded: true}, "pair", "50000", "+RTS", "-N2", "-RTS")
			pid := cmd.Process.Pid
			freeze, thaw := testprog.Freezer(t, pid, unified)
			defer thaw()
			done := make(chan error)
			var sum *HeapSummary
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				var err error
				sum, err = Heap(t.Context(), HeapOptions{
					Options: Options{PID: pid, Output: filepath.Join(t.TempDir(), "heap.eventlog"), Warn: func(string) {}},
					Wait:    time.Second, MaxPause: 5 * time.Millisecond,
				})
				cancel()
				done <- err
			}()
			// It makes no collection, and is traced until the time is over.
			sourcetest.Until(t, "it is traced", func() bool { return tracedBy(t, pid) > 0 || ctx.Err() != nil })
			freeze()
			if err := <-done; err != nil || !sum.AtRest || sum.Bytes == 0 {
				t.Errorf("%+v, %v", sum, err)
			}
			thaw()
			sourcetest.Until(t, "it is not traced", func() bool { return tracedBy(t, pid) == 0 })
			used, _, _ := procfs.CPUTime(pid)
			sourcetest.Until(t, "it runs", func() bool {
				now, _, ok := procfs.CPUTime(pid)
				return ok && now > used
			})
		})
	}
}
