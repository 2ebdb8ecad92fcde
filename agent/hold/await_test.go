package hold

import (
	"errors"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/sys/unix"

	"ccagent/internal/testprog"
)

// begin starts loopProgram. It ends with status 7 when its input is closed.
func begin(t *testing.T, exe string) (program *exec.Cmd, end func()) {
	t.Helper()
	program = exec.CommandContext(t.Context(), exe)
	in, out := testprog.Start(t, program)
	t.Cleanup(func() { _ = program.Process.Kill() })
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	return program, func() { _ = in.Close() }
}

// endsWith checks the exit status that the one who has started a program gets.
func endsWith(t *testing.T, program *exec.Cmd, want int) {
	t.Helper()
	var exit *exec.ExitError
	if err := program.Wait(); !errors.As(err, &exit) || exit.ExitCode() != want {
		t.Errorf("it ended with %v, want status %d", err, want)
	}
}

// A program that this process has started, and that ends while it is traced, has its exit status kept for who waits for it, however
// its threads are traced.
func TestExitStatusOfOwnChild(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.CompileC(t, loopProgram, "-O1", "-pthread")
	for name, watch := range map[string]func(pid int, end func()) error{
		"all threads": func(pid int, end func()) error {
			return onThread(func() error {
				s := seized{pid: pid, threads: map[int]bool{}, gone: map[int]bool{}}
				if err := s.seize(); err != nil {
					return err
				}
				end()
				for {
					tid, status, err := s.wait()
					if err != nil {
						return err
					}
					s.goOn(tid, status)
				}
			})
		},
		"one thread": func(pid int, end func()) error {
			return onThread(func() error {
				never := func() (bool, bool, error) { return false, false, nil }
				return Thread(t.Context(), pid, pid, Ambush{Signal: unix.SIGURG, Arm: func() error { end(); return nil }, Come: never}, nil)
			})
		},
		"stopped": func(pid int, end func()) error {
			_, err := Stilled(pid, func(s *Still) error {
				if _, err := s.Stop(pid); err != nil {
					return err
				}
				end()
				delete(s.held, pid)
				if err := unix.PtraceCont(pid, 0); err != nil {
					return err
				}
				for {
					if _, err := s.collect(pid); err != nil {
						return err
					}
					pollStop()
				}
			})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			program, end := begin(t, exe)
			if err := watch(program.Process.Pid, end); !errors.Is(err, ErrEnded) {
				t.Errorf("the wait for it ends with %v", err)
			}
			endsWith(t, program, 7)
		})
	}
}

// Tracing is not left to an OS thread that has children: their ends would be taken for news of what is traced.
func TestOwnThreadHasNoChildren(t *testing.T) {
	if _, err := os.Stat("/proc/thread-self/children"); err != nil {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "a kernel that lists the children of a thread (CONFIG_PROC_CHILDREN)"})
	}
	done := make(chan struct{})
	go OnOwnThread(func() {
		defer close(done)
		if err := notBesideChildren(); err != nil {
			t.Error(err)
		}
	})
	<-done
}

// notBesideChildren starts a process from this OS thread, which is not the main one, and calls OnOwnThread on it.
func notBesideChildren() error {
	program := exec.Command("cat")
	if _, err := program.StdinPipe(); err != nil {
		return err
	}
	if err := program.Start(); err != nil {
		return err
	}
	defer program.Wait()
	defer program.Process.Kill()
	if !hasChildren() {
		return errors.New("the thread that started a process has no children")
	}
	err := errors.New("it was not called")
	parent := unix.Gettid()
	OnOwnThread(func() {
		err = nil
		if unix.Gettid() == parent || hasChildren() {
			err = errors.New("it is called on a thread that has children")
		}
	})
	return err
}
