package hold

import (
	"context"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/procfs"
	"ccagent/internal/testprog"
)

// holderVariable has this test's own program hold a running one.
const holderVariable = "CCAGENT_TEST_HOLDER"

func TestMain(m *testing.M) {
	if os.Getenv(holderVariable) != "" {
		fmt.Fprintln(os.Stderr, beHolder(os.Args[1], os.Args[2], os.Args[3]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// beHolder holds a process, and says when a thread stands: at an offset of its program, after the
// one at gate if that is not 0, or all threads wherever they are if both are 0.
func beHolder(process, offset, gate string) error {
	pid, err := strconv.Atoi(process)
	if err != nil {
		return err
	}
	at, err := strconv.ParseUint(offset, 10, 64)
	if err != nil {
		return err
	}
	first, err := strconv.ParseUint(gate, 10, 64)
	if err != nil {
		return err
	}
	held := func() error {
		fmt.Println("held")
		for { // in a system call: where all goroutines wait for another, Go ends the program
			_, _ = unix.Poll(nil, -1)
		}
	}
	exe := fmt.Sprintf("/proc/%d/exe", pid)
	switch {
	case at == 0:
		_, err := Stilled(pid, func(s *Still) error {
			threads, err := procfs.Threads(pid)
			for _, thread := range threads {
				if err == nil {
					_, err = s.Stop(thread.TID)
				}
			}
			if err != nil {
				return err
			}
			return held()
		})
		return err
	case first == oneThread:
		return onThread(func() error { return Thread(context.Background(), pid, pid, ambush(pid, exe, at), held) })
	case first != 0:
		return Gated(context.Background(), pid, exe, at, Gate{Offset: first, Least: 3}, func(int, uint64) error { return held() })
	}
	return Running(context.Background(), pid, exe, at, func(int) error { return held() })
}

// oneThread in place of a gate has the first thread alone traced.
const oneThread = 1

// ambush holds a thread at an offset of a file.
func ambush(pid int, path string, at uint64) Ambush {
	var point *Point
	return Ambush{
		Signal: unix.SIGURG,
		Arm: func() (err error) {
			point, err = NewPoint(pid, path, at)
			return err
		},
		Come: func() (bool, bool, error) {
			tid, _, err := point.program.Thread()
			return tid != 0, false, err
		},
	}
}

// loopProgram executes often() again and again until it has input, and never() only where it has
// an argument. A second thread only sleeps.
const loopProgram = `
#include <poll.h>
#include <pthread.h>
#include <unistd.h>
__attribute__((noinline)) void often(void) { __asm__ volatile(""); }
__attribute__((noinline)) void gate(int n) { __asm__ volatile("" : : "r"(n)); }
__attribute__((noinline)) void closed(int n) { __asm__ volatile("" : : "r"(n)); }
__attribute__((noinline)) void never(void) { __asm__ volatile(""); }
static void *live(void *unused) { for (;;) pause(); return unused; }
int main(int argc, char **argv)
{
	struct pollfd in = { .fd = 0, .events = POLLIN };
	pthread_t other;
	(void)argv;
	if (argc > 1)
		never();
	if (pthread_create(&other, 0, live, 0) || write(1, "\n", 1) != 1)
		return 99;
	while (poll(&in, 1, 1) == 0) {
		gate(3);
		closed(2);
		often();
	}
	return 7;
}
`

// Whatever the process has come to when the one who holds it is killed, it runs to its own
// end.
func TestProcessSurvivesTheHolder(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.CompileC(t, loopProgram, "-O1", "-pthread")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, place, gate string
		stands            bool
	}{
		{"often", "often", "", true}, {"never", "never", "", false}, {"gated", "often", "gate", true},
		{"not let through", "often", "closed", false}, {"all threads", "", "", true},
		{"one thread", "often", "1", true}, {"one thread never", "never", "1", false},
	} {
		stands := c.stands
		t.Run(c.name, func(t *testing.T) {
			offset := func(name string) string {
				switch name {
				case "":
					return "0"
				case "1":
					return strconv.Itoa(oneThread)
				}
				return strconv.FormatUint(procedure(t, exe, name), 10)
			}
			program := exec.CommandContext(t.Context(), exe)
			end, err := program.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			begun, err := program.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := program.Start(); err != nil {
				t.Fatal(err)
			}
			defer program.Process.Kill()
			if _, err := begun.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			pid := program.Process.Pid
			holder := exec.CommandContext(t.Context(), self, strconv.Itoa(pid), offset(c.place), offset(c.gate))
			holder.Env = append(os.Environ(), holderVariable+"=1")
			holder.Stderr = os.Stderr
			held, err := holder.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := holder.Start(); err != nil {
				t.Fatal(err)
			}
			defer holder.Process.Kill()
			if stands {
				if _, err := held.Read(make([]byte, 1)); err != nil {
					t.Fatal(err)
				}
				if s := state(t, pid, pid); s != "t" {
					t.Errorf("the thread is in state %q, not stopped by its tracer", s)
				}
			} else {
				for tracer := 0; tracer == 0; {
					if state(t, holder.Process.Pid, holder.Process.Pid) == "Z" {
						t.Fatal("the holder has ended")
					}
					s, err := procfs.ReadStatus(pid)
					if err != nil {
						t.Fatal(err)
					}
					tracer = s.Tracer
				}
			}
			if err := holder.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := holder.Wait(); err == nil {
				t.Error("the holder ended well")
			}
			if s, err := procfs.ReadStatus(pid); err != nil || s.Tracer != 0 {
				t.Errorf("it is traced by %d; %v", s.Tracer, err)
			}
			if _, err := end.Write([]byte{0}); err != nil {
				t.Error(err)
			}
			if err := program.Wait(); program.ProcessState.ExitCode() != 7 {
				t.Errorf("the program ended with %v", err)
			}
		})
	}
}

// One thread is traced alone; what has passed the point, what is stopped and what is not waited for any longer
// is let go.
func TestOneThread(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.CompileC(t, loopProgram, "-O1", "-pthread")
	program := exec.CommandContext(t.Context(), exe)
	if _, err := program.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	begun, err := program.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	defer program.Wait()
	defer program.Process.Kill()
	if _, err := begun.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	pid := program.Process.Pid
	path := fmt.Sprintf("/proc/%d/exe", pid)
	untraced := func() {
		t.Helper()
		if s, err := procfs.ReadStatus(pid); err != nil || s.Tracer != 0 {
			t.Fatalf("it is traced by %d; %v", s.Tracer, err)
		}
	}
	stood := errors.New("stood")
	often := ambush(pid, path, procedure(t, exe, "often"))
	err = onThread(func() error {
		return Thread(t.Context(), pid, pid, often, func() error {
			threads, err := procfs.Threads(pid)
			for _, thread := range threads {
				if s, err := procfs.ReadStatus(thread.TID); err != nil || (s.Tracer != 0) != (thread.TID == pid) {
					t.Errorf("thread %d of %d is traced by %d; %v", thread.TID, pid, s.Tracer, err)
				}
			}
			if s := state(t, pid, pid); s != "t" || len(threads) != 2 || err != nil {
				t.Errorf("of %d threads, the first is in state %q; %v", len(threads), s, err)
			}
			return stood
		})
	})
	if !errors.Is(err, stood) {
		t.Errorf("it ended with %v", err)
	}
	untraced()

	passed := Ambush{Signal: unix.SIGURG, Arm: func() error { return nil }, Come: func() (bool, bool, error) { return false, true, nil }}
	if err := onThread(func() error { return Thread(t.Context(), pid, pid, passed, nil) }); !errors.Is(err, ErrPassed) {
		t.Errorf("a thread that has passed: %v", err)
	}
	untraced()

	ctx, cancel := context.WithCancel(t.Context())
	never := Ambush{Signal: unix.SIGURG, Arm: func() error { cancel(); return nil }, Come: func() (bool, bool, error) { return false, false, nil }}
	if err := onThread(func() error { return Thread(ctx, pid, pid, never, nil) }); !errors.Is(err, context.Canceled) {
		t.Errorf("a thread that is not waited for: %v", err)
	}
	untraced()

	stop := Ambush{Signal: unix.SIGURG, Arm: func() error { return program.Process.Signal(unix.SIGSTOP) }, Come: never.Come}
	if err := onThread(func() error { return Thread(t.Context(), pid, pid, stop, nil) }); !errors.Is(err, ErrStopped) {
		t.Errorf("a process that was stopped: %v", err)
	}
	untraced()
	for state(t, pid, pid) != "T" { // it is on its way to be stopped, or is
	}
	if err := program.Process.Signal(unix.SIGCONT); err != nil {
		t.Error(err)
	}
	for state(t, pid, pid) == "T" {
	}
}

// procedure returns the place in a program's file of a procedure.
func procedure(t *testing.T, exe, name string) uint64 {
	t.Helper()
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		for _, p := range f.Progs {
			if s.Name == name && p.Type == elf.PT_LOAD && s.Value >= p.Vaddr && s.Value < p.Vaddr+p.Filesz {
				return s.Value - p.Vaddr + p.Off
			}
		}
	}
	t.Fatalf("%s has no %s", exe, name)
	return 0
}

func state(t *testing.T, pid, tid int) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "State:\t")
	return rest[:1]
}

// collecting starts a program that collects its heap again and again, of root's, which ends with the test.
func collecting(t *testing.T) (exe string, cmd *exec.Cmd) {
	t.Helper()
	testprog.NeedRoot(t)
	exe = testprog.Build(t, "maps", testprog.Options{Threaded: true, NoDebug: true})
	cmd = exec.CommandContext(t.Context(), exe, "20000", "1000000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed
	})
	testprog.WaitExecuted(t, cmd.Process.Pid)
	return exe, cmd
}

// A thread of a running program stands at the point, again and again, and is let go of;
// meanwhile nobody else can hold it, and who tries gets an error that names the tracer.
func TestRunningIsHeldAndLetGo(t *testing.T) {
	exe, cmd := collecting(t)
	pid := cmd.Process.Pid
	path, offset := fmt.Sprintf("/proc/%d/exe", pid), procedure(t, exe, "GarbageCollect")
	for range 3 {
		begun := time.Now()
		stood := false
		err := Running(t.Context(), pid, path, offset, func(tid int) error {
			stood = true
			if s := state(t, pid, tid); s != "t" {
				t.Errorf("the thread is in state %q, not stopped by its tracer", s)
			}
			var traced *TracedError
			err := Running(t.Context(), pid, path, offset, func(int) error { return nil })
			if !errors.As(err, &traced) || traced.Tracer != os.Getpid() {
				t.Errorf("a second one gets %v", err)
			}
			return nil
		})
		if err != nil || !stood {
			t.Fatalf("it stood: %v; %v", stood, err)
		}
		t.Logf("held after %v", time.Since(begun))
		if s, err := procfs.ReadStatus(pid); err != nil || s.Tracer != 0 {
			t.Fatalf("it is traced by %d; %v", s.Tracer, err)
		}
	}
	// A place that no thread comes to is given up.
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Running(ctx, pid, path, procedure(t, exe, "shutdownHaskellAndExit"), func(int) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("it ended with %v", err)
	}
	if err := cmd.Process.Signal(unix.Signal(0)); err != nil {
		t.Error(err)
	}
}

// stormProgram starts a thread after the other, each of which ends at once.
const stormProgram = `
#include <pthread.h>
static void *brief(void *unused) { return unused; }
int main(void)
{
	for (;;) {
		pthread_t one;
		if (pthread_create(&one, 0, brief, 0) || pthread_join(one, 0))
			return 99;
	}
}
`

// Whenever a process is let go of, none of its threads is left traced, also not one that was
// started in that moment: it would stand still for ever.
func TestNoThreadIsLeftTraced(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.CompileC(t, stormProgram, "-O1", "-pthread")
	program := exec.CommandContext(t.Context(), exe)
	if err := program.Start(); err != nil {
		t.Fatal(err)
	}
	defer program.Wait()
	defer program.Process.Kill()
	if err := onThread(func() error { return seizeAgainAndAgain(program.Process.Pid) }); err != nil {
		t.Fatal(err)
	}
}

func seizeAgainAndAgain(pid int) error {
	for range 200 {
		s := seized{pid: pid, threads: map[int]bool{}, gone: map[int]bool{}}
		err := s.seize()
		if err := errors.Join(err, s.letGo()); err != nil {
			return err
		}
		entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return err
		}
		for _, e := range entries {
			tid, _ := strconv.Atoi(e.Name())
			if status, err := procfs.ReadStatus(tid); err == nil && status.Tracer != 0 {
				return fmt.Errorf("thread %d is traced by %d", tid, status.Tracer)
			}
		}
	}
	return nil
}
