package hold

import (
	"errors"
	"os/exec"
	"testing"
	"time"

	"ccagent/agent/procfs"
	"ccagent/agent/sourcetest"
	"ccagent/internal/testprog"
)

// vforkProgram has a second thread which the kernel does not interrupt: it waits for a child that lives as long as there is no input. The first thread only sleeps.
const vforkProgram = `
#include <poll.h>
#include <pthread.h>
#include <unistd.h>
static void *deaf(void *unused)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	if (vfork() == 0) {
		(void)!write(1, "\n", 1);
		while (poll(&in, 1, -1) < 1)
			;
		_exit(0);
	}
	return unused;
}
int main(void)
{
	pthread_t other;
	if (pthread_create(&other, 0, deaf, 0) || pthread_join(other, 0))
		return 99;
	return 7;
}
`

// Where a thread does not stop in time, the others that were asked with it are let go on, none is left traced, and the program runs to its own end.
func TestStopAllInTime(t *testing.T) {
	testprog.NeedRoot(t)
	program := exec.Command(testprog.CompileC(t, vforkProgram, "-pthread"))
	in, out := testprog.Start(t, program)
	t.Cleanup(func() { _ = program.Process.Kill() })
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	pid := program.Process.Pid
	threads, err := procfs.Threads(pid)
	if err != nil || len(threads) != 2 {
		t.Fatal(threads, err)
	}
	other := threads[0].TID + threads[1].TID - pid
	for _, patience := range []time.Duration{0, time.Millisecond} {
		sourcetest.Until(t, "a thread has stopped that was asked after the one that does not", func() (held bool) {
			pause, err := Stilled(pid, func(s *Still) error {
				all, err := s.StopAll([]int{other, pid}, patience)
				_, held = s.held[pid]
				if all != nil {
					t.Errorf("patience %v: all are said to have stopped", patience)
				}
				return err
			})
			if !errors.Is(err, ErrLate) || pause < patience {
				t.Errorf("patience %v: %v after %v", patience, err, pause)
			}
			return held
		})
		sourcetest.Until(t, "no thread is traced", func() bool { return tracer(t, pid) == 0 && tracer(t, other) == 0 })
	}
	if err := in.Close(); err != nil {
		t.Fatal(err)
	}
	endsWith(t, program, 7)
}
