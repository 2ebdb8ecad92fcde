package census

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"ccagent/agent/hold"
	"ccagent/agent/procfs"
	"ccagent/agent/sourcetest"
	"ccagent/internal/testprog"
)

// A thread that waits when its state is looked at, and begins a collection before it is stopped, is not taken for one that waits: the
// heap would be read in the middle of the collection.
func TestCollectionBegunBeforeTheStop(t *testing.T) {
	testprog.NeedRoot(t)
	const tries = 20 // it may be stopped between two collections, or not in time
	for range tries {
		cmd := exec.Command(testprog.Build(t, "spinner", testprog.Options{}), "collect", "1000000")
		cmd.Stderr = os.Stderr
		in, out := testprog.Start(t, cmd)
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		if _, err := io.ReadFull(out, make([]byte, len("ready\n"))); err != nil {
			t.Fatal(err)
		}
		p := &running{cmd: cmd}
		p.inspect(t)
		r, _, err := p.reader(t)
		if err != nil {
			t.Fatal(err)
		}
		sourcetest.Until(t, "it waits for a line", func() bool { return procfs.Asleep(r.PID) })
		stop := func() (bases []uint64, collects bool, err error) {
			_, err = hold.Stilled(r.PID, func(s *hold.Still) error {
				threads, err := r.stopAll(s, 0)
				if err == nil {
					bases, err = r.noCollection(threads)
					collects = errors.Is(err, ErrBusy)
				}
				return err
			})
			return bases, collects, err
		}
		sourcetest.Until(t, "it is seen to collect nothing", func() bool {
			bases, _, err := stop()
			return len(bases) == 0 && err == nil
		})
		began, _, _ := procfs.CPUTime(r.PID)
		r.looked = func(tid int) {
			if tid != r.PID {
				return
			}
			if _, err := in.Write([]byte("\n")); err != nil {
				t.Error(err)
			}
			sourcetest.Until(t, "it collects", func() bool {
				used, _, ok := procfs.CPUTime(r.PID)
				return ok && used > began+uint64(20*time.Millisecond)
			})
		}
		switch bases, collects, err := stop(); {
		case collects:
			return
		case err == nil && len(bases) == 0:
			t.Fatal("it was stopped in a collection, which was not seen")
		case err != nil && !errors.Is(err, ErrBusy):
			t.Fatal(err)
		}
	}
	t.Errorf("it was stopped in no collection in %d tries", tries)
}
