package target

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ccagent/agent/invoker"
	"ccagent/internal/testprog"
)

// stageVariable has this test's own program be an agent which starts a program, and stops
// at that stage of its start.
const stageVariable = "CCAGENT_TEST_STAGE"

// The stages of a program's start.
const (
	standsAtExec  = "stands at its first instruction"
	inItsLoader   = "runs its loader"
	standsAtEntry = "stands at its entry"
	runs          = "runs"
)

func TestMain(m *testing.M) {
	if stage := os.Getenv(stageVariable); stage != "" {
		os.Unsetenv(stageVariable)
		fmt.Fprintln(os.Stderr, beAgent(stage))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// beAgent starts the program of the arguments, says which process it is when it has come
// to the stage, and panics when it reads anything.
func beAgent(stage string) error {
	go func() {
		if n, _ := os.Stdin.Read(make([]byte, 1)); n > 0 {
			panic("as the test asks")
		}
	}()
	devNull, err := os.Open(os.DevNull)
	if err != nil {
		return err
	}
	environ := append(os.Environ(), "LD_PRELOAD="+os.Getenv("CCAGENT_TEST_PRELOAD"))
	p, err := Start(os.Args[1:], &invoker.User{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Environ: environ}, [3]*os.File{devNull, os.Stderr, os.Stderr})
	if err != nil {
		return err
	}
	reached := func(at string) {
		if at == stage {
			fmt.Println(p.PID)
			select {}
		}
	}
	reached(standsAtExec)
	if stage == inItsLoader {
		fmt.Println(p.PID)
	}
	if err := p.Run(func() error { reached(standsAtEntry); return nil }); err != nil {
		return err
	}
	if err := p.Unheld(); err != nil {
		return err
	}
	reached(runs)
	select {}
}

// waitingLibrary is a library whose initialisation writes to one FIFO and then waits for input
// from another.
const waitingLibrary = `
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>
__attribute__((constructor)) static void wait_in_loader(void)
{
	char c = 0;
	int there = open(getenv("CCAGENT_TEST_THERE"), O_WRONLY), go = open(getenv("CCAGENT_TEST_GO"), O_RDONLY);
	if (write(there, &c, 1) != 1 || read(go, &c, 1) != 1)
		_exit(99);
}
`

// However the agent ends, and whatever the program that it has started has come to, the
// program runs to its own end.
func TestProgramSurvivesTheAgent(t *testing.T) {
	testprog.NeedRoot(t)
	library := testprog.CompileC(t, waitingLibrary, "-shared", "-fPIC")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// Programs whose agent has ended become this process's children, to be waited for.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	defer unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
	for _, stage := range []string{standsAtExec, inItsLoader, standsAtEntry, runs} {
		for _, how := range []string{"is killed", "panics"} {
			t.Run(fmt.Sprintf("it %s while the program %s", how, stage), func(t *testing.T) {
				there, goOn, end := fifo(t), fifo(t), fifo(t)
				agent := exec.Command(self, "sh", "-c", `read line <"$CCAGENT_TEST_END"; exit 7`)
				agent.Args[0] = self
				agent.Env = append(os.Environ(), stageVariable+"="+stage, "CCAGENT_TEST_PRELOAD="+library,
					"CCAGENT_TEST_THERE="+there.Name(), "CCAGENT_TEST_GO="+goOn.Name(), "CCAGENT_TEST_END="+end.Name())
				stdin, err := agent.StdinPipe()
				if err != nil {
					t.Fatal(err)
				}
				stdout, err := agent.StdoutPipe()
				if err != nil {
					t.Fatal(err)
				}
				// A file, as the program has it too: nobody waits for its end.
				stderr, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
				if err != nil {
					t.Fatal(err)
				}
				defer stderr.Close()
				agent.Stderr = stderr
				if err := agent.Start(); err != nil {
					t.Fatal(err)
				}
				defer agent.Process.Kill()
				// A FIFO holds what it is given until someone reads it.
				goesOn := func() {
					if _, err := goOn.Write([]byte{0}); err != nil {
						t.Error(err)
					}
				}
				if stage == standsAtEntry || stage == runs {
					goesOn()
				}
				line, err := bufio.NewReader(stdout).ReadString('\n')
				if err != nil {
					said, _ := os.ReadFile(stderr.Name())
					t.Fatalf("%v\n%s", err, said)
				}
				pid, err := strconv.Atoi(strings.TrimSpace(line))
				if err != nil {
					t.Fatal(err)
				}
				if stage == inItsLoader {
					if _, err := there.Read(make([]byte, 1)); err != nil {
						t.Fatal(err)
					}
				}
				if how == "panics" {
					_, err = stdin.Write([]byte{0})
				} else {
					err = agent.Process.Kill()
				}
				if err != nil {
					t.Fatal(err)
				}
				if err := agent.Wait(); err == nil {
					t.Error("the agent ended well")
				}
				if stage == standsAtExec || stage == inItsLoader {
					goesOn()
				}
				if _, err := end.WriteString("\n"); err != nil {
					t.Fatal(err)
				}
				var status unix.WaitStatus
				for {
					if _, err = unix.Wait4(pid, &status, 0, nil); !errors.Is(err, unix.EINTR) {
						break
					}
				}
				if err != nil || !status.Exited() || status.ExitStatus() != 7 {
					t.Errorf("the program ended by signal %d, status %d; %v", status.Signal(), status.ExitStatus(), err)
				}
			})
		}
	}
}

// A program that is held at its entry is let go of though the agent panics there and lives.
func TestPanicAtTheEntryLetsGo(t *testing.T) {
	testprog.NeedRoot(t)
	p, err := Start([]string{"sh", "-c", "exit 7"}, &invoker.User{UID: uint32(os.Getuid()), GID: uint32(os.Getgid()), Environ: os.Environ()}, [3]*os.File{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	func() {
		defer func() {
			if recover() == nil {
				t.Error("it was not held")
			}
		}()
		_ = p.Run(func() error { panic("as the test asks") })
	}()
	if status, ok := p.ExitStatus(t.Context()); !ok || status != 7 {
		t.Errorf("it ended with %d, %v", status, ok)
	}
}

// fifo makes a FIFO that is open on both ends.
func fifo(t *testing.T) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := unix.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// Where the agent is traced itself, so that it cannot trace what it starts, it says by whom.
func TestStartNamesWhoTracesTheAgent(t *testing.T) {
	testprog.NeedRoot(t)
	strace := testprog.NeedTool(t, "strace", "strace")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(strace, "-f", "-e", "trace=none", "-o", os.DevNull, self, "true")
	cmd.Env = append(os.Environ(), stageVariable+"="+runs)
	out, err := cmd.CombinedOutput()
	if err == nil || !strings.Contains(string(out), `traced by "strace"`) {
		t.Errorf("%v\n%s", err, out)
	}
}
