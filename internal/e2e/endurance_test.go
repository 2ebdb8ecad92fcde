package e2e

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"ccagent/internal/testprog"
)

// adoptOrphans makes this process the parent of those whose parent has ended.
func adoptOrphans(t *testing.T) {
	t.Helper()
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 0, 0, 0, 0) })
}

// orphans waits for all children of this process to end, and gives the statuses of those
// of a name. No command may be running that somebody else waits for.
func orphans(t *testing.T, name string) (statuses []unix.WaitStatus) {
	t.Helper()
	for {
		var info unix.Siginfo
		err := unix.Waitid(unix.P_ALL, 0, &info, unix.WEXITED|unix.WNOWAIT, nil)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ECHILD):
			return statuses
		case err != nil:
			t.Fatal(err)
		}
		pid := int((*struct {
			_   [3]int32
			_   int32
			pid int32
		})(unsafe.Pointer(&info)).pid) // siginfo_t on 64-bit machines
		comm, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err != nil {
			t.Fatal(err)
		}
		var status unix.WaitStatus
		if _, err := unix.Wait4(pid, &status, 0, nil); err != nil {
			t.Fatal(err)
		}
		if strings.TrimSpace(string(comm)) == name {
			statuses = append(statuses, status)
		}
	}
}

// leakedPrograms are the BPF programs younger than one which no living process holds.
func leakedPrograms(t *testing.T, than ebpf.ProgramID) (leaked []ebpf.ProgramID) {
	t.Helper()
	held := map[ebpf.ProgramID]bool{}
	for _, id := range heldPrograms(t, "[0-9]*") {
		held[id] = true
	}
	for id := than; ; {
		next, err := ebpf.ProgramGetNextID(id)
		if err != nil {
			return leaked
		}
		if id = next; !held[id] {
			leaked = append(leaked, id)
		}
	}
}

func youngestProgram(t *testing.T) (youngest ebpf.ProgramID) {
	t.Helper()
	for {
		id, err := ebpf.ProgramGetNextID(youngest)
		if errors.Is(err, os.ErrNotExist) {
			return youngest
		} else if err != nil {
			t.Fatal(err)
		}
		youngest = id
	}
}

// Whenever the agent is killed, the program runs to its own end, and nothing of the agent
// stays in the kernel.
func TestAgentKilledAtAnyTime(t *testing.T) {
	testprog.NeedRoot(t)
	adoptOrphans(t)
	exe := testprog.Build(t, "quick", testprog.Options{})
	before := youngestProgram(t)
	// Longer than a capture takes to be over here, however fast this machine is.
	begun := time.Now()
	record(t, nil, exe)
	span := time.Since(begun)
	survived := 0
	for i := range 20 {
		out, err := os.Create(filepath.Join(t.TempDir(), "out"))
		if err != nil {
			t.Fatal(err)
		}
		cmd := command(t, ccagent, "record", "-o", filepath.Join(t.TempDir(), "killed.eventlog"), "--", exe, "7")
		cmd.Stdout = out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		at := rand.N(span)
		time.Sleep(at) // the moment of the attack, which nothing waits for
		if err := cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
		_ = cmd.Wait()
		for _, status := range orphans(t, "quick") {
			survived++
			if !status.Exited() || status.ExitStatus() != 7 {
				t.Errorf("kill %d, after %v: the program ended by signal %d, status %d", i, at, status.Signal(), status.ExitStatus())
			}
		}
		said, err := os.ReadFile(out.Name())
		if err != nil {
			t.Fatal(err)
		}
		if s := string(said); s != "" && s != "quick 7\n" {
			t.Errorf("kill %d, after %v: the program has said %q", i, at, s)
		}
		out.Close()
	}
	t.Logf("%d of 20 programs had begun and not ended", survived)
	var left []ebpf.ProgramID
	eventually(t, "no BPF program is left", func() bool { left = leakedPrograms(t, before); return len(left) == 0 })
}

// childrenOf are the processes that a process has started and waits for.
func childrenOf(parent int) (pids []int) {
	lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	for _, list := range lists {
		children, _ := os.ReadFile(list)
		for _, child := range strings.Fields(string(children)) {
			if pid, err := strconv.Atoi(child); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// childOf is the child of a process that has that name, 0 if it has none yet.
func childOf(parent int, name string) int {
	for _, pid := range childrenOf(parent) {
		comm, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if strings.TrimSpace(string(comm)) == name {
			return pid
		}
	}
	return 0
}

// hasEnded reports whether a child of this process has ended; it stays to be waited for.
func hasEnded(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOHANG|unix.WNOWAIT, nil)
	return err != nil && !errors.Is(err, unix.EINTR) || info.Signo != 0
}

// Whenever the program is killed, the agent says so by its status, and the log is whole.
func TestProgramKilledAtAnyTime(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "spin31", testprog.Options{NoDebug: true})
	// Attacks come before and after the capture's begin, however fast this machine is.
	begun := time.Now()
	record(t, nil, exe, "1")
	span := time.Since(begun)
	var all sync.WaitGroup
	var logs atomic.Int64
	turns := make(chan int)
	for range 2 {
		all.Go(func() {
			for i := range turns {
				log := filepath.Join(t.TempDir(), "run.eventlog")
				cmd := exec.CommandContext(t.Context(), ccagent, "record", "-o", log, "--", exe, endless)
				stderr := new(strings.Builder)
				cmd.Stderr = stderr
				if err := cmd.Start(); err != nil {
					t.Error(err)
					continue
				}
				pid := 0
				for pid == 0 && !hasEnded(cmd.Process.Pid) {
					pid = childOf(cmd.Process.Pid, "spin31")
				}
				if pid == 0 {
					_ = cmd.Wait()
					t.Errorf("the agent has ended without a program\n%s", stderr)
					continue
				}
				at := rand.N(2 * span)
				time.Sleep(at) // the moment of the attack, which nothing waits for
				if err := unix.Kill(pid, unix.SIGKILL); err != nil {
					t.Errorf("kill %d: %v", i, err)
				}
				_ = cmd.Wait()
				// 125 is of a program that is gone before it could be let run.
				status := cmd.ProcessState.ExitCode()
				if status != 137 && status != 125 || strings.Contains(stderr.String(), "panic") {
					t.Errorf("kill %d, after %v: status %d\n%s", i, at, status, stderr)
				}
				switch _, err := os.Stat(log); {
				case errors.Is(err, os.ErrNotExist):
					if !strings.HasPrefix(stderr.String(), "ccagent: ") {
						t.Errorf("kill %d, after %v: status %d without a log, and without a word of why:\n%s", i, at, status, stderr)
					}
				case err != nil:
					t.Error(err)
				default:
					logs.Add(1)
					if out, err := exec.CommandContext(t.Context(), ccview, "info", log).CombinedOutput(); err != nil {
						t.Errorf("kill %d, after %v: status %d, and ccview info cannot read the log: %v\n%s", i, at, status, err, out)
					}
				}
			}
		})
	}
	for i := range 30 {
		turns <- i
	}
	close(turns)
	all.Wait()
	t.Logf("%d of 30 captures had begun", logs.Load())
}
