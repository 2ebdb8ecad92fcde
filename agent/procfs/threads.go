package procfs

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"strconv"
)

// Thread is an OS thread of a process.
type Thread struct {
	TID   int
	Name  string
	State byte // as /proc/PID/stat has it: R runs or is to, S waits, D waits in the kernel, T is stopped
}

// maxThreads bounds the threads that are listed; the kernel's default limit is lower.
const maxThreads = 1 << 16

// ThreadIDs lists the ids of a process's threads.
func ThreadIDs(pid int) (ids []int, err error) {
	dir, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxThreads)
	if err != nil {
		return nil, fmt.Errorf("list threads of process %d: %w", pid, err)
	}
	for _, name := range names {
		if tid, err := strconv.Atoi(name); err == nil {
			ids = append(ids, tid)
		}
	}
	return ids, nil
}

// Threads lists the threads of a process, those that end meanwhile left out.
func Threads(pid int) ([]Thread, error) {
	ids, err := ThreadIDs(pid)
	if err != nil {
		return nil, err
	}
	var threads []Thread
	for _, tid := range ids {
		raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/stat", pid, tid))
		if err != nil {
			continue
		}
		if t, ok := parseThread(raw); ok {
			t.TID = tid
			threads = append(threads, t)
		}
	}
	return threads, nil
}

// Asleep reports whether all threads of a process wait.
func Asleep(pid int) bool {
	list, err := Threads(pid)
	return err == nil && !slices.ContainsFunc(list, func(t Thread) bool { return t.State != 'S' })
}

// Timeslices says how often a thread has been given a CPU so far; false if it has ended, or the kernel does not count that.
func Timeslices(pid, tid int) (n uint64, ok bool) {
	fields, ok := readSchedstat(pid, tid)
	return fields[2], ok
}

// ThreadTimes says for how long a thread has run so far, as of the last tick, and how long it has waited for a CPU, ns; false likewise.
func ThreadTimes(pid, tid int) (ran, delayed uint64, ok bool) {
	fields, ok := readSchedstat(pid, tid)
	return fields[0], fields[1], ok
}

func readSchedstat(pid, tid int) (fields [3]uint64, ok bool) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid))
	if err != nil {
		return fields, false
	}
	return parseSchedstat(raw)
}

// parseSchedstat takes /proc/PID/task/TID/schedstat: ns on a CPU, ns waiting for one, times on one.
func parseSchedstat(raw []byte) (fields [3]uint64, ok bool) {
	words := bytes.Fields(raw)
	if len(words) < len(fields) {
		return fields, false
	}
	for i := range fields {
		n, err := strconv.ParseUint(string(words[i]), 10, 64)
		if err != nil {
			return [3]uint64{}, false
		}
		fields[i] = n
	}
	return fields, true
}

// parseThread takes /proc/PID/task/TID/stat: "12 (name) S …".
func parseThread(raw []byte) (t Thread, ok bool) {
	first, last := bytes.IndexByte(raw, '('), bytes.LastIndexByte(raw, ')')
	if first < 0 || last < first || last+2 >= len(raw) {
		return t, false
	}
	return Thread{Name: string(raw[first+1 : last]), State: raw[last+2]}, true
}
