package agent

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/census"
	"ccagent/agent/dump"
	"ccagent/agent/procfs"
	"ccagent/agent/sourcetest"
	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// dumpOf is what a log of threads has: of each what does not depend on the log. known is set if some run, and all of these have their stacks.
func dumpOf(t *testing.T, pid int) (of *eventlog.ThreadDump, all map[uint64]string, known bool, err error) {
	t.Helper()
	sum, err := Threads(t.Context(), Options{PID: pid, Output: filepath.Join(t.TempDir(), "threads.eventlog"), Warn: func(string) {}})
	if err != nil {
		return nil, nil, false, err
	}
	log, err := os.ReadFile(sum.Log)
	if err != nil {
		t.Fatal(err)
	}
	all = map[uint64]string{}
	run, stacks := 0, 0
	for r := eventlog.NewReader(bytes.NewReader(log)); r.Next(); {
		switch e := r.Record().Event.(type) {
		case *eventlog.ThreadDump:
			of = e
		case *eventlog.HaskellThread:
			all[e.TSO] = fmt.Sprintf("state %v, on %d, bound %v, OS thread %d, moved %v, has a stack %v, stop %v, %d of %d bytes", e.State, e.On, e.Bound, e.TID, e.Moved, e.Node != 0, e.Stop, e.StackUsed, e.StackBytes)
			if e.State == eventlog.StateRunning {
				run++
				if e.Node != 0 && !e.Moved {
					stacks++
				}
			}
		}
	}
	return of, all, run > 0 && stacks == run, nil
}

// The threads of a program in a frozen control group are read without a stop, with the stacks of those that ran: the same as when it is thawed and has been stopped by a
// signal before it could run on.
func TestThreadsOfAFrozenProgram(t *testing.T) {
	for version, unified := range map[string]bool{"version 1": false, "version 2": true} {
		t.Run(version, func(t *testing.T) {
			cmd := spinner(t, testprog.Options{Threaded: true}, "pair", "50000", "+RTS", "-N2", "-RTS")
			pid := cmd.Process.Pid
			freeze, thaw := testprog.Freezer(t, pid, unified)
			defer thaw()
			var of *eventlog.ThreadDump
			var frozen map[uint64]string
			for tries, known := 0, false; !known; tries++ { // it may be frozen where a thread begins to run
				letRun(t, pid, thaw)
				freeze()
				var err error
				if of, frozen, known, err = dumpOf(t, pid); err != nil && !errors.Is(err, dump.ErrFrozenCollecting) || tries == mostTries {
					t.Fatal(err, frozen)
				}
			}
			if of.Stopped != 0 || of.PauseNs != 0 || len(of.Notes) != 0 || tracedBy(t, pid) != 0 {
				t.Errorf("it was stopped, or is traced: %+v", of)
			}
			if err := cmd.Process.Signal(unix.SIGSTOP); err != nil { // taken when it is thawed
				t.Fatal(err)
			}
			thaw()
			sourcetest.Until(t, "it is stopped", func() bool {
				threads, err := procfs.Threads(pid)
				return err == nil && threads[0].State == 'T'
			})
			_, stopped, _, err := dumpOf(t, pid)
			if err != nil {
				t.Fatal(err)
			}
			if !maps.Equal(frozen, stopped) {
				t.Errorf("frozen:\n%v\nstopped:\n%v", frozen, stopped)
			}
		})
	}
}

// A program that is frozen in the middle of a collection has neither a census nor a list of threads: both say at once why, and what to do, and have them when it is thawed.
func TestFrozenInACollection(t *testing.T) {
	testprog.NeedRoot(t)
	for version, unified := range map[string]bool{"version 1": false, "version 2": true} {
		t.Run(version, func(t *testing.T) {
			cmd := exec.Command(testprog.Build(t, "spinner", testprog.Options{Threaded: true}), "collect", "1000000")
			in, out := testprog.Start(t, cmd)
			t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
			if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
				t.Fatal(err)
			}
			if _, err := in.Write([]byte("\n")); err != nil {
				t.Fatal(err)
			}
			go func() { _, _ = io.Copy(io.Discard, out) }()
			pid := cmd.Process.Pid
			freeze, thaw := testprog.Freezer(t, pid, unified)
			defer thaw()
			count := func() error {
				_, err := Heap(t.Context(), HeapOptions{
					Options: Options{PID: pid, Output: filepath.Join(t.TempDir(), "heap.eventlog"), Warn: func(string) {}}, Wait: time.Millisecond,
				})
				return err
			}
			for tries := 0; ; tries++ { // it may be frozen between two collections
				freeze()
				err := count()
				if errors.Is(err, census.ErrFrozen) {
					if !strings.Contains(err.Error(), "thawed") {
						t.Errorf("the census: %v", err)
					}
					break
				}
				if err != nil || tries == mostTries {
					t.Fatal(tries, err)
				}
				thaw()
			}
			if _, _, _, err := dumpOf(t, pid); !errors.Is(err, dump.ErrFrozenCollecting) {
				t.Errorf("its threads: %v", err)
			}
			if by := tracedBy(t, pid); by != 0 {
				t.Errorf("%d of its threads are traced", by)
			}
			thaw()
			for tries := 0; ; tries++ {
				err := count()
				if err == nil {
					break
				}
				if !errors.Is(err, census.ErrBusy) || tries == mostTries {
					t.Fatal(err)
				}
			}
		})
	}
}
