package procfs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"

	"ccagent/internal/cgroup"
)

// Frozen reports whether all threads of a process are in frozen control groups, of version 1 or 2: frozen by themselves or by one
// above them. False for a process of which that is not known.
func Frozen(pid int) bool {
	mountinfo, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	states := map[string]bool{} // by group: the threads are in one, as a rule
	frozen := func(tid int) bool {
		list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/cgroup", pid, tid))
		if err != nil {
			return false
		}
		for _, g := range cgroup.Groups(list, mountinfo, "freezer") {
			is, known := states[g.Dir()]
			if !known {
				is = groupFrozen(g)
				states[g.Dir()] = is
			}
			if is {
				return true
			}
		}
		return false
	}
	if !frozen(pid) {
		return false
	}
	threads, err := Threads(pid)
	for _, t := range threads {
		if t.State != 'Z' && t.State != 'X' && !frozen(t.TID) {
			return false
		}
	}
	return err == nil
}

// groupFrozen reports whether all threads of a group are frozen by now. The root of a hierarchy has none of the files.
func groupFrozen(g cgroup.Group) bool {
	file, frozen := "freezer.state", "FROZEN"
	if g.Unified {
		file, frozen = "cgroup.events", "frozen 1"
	}
	text, err := os.ReadFile(filepath.Join(g.Dir(), file))
	if err != nil {
		return false
	}
	for line := range bytes.Lines(text) {
		if string(bytes.TrimSpace(line)) == frozen {
			return true
		}
	}
	return false
}
