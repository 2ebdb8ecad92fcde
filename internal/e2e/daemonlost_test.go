package e2e

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"ccagent/internal/testprog"
)

// mapCode maps a page of code and unmaps it, a number of times on each CPU that the test may run on. The kernel tells the daemon of each mapping.
func mapCode(t *testing.T, times int) {
	t.Helper()
	file, err := os.Open(ccview)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var cpus unix.CPUSet
	if err := unix.SchedGetaffinity(0, &cpus); err != nil {
		t.Fatal(err)
	}
	var each sync.WaitGroup
	for cpu := range len(cpus) * 64 {
		if !cpus.IsSet(cpu) {
			continue
		}
		each.Go(func() {
			runtime.LockOSThread() // and it ends with the goroutine: its affinity is nobody's else
			var one unix.CPUSet
			one.Set(cpu)
			if err := unix.SchedSetaffinity(0, &one); err != nil {
				t.Error(err)
				return
			}
			for range times {
				page, err := unix.Mmap(int(file.Fd()), 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
				if err != nil {
					t.Error(err)
					return
				}
				if err := unix.Munmap(page); err != nil {
					t.Error(err)
				}
			}
		})
	}
	each.Wait()
}

// The daemon is stopped and its buffers are filled, so that the kernel drops changes: meanwhile a program begins, one executes another, and one ends. When it runs again it finds each of them as it is by then, and says that changes were lost.
func TestDaemonCatchesUpWithLostChanges(t *testing.T) {
	testprog.NeedRoot(t)
	first, second := testprog.Build(t, "execs", testprog.Options{}), testprog.Build(t, "spin31", testprog.Options{})
	h := newHost(t)
	h.configure("  - {executable: " + first + ", profile: true}\n  - {executable: " + second + ", profile: true}\n  - {profile: false}\n")
	h.start()
	gone, other := runOn(t, nil, second, forever), startAsked(t, first)
	other.ask("spin", 300)
	eventually(t, "both are sampled", func() bool {
		all := h.ps(0)
		return all[gone.Process.Pid].Samples > 0 && all[other.pid].Service == "execs" && all[other.pid].Samples > 0
	})

	if err := h.daemon.Process.Signal(unix.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	mapCode(t, 20_000) // the rings have room for some 3,000
	late := runOn(t, nil, second, forever)
	other.send("exec", second, forever)
	gone.Process.Kill()
	gone.Wait()
	for _, pid := range []int{late.Process.Pid, other.pid} {
		eventually(t, "the program runs", func() bool { exe, _ := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)); return exe == second })
	}
	if err := h.daemon.Process.Signal(unix.SIGCONT); err != nil {
		t.Fatal(err)
	}

	eventually(t, "all are seen as what they are", func() bool {
		mapCode(t, 1) // the kernel tells what it has dropped with the next change on a CPU
		all := h.ps(0)
		_, lives := all[gone.Process.Pid]
		return !lives && all[late.Process.Pid].Samples > 0 && all[other.pid].Service == "spin31" && all[other.pid].Samples > 0
	})
	for _, pid := range []int{late.Process.Pid, other.pid} {
		eventually(t, "its code has names", func() bool {
			for _, piece := range h.closed(pid, 1<<10) {
				if shows(t, piece, "Main.three") {
					return true
				}
			}
			return false
		})
	}
	h.daemon.Process.Signal(unix.SIGTERM)
	if r := h.ended(); r.status != 0 || !strings.Contains(r.stderr, "changes of what processes map, execute and fork were lost") {
		t.Errorf("the daemon ends with status %d\n%s", r.status, r.stderr)
	}
}
