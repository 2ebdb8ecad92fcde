package dump

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"ccagent/agent/invoker"
	"ccagent/agent/process"
	"ccagent/agent/sink"
	"ccagent/heap/threads"
	"ccagent/internal/ghc"
	"ccagent/internal/testprog"
)

// start runs the program crowd until it stands, and returns its image.
func start(t *testing.T, args ...string) *process.Image {
	t.Helper()
	testprog.NeedRoot(t)
	cmd := exec.Command(testprog.Build(t, "crowd", testprog.Options{Threaded: true}), append(args, "+RTS", "-N2")...)
	in, out := testprog.Start(t, cmd)
	t.Cleanup(func() {
		in.Close()
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait() // how it ends is of no interest
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatalf("the program says %q (%v)", line, err)
	}
	im := discover(t, cmd.Process.Pid, cmd.Path)
	if im.RTS == nil {
		t.Fatal("no Haskell program is seen")
	}
	return im
}

// discover returns the image of a process.
func discover(t *testing.T, pid int, path string) *process.Image {
	t.Helper()
	who, err := invoker.Find("")
	if err != nil {
		t.Fatal(err)
	}
	log := sink.New(sink.Config{Who: who})
	t.Cleanup(func() { _ = log.Close() })
	if err := log.Create(filepath.Join(t.TempDir(), "some.eventlog"), path, pid); err != nil {
		t.Fatal(err)
	}
	table := process.NewUnwalked(sink.NewSet(nil, log))
	t.Cleanup(func() { _ = table.Close() })
	im, err := table.Discover(log, uint32(pid), "", path, false)
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// Whatever part of a process's memory can be copied while its threads stand, all threads that wait are read with their
// stacks; those are believed that stood still, though collections of younger ones run.
func TestStoppedTooShort(t *testing.T) {
	const waiting = 2000
	for _, mode := range []string{"spin", "alloc", "fork"} {
		for _, copying := range []time.Duration{0, time.Hour} {
			if mode == "fork" && copying == 0 {
				continue // it collects all generations while its threads are read
			}
			t.Run(fmt.Sprint(mode, " ", copying), func(t *testing.T) {
				im, whole := start(t, fmt.Sprint(waiting), "8", mode), 0
				// By "fork" it now and then collects all generations, after which no thread is believed to have stood still.
				for tries := 0; whole < waiting && (tries == 0 || mode == "fork" && tries < 20); tries++ {
					whole = wholeThreads(t, im, mode, copying)
				}
				if whole < waiting {
					t.Errorf("%d threads stood and are read as a whole, %d wait", whole, waiting)
				}
			})
		}
	}
}

// wholeThreads takes a dump, with so much time to copy memory, and counts the threads that wait and are read as a whole.
func wholeThreads(t *testing.T, im *process.Image, mode string, copying time.Duration) (whole int) {
	t.Helper()
	tk := newTaker(t.Context(), im)
	tk.copying = copying
	var err error
	if tk.generations, _, err = Generations(t.Context(), tk.im, tk.reader); err != nil {
		t.Fatal(err)
	}
	d, err := tk.take()
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.Threads {
		th := &d.Threads[i]
		if th.Stood && th.Why == ghc.BlockedOnMVar && th.Stack.Stop == threads.StopRoot {
			whole++
		}
		if late := th.Late && copying > 0 && mode == "spin"; late {
			t.Errorf("thread %d was not copied", th.ID)
		}
		if tk.held && copying == 0 && !th.Late && !th.Ended() {
			t.Errorf("thread %d was copied in no time", th.ID)
		}
	}
	checkRunning(t, tk)
	return whole
}

// checkRunning checks two things of a dump for which threads were stopped: the stack of a thread that ran is there only
// where all of it was copied, and the dump has the number of stops and for how long the program stood.
func checkRunning(t *testing.T, tk *taker) {
	t.Helper()
	d := tk.d
	if tk.held && (d.Stops == 0 || d.Stopped == 0 || d.Pause <= 0 || d.Stood < d.Pause) {
		t.Errorf("%d stops of %d OS threads for %v, %v altogether", d.Stops, d.Stopped, d.Pause, d.Stood)
	}
	for _, os := range d.OS {
		if !tk.held || os.Role != Runs {
			continue
		}
		switch th := &d.Threads[os.TSO]; th.Stack.Stop {
		case threads.StopNotTaken: // it ran only afterwards
		case threads.StopMoved:
			if !th.Late || th.Stood {
				t.Errorf("thread %d has no stack: late %v, stood %v", th.ID, th.Late, th.Stood)
			}
		default:
			if th.Late || !th.Stood {
				t.Errorf("thread %d, which ran on, has a stack: late %v, stood %v", th.ID, th.Late, th.Stood)
			}
		}
	}
}
