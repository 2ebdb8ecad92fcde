package procfs

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// StackPointers lists the stack pointers of those threads of a process that wait in the kernel.
func StackPointers(pid int) (all []uint64) {
	threads, err := Threads(pid)
	if err != nil {
		return nil
	}
	for _, t := range threads {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", pid, t.TID))
		if err != nil {
			continue
		}
		if sp, ok := parseStackPointer(string(raw)); ok {
			all = append(all, sp)
		}
	}
	return all
}

// parseStackPointer takes /proc/PID/task/TID/syscall, whose last words are stack pointer and program
// counter: "202 0x1 … 0x7ffd1 0x7f12\n", "-1 0x7ffd1 0x7f12\n", or "running\n".
func parseStackPointer(text string) (sp uint64, ok bool) {
	words := strings.Fields(text)
	if len(words) < 3 {
		return 0, false
	}
	sp, err := strconv.ParseUint(words[len(words)-2], 0, 64)
	return sp, err == nil && sp != 0
}
