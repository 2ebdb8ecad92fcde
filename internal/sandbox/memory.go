package sandbox

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"ccagent/internal/cgroup"
)

// FitMemory limits a child's budget of memory, in bytes, to what this process's control
// groups allow. why explains a reduced budget. A child may take half of the memory that is
// left, because other processes of the group need memory too, but always a minimum with
// which it can do some work.
func FitMemory(budget uint64) (fits uint64, why string) {
	left, group, ok := MemoryLeft()
	// Half is for other processes, and the limit of a child's address space is twice its
	// budget.
	const least = 8 << 20
	if fits = max(left/4, least); !ok || fits >= budget {
		return budget, ""
	}
	return fits, "only " + strconv.FormatUint(fits>>20, 10) + " MB of memory for finding names, since the control group " + group + " leaves no more: raise its memory limit"
}

// MemoryLeft returns the memory, in bytes, that is left before one of this process's
// control groups reaches its limit, and that group. It returns false if no group has a
// limit.
func MemoryLeft() (left uint64, group string, ok bool) { return memoryLeft("/") }

// memoryLeft is MemoryLeft with the files of /proc and /sys below root.
func memoryLeft(root string) (left uint64, group string, ok bool) {
	mounts, err := os.ReadFile(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return 0, "", false
	}
	groups, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0, "", false
	}
	for _, g := range cgroup.Groups(groups, mounts, "memory") {
		for dir := g.Path; ; dir = filepath.Dir(dir) {
			if n, limited := leftIn(filepath.Join(root, g.Mount, dir), g.Unified); limited && (!ok || n < left) {
				left, group, ok = n, dir, true
			}
			if dir == "/" {
				break
			}
		}
	}
	return left, group, ok
}

// leftIn returns the bytes that a group may still take. Inactive page cache counts as
// free, because the kernel reclaims it.
func leftIn(dir string, unified bool) (left uint64, limited bool) {
	limitFile, usedFile, cached := "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
	if unified {
		limitFile, usedFile, cached = "memory.max", "memory.current", "inactive_file"
	}
	limit, ok := number(filepath.Join(dir, limitFile))
	const unlimited = 1 << 60 // cgroup v1 shows "no limit" as a number above this
	if !ok || limit >= unlimited {
		return 0, false
	}
	used, ok := number(filepath.Join(dir, usedFile))
	if !ok {
		return 0, false
	}
	if stat, err := os.ReadFile(filepath.Join(dir, "memory.stat")); err == nil {
		for line := range strings.Lines(string(stat)) {
			if rest, is := strings.CutPrefix(line, cached+" "); is {
				if n, err := strconv.ParseUint(strings.TrimSpace(rest), 10, 64); err == nil {
					used -= min(used, n)
				}
			}
		}
	}
	return limit - min(limit, used), true
}

func number(path string) (uint64, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil
}

// dieFirst makes the kernel kill this process before its parent and the profiled program
// if a control group or the host runs out of memory. The parent continues without the child.
func dieFirst() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
}
