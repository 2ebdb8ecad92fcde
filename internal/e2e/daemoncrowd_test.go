package e2e

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ccagent/internal/testprog"
)

// A user who starts more programs than one user may have sampled leaves other users their profiles: half of what the daemon has room for
// is theirs. The others of this user are listed, with the reason, and are sampled when there is room. All that fits into the memory
// that the unit allows.
func TestDaemonAmongACrowd(t *testing.T) {
	testprog.NeedRoot(t)
	const most, more = 512, 30
	idle := readable(t, testprog.Build(t, "execs", testprog.Options{Flags: []string{"-rtsopts"}}))
	busy := testprog.Build(t, "spin31", testprog.Options{})
	h := newHost(t)
	h.memory = unitMemory(t)
	h.more = "  events: [cpu-clock]\n"
	h.configure("  - {executable: " + idle + ", profile: true}\n  - {executable: " + busy + ", profile: true}\n  - {profile: false}\n")
	h.start()

	asks, never, err := os.Pipe() // each waits for a line that does not come
	if err != nil {
		t.Fatal(err)
	}
	defer never.Close()
	crowd := map[int]*exec.Cmd{}
	t.Cleanup(func() {
		for _, p := range crowd {
			p.Process.Kill()
		}
		for _, p := range crowd {
			p.Wait()
		}
	})
	for range most + more {
		p := exec.Command(idle, "+RTS", "-A64k", "-V0")
		p.Dir, p.Stdin = "/", asks
		p.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyID, Gid: nobodyID}}
		if err := p.Start(); err != nil {
			t.Fatal(err)
		}
		crowd[p.Process.Pid] = p
	}
	asks.Close()

	states := func() map[string]int {
		n := map[string]int{}
		for pid, p := range h.ps(0) {
			if crowd[pid] == nil {
				continue
			}
			n[p.State]++
			if p.State == "failed" && (len(p.Missing) == 0 || !strings.Contains(p.Missing[0].Reason, "512 of this user")) {
				t.Errorf("process %d failed: %+v", pid, p.Missing)
			}
		}
		return n
	}
	eventually(t, "as many as may be are sampled, and the others listed", func() bool {
		n := states()
		return n["sampled"] == most && n["failed"] == more
	})
	other := runOn(t, nil, busy, forever).Process.Pid
	eventually(t, "another user's program is sampled", func() bool { return h.ps(0)[other].Samples > 0 })
	ended := 0
	for pid, p := range h.ps(0) {
		if crowd[pid] != nil && p.State == "sampled" && ended < 2*more {
			crowd[pid].Process.Kill()
			crowd[pid].Wait()
			delete(crowd, pid)
			ended++
		}
	}
	eventually(t, "where some have ended all others are sampled", func() bool {
		n := states()
		return n["sampled"] == most-more && n["failed"] == 0
	})
	h.daemon.Process.Signal(unix.SIGTERM)
	r := h.ended()
	if r.status != 0 || strings.Contains(r.stderr, "killed") {
		t.Errorf("the daemon ends with status %d\n%s", r.status, r.stderr)
	}
	if n := strings.Count(r.stderr, "is not recorded yet"); n != 1 {
		t.Errorf("the daemon reports %d times that a process is not recorded, want once\n%s", n, r.stderr)
	}
}
