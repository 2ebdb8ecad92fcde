package sandbox

import (
	"bufio"
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// FitMemory gives how much of a budget of memory, in bytes, a child may take, and in words
// why that is less. What this process's control groups leave is shared by all in them, so
// a child gets half of it; a little it gets always, with which it can still do something.
func FitMemory(budget uint64) (fits uint64, why string) {
	left, group, ok := MemoryLeft()
	// Half is for the rest, and a limit of address space lets twice the memory be taken.
	const least = 8 << 20
	if fits = max(left/4, least); !ok || fits >= budget {
		return budget, ""
	}
	return fits, "only " + strconv.FormatUint(fits>>20, 10) + " MB of memory for finding names, since the control group " + group + " leaves no more: raise its memory limit"
}

// MemoryLeft gives the memory, in bytes, that can still be taken before one of this
// process's control groups is at its limit, and which that is. False where none has one.
func MemoryLeft() (left uint64, group string, ok bool) { return memoryLeft("/") }

// memoryLeft finds the files in /proc and /sys below root.
func memoryLeft(root string) (left uint64, group string, ok bool) {
	mounts, err := os.ReadFile(filepath.Join(root, "proc/self/mountinfo"))
	if err != nil {
		return 0, "", false
	}
	groups, err := os.ReadFile(filepath.Join(root, "proc/self/cgroup"))
	if err != nil {
		return 0, "", false
	}
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		unified := parts[0] == "0" && parts[1] == ""
		if !unified && !hasWord(parts[1], "memory") {
			continue
		}
		mount, at := hierarchy(mounts, unified)
		if mount == "" {
			continue
		}
		// In a namespace or container the mount shows a part of the hierarchy.
		path := parts[2]
		if rest, below := strings.CutPrefix(path, strings.TrimSuffix(at, "/")); below {
			path = rest
		}
		for dir := filepath.Clean("/" + path); ; dir = filepath.Dir(dir) {
			if n, limited := leftIn(filepath.Join(root, mount, dir), unified); limited && (!ok || n < left) {
				left, group, ok = n, dir, true
			}
			if dir == "/" {
				break
			}
		}
	}
	return left, group, ok
}

// hierarchy finds where a hierarchy of control groups is mounted, and which group is seen
// there.
func hierarchy(mounts []byte, unified bool) (mount, at string) {
	for s := bufio.NewScanner(bytes.NewReader(mounts)); s.Scan(); {
		before, after, ok := strings.Cut(s.Text(), " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(kind) < 3 {
			continue
		}
		if unified && kind[0] == "cgroup2" || !unified && kind[0] == "cgroup" && hasWord(kind[2], "memory") {
			return fields[4], fields[3]
		}
	}
	return "", ""
}

func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// leftIn gives what a group has left. What it holds of files can be taken back.
func leftIn(dir string, unified bool) (left uint64, limited bool) {
	limitFile, usedFile, cached := "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"
	if unified {
		limitFile, usedFile, cached = "memory.max", "memory.current", "inactive_file"
	}
	limit, ok := number(filepath.Join(dir, limitFile))
	const unlimited = 1 << 60 // version 1 has no word for it
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

// dieFirst has the kernel end this process rather than its parent or the profiled program
// where a control group or the host runs out of memory. The parent does without a child.
func dieFirst() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
}
