package testprog

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"ccagent/internal/cgroup"
)

// Freezer puts a process into a control group of its own, of version 1 or of the unified hierarchy of version 2, and returns functions that freeze and
// thaw it, and return when it is. It is thawed, and in its own group again, when the test ends.
func Freezer(t testing.TB, pid int, unified bool) (freeze, thaw func()) {
	t.Helper()
	groups, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid))
	if err != nil {
		t.Fatal(err)
	}
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		t.Fatal(err)
	}
	mount, own := "", ""
	for _, g := range cgroup.Groups(groups, mountinfo, "freezer") {
		if g.Unified == unified {
			mount, own = g.Mount, g.Dir()
		}
	}
	set, on, off, get, is := "freezer.state", "FROZEN", "THAWED", "freezer.state", "FROZEN"
	need := "the freezer of control groups of version 1"
	if unified {
		set, on, off, get, is = "cgroup.freeze", "1", "0", "cgroup.events", "frozen 1"
		need = "control groups of version 2"
	}
	group := filepath.Join(mount, fmt.Sprintf("ccagent-test-%d", pid))
	if mount != "" {
		err = os.Mkdir(group, 0o755)
	}
	if mount == "" || err != nil {
		Skip(t, &UnsupportedError{Need: fmt.Sprintf("%s, and the right to make a group (%v)", need, err)})
	}
	write := func(file, text string) {
		if err := os.WriteFile(filepath.Join(group, file), []byte(text), 0); err != nil {
			t.Fatal(err)
		}
	}
	frozen := func() bool {
		text, err := os.ReadFile(filepath.Join(group, get))
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), is)
	}
	t.Cleanup(func() {
		write(set, off)
		_ = os.WriteFile(filepath.Join(own, "cgroup.procs"), fmt.Append(nil, pid), 0) // fails only for a process that has ended
		for os.Remove(group) != nil {
			time.Sleep(time.Millisecond) // it may be about to end
		}
	})
	write("cgroup.procs", fmt.Sprint(pid))
	return func() {
			write(set, on)
			for !frozen() {
			}
		}, func() {
			write(set, off)
			for frozen() {
			}
		}
}
