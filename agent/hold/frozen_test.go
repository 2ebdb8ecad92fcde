package hold

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ccagent/agent/procfs"
	"ccagent/internal/testprog"
)

// tracer is which process traces a thread, 0 if none does.
func tracer(t *testing.T, tid int) int {
	t.Helper()
	s, err := procfs.ReadStatus(tid)
	if err != nil {
		t.Fatal(err)
	}
	if s.Tracer == 0 {
		return 0
	}
	if s, err = procfs.ReadStatus(s.Tracer); err != nil {
		return 0 // the thread that did has ended
	}
	return s.TGID
}

// A process that is frozen is not traced while it is waited for, until it is thawed. One that is frozen when it is traced, so that no thread
// stops, is given up when the time is over, and let go of as soon as it is thawed.
func TestFrozen(t *testing.T) {
	for version, unified := range versions {
		t.Run(version, func(t *testing.T) { testFrozen(t, unified) })
	}
}

// versions are those of control groups, and whether a process is frozen in the unified hierarchy.
var versions = map[string]bool{"version 1": false, "version 2": true}

func testFrozen(t *testing.T, unified bool) {
	exe, cmd := collecting(t)
	pid := cmd.Process.Pid
	freeze, thaw := testprog.Freezer(t, pid, unified)
	defer func() {
		thaw()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	path, collect, nowhere := fmt.Sprintf("/proc/%d/exe", pid), procedure(t, exe, "GarbageCollect"), procedure(t, exe, "shutdownHaskellAndExit")

	freeze()
	if !procfs.Frozen(pid) {
		t.Error("it is not seen to be frozen")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- Running(ctx, pid, path, collect, func(int) error { return nil }) }()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if by := tracer(t, pid); by != 0 {
		t.Errorf("it is traced by %d", by)
	}
	go func() { done <- Running(t.Context(), pid, path, collect, func(int) error { return nil }) }()
	thaw()
	if err := <-done; err != nil {
		t.Errorf("after it was thawed: %v", err)
	}

	ctx, cancel = context.WithCancel(t.Context())
	go func() { done <- Running(ctx, pid, path, nowhere, func(int) error { return nil }) }()
	for tracer(t, pid) != os.Getpid() {
	}
	freeze()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	var traced *TracedError
	if _, err := Stilled(pid, func(*Still) error { return nil }); !errors.As(err, &traced) || !strings.Contains(err.Error(), "frozen") {
		t.Errorf("what is wrong is not said: %v", err)
	}
	// What this process has left that way does not keep it from being read.
	if err := WhileFrozen(pid, func(*Still) error { return nil }); err != nil {
		t.Error(err)
	}
	thaw()
	if err := Running(t.Context(), pid, path, collect, func(int) error { return nil }); err != nil {
		t.Errorf("after it was thawed: %v", err)
	}
}

// A thread that is frozen on its way to where it is to be held does not keep who waits for it: the thread is let go of when it is thawed.
func TestThreadFrozen(t *testing.T) {
	for version, unified := range versions {
		t.Run(version, func(t *testing.T) { testThreadFrozen(t, unified) })
	}
}

func testThreadFrozen(t *testing.T, unified bool) {
	testprog.NeedRoot(t)
	exe := testprog.CompileC(t, loopProgram, "-O1", "-pthread")
	program, end := begin(t, exe)
	pid := program.Process.Pid
	freeze, thaw := testprog.Freezer(t, pid, unified)
	ctx, cancel := context.WithCancel(t.Context())
	at := Ambush{Signal: unix.SIGURG, Arm: func() error { freeze(); cancel(); return nil }, Come: func() (bool, bool, error) { return false, false, nil }}
	err := UnlessStuck(ctx, pid, func(begin func() error) error { return Thread(ctx, pid, pid, at, begin) })
	if !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	thaw()
	for tracer(t, pid) != 0 {
	}
	end()
	endsWith(t, program, 7)
}

// registersOf reads the registers of all threads of a process that stands.
func registersOf(pid int, s *Still) (map[int]Registers, error) {
	threads, err := procfs.Threads(pid)
	if err != nil {
		return nil, err
	}
	all := map[int]Registers{}
	for _, thread := range threads {
		if all[thread.TID], err = s.Stop(thread.TID); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// waitProgram has threads that wait in different ways, and one that runs.
const waitProgram = `
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <time.h>
#include <unistd.h>
static sem_t never;
static void *in_poll(void *unused) { for (;;) poll(0, 0, -1); return unused; }
static void *in_sleep(void *unused) { for (;;) { struct timespec t = {1000, 0}; nanosleep(&t, 0); } return unused; }
static void *in_futex(void *unused) { for (;;) sem_wait(&never); return unused; }
static void *in_read(void *unused) { int p[2]; char c; if (pipe(p)) return 0; for (;;) if (read(p[0], &c, 1) == 1) break; return unused; }
static void *in_user(void *unused) { for (;;) __asm__ volatile(""); return unused; }
int main(void)
{
	void *(*all[])(void *) = {in_poll, in_sleep, in_futex, in_read, in_user};
	sem_init(&never, 0, 0);
	for (int i = 0; i < 5; i++) {
		pthread_t one;
		if (pthread_create(&one, 0, all[i], 0))
			return 99;
	}
	if (write(1, "\n", 1) != 1)
		return 99;
	for (;;)
		pause();
}
`

// The registers of frozen threads are those that a tracer sees when they are thawed, and have been stopped before they ran on; and who waits in a system
// call is known.
func TestRegistersOfFrozen(t *testing.T) {
	for version, unified := range versions {
		t.Run(version, func(t *testing.T) { testRegistersOfFrozen(t, unified) })
	}
}

func testRegistersOfFrozen(t *testing.T, unified bool) {
	testprog.NeedRoot(t)
	program := exec.CommandContext(t.Context(), testprog.CompileC(t, waitProgram, "-O1", "-pthread"))
	_, out := testprog.Start(t, program)
	t.Cleanup(func() { _ = program.Process.Kill(); _ = program.Wait() })
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	pid := program.Process.Pid
	freeze, thaw := testprog.Freezer(t, pid, unified)
	for sleeping := 0; sleeping != 5; { // all but the one that runs
		sleeping = 0
		threads, err := procfs.Threads(pid)
		if err != nil {
			t.Fatal(err)
		}
		for _, thread := range threads {
			if thread.State == 'S' {
				sleeping++
			}
		}
	}
	freeze()
	var frozen, again, stopped map[int]Registers
	for _, all := range []*map[int]Registers{&frozen, &again} {
		if err := WhileFrozen(pid, func(s *Still) (err error) {
			*all, err = registersOf(pid, s)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	if !reflect.DeepEqual(frozen, again) {
		t.Errorf("they differ from one time to the other:\n%+v\n%+v", frozen, again)
	}
	if by := tracer(t, pid); by != 0 {
		t.Errorf("it is traced by %d", by)
	}
	waiting := 0
	for _, r := range frozen {
		if r.Waits {
			waiting++
		}
	}
	if len(frozen) != 6 || waiting != 5 {
		t.Errorf("of %d threads %d wait: %+v", len(frozen), waiting, frozen)
	}
	if err := program.Process.Signal(unix.SIGSTOP); err != nil { // taken when it is thawed
		t.Fatal(err)
	}
	thaw()
	for state(t, pid, pid) != "T" {
	}
	if _, err := Stilled(pid, func(s *Still) (err error) {
		stopped, err = registersOf(pid, s)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	for tid, want := range stopped {
		got := frozen[tid]
		// A call that was left for the signal has a result by now: rax.
		got.General[0], want.General[0] = 0, 0
		if !reflect.DeepEqual(got, want) {
			t.Errorf("thread %d frozen:\n%+v\nand stopped:\n%+v", tid, got, want)
		}
	}
}

// What was read of a process that was thawed meanwhile, and frozen again, is not believed.
func TestThawedMeanwhile(t *testing.T) {
	for version, unified := range versions {
		t.Run(version, func(t *testing.T) { testThawedMeanwhile(t, unified) })
	}
}

func testThawedMeanwhile(t *testing.T, unified bool) {
	_, cmd := collecting(t)
	pid := cmd.Process.Pid
	freeze, thaw := testprog.Freezer(t, pid, unified)
	defer func() {
		thaw()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}()
	nothing := func() {}
	own := errors.New("own")
	for _, c := range []struct {
		name       string
		before, do func()
		want       error
	}{
		{"frozen", freeze, nothing, own},
		{"frozen again", nothing, func() {
			used, _, _ := procfs.CPUTime(pid)
			thaw()
			for now := used; now == used; now, _, _ = procfs.CPUTime(pid) {
			}
			freeze()
		}, ErrThawed},
		{"thawed", nothing, thaw, ErrThawed},
		{"not frozen", nothing, nothing, ErrThawed},
	} {
		c.before()
		if err := WhileFrozen(pid, func(*Still) error { c.do(); return own }); !errors.Is(err, c.want) {
			t.Errorf("%s: it ended with %v", c.name, err)
		}
	}
}
