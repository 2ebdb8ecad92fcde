package e2e

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"ccagent/internal/testprog"
)

// The unit leaves the daemon what dumps take: the capabilities with which they are tested here, and the system call that stops threads.
func TestUnitPermitsDumps(t *testing.T) {
	text, err := os.ReadFile("../../deploy/ccagent.service")
	if err != nil {
		t.Fatal(err)
	}
	words := func(key string) (all []string) {
		for _, m := range regexp.MustCompile(`(?m)^`+key+`=(.*)$`).FindAllSubmatch(text, -1) {
			all = append(all, strings.Fields(string(m[1]))...)
		}
		return all
	}
	have := words("CapabilityBoundingSet")
	slices.Sort(have)
	if want := slices.Sorted(maps.Keys(unitCapabilities)); !slices.Equal(have, want) {
		t.Errorf("the unit has %v, tests run with %v", have, want)
	}
	if !slices.Contains(words("SystemCallFilter"), "ptrace") {
		t.Error("the unit forbids to stop threads")
	}
}

// said is what a dump says of a thread that stands still.
type said struct {
	Label, State, BlockedOn string
	Frames                  int
}

func (d dumped) said() map[uint64]said {
	all := map[uint64]said{}
	for _, th := range d.Threads {
		all[th.ID] = said{th.Label, th.State, th.BlockedOn, len(th.Stack)}
	}
	return all
}

// The daemon reads the threads of a process, with no more rights than its unit leaves it, and finds what the command by itself finds.
// A user gets those of their own processes alone.
func TestDaemonThreads(t *testing.T) {
	testprog.NeedRoot(t)
	ours, theirs := standBeside(t)
	h := newHost(t)
	h.configure("  - {executable: standstill, profile: true}\n  - {profile: false}\n")
	h.without = "all but the unit's capabilities"
	h.start()
	pid, theirPID := strconv.Itoa(ours.Process.Pid), strconv.Itoa(theirs.Process.Pid)
	h.sampled(ours.Process.Pid, theirs.Process.Pid)
	want := dumpThreads(t, ours.Process.Pid).said()
	got := dumpThreads(t, ours.Process.Pid, "--socket", h.socket)
	if got := got.said(); len(got) == 0 || !maps.Equal(got, want) {
		t.Fatalf("the daemon says\n%v\nand the command by itself\n%v", got, want)
	}
	placed := false
	for _, th := range got.Threads {
		placed = placed || slices.ContainsFunc(th.Stack, func(f frame) bool { return f.File != "" && f.Line > 0 })
	}
	if !placed {
		t.Error("no stack has a source")
	}

	ask := func(uid uint32, args ...string) result {
		cmd := command(t, ccagent, append([]string{"threads", "--format", "json", "--socket", h.socket}, args...)...)
		cmd.SysProcAttr, cmd.Dir = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}, "/"
		return run(t, cmd)
	}
	for _, c := range []struct {
		uid  uint32
		args []string
		want string
	}{
		{nobodyID, []string{pid}, "is not sampled"},
		{0, []string{"1"}, "is not sampled"},
		{0, []string{"nosuch"}, `no process of service "nosuch"`},
		{0, []string{"standstill"}, "2 processes"},
		{0, []string{pid, "--user", "root"}, "leave out --user"},
	} {
		if r := ask(c.uid, c.args...); r.status == 0 || !strings.Contains(r.stderr, c.want) {
			t.Errorf("user %d asks for %v: status %d, %s, want %q", c.uid, c.args, r.status, r.stderr, c.want)
		}
	}
	sudo := command(t, ccagent, "threads", "--socket", h.socket, pid)
	sudo.Env = append(os.Environ(), "SUDO_UID="+strconv.Itoa(nobodyID), "SUDO_GID="+strconv.Itoa(nobodyID))
	if r := run(t, sudo); r.status == 0 || !strings.Contains(r.stderr, "is not sampled") {
		t.Errorf("a user gets another's threads by sudo: status %d, %s", r.status, r.stderr)
	}

	// What only one process of theirs is called names it. The log is theirs.
	log := filepath.Join(sharedDir(t, 0o777), "dump.eventlog")
	r := ask(nobodyID, "standstill", "-o", log)
	var d dumped
	if err := json.Unmarshal([]byte(r.stdout), &d); err != nil || r.status != 0 {
		t.Fatalf("a user asks for their own process %s: status %d, %s%s", theirPID, r.status, r.stdout, r.stderr)
	}
	if len(d.Threads) != len(want) {
		t.Errorf("a user's process has %d threads, want %d", len(d.Threads), len(want))
	}
	var st unix.Stat_t
	if err := unix.Stat(log, &st); err != nil || st.Uid != nobodyID || st.Mode&0o777 != 0o600 {
		t.Errorf("the log is user %d's, mode %o (%v)", st.Uid, st.Mode, err)
	}
	var kept dumped
	view(t, &kept, "threads", log)
	if !maps.Equal(kept.said(), d.said()) {
		t.Errorf("the log has\n%v\nand the command printed\n%v", kept.said(), d.said())
	}
	if left, err := os.ReadDir(filepath.Join(h.state, ".threads")); err != nil || len(left) > 0 {
		t.Errorf("the daemon keeps %v (%v)", left, err)
	}
	h.daemon.Process.Signal(syscall.SIGTERM)
	if r := h.ended(); r.status != 0 || !strings.Contains(r.stderr, "user "+strconv.Itoa(nobodyID)) || !strings.Contains(r.stderr, "asks for the threads of process "+pid) {
		t.Errorf("the daemon ends with status %d\n%s", r.status, r.stderr)
	}
}
