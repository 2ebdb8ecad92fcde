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

// Threads lists the threads of a process, those that end meanwhile left out.
func Threads(pid int) ([]Thread, error) {
	dir, err := os.Open(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxThreads)
	if err != nil {
		return nil, fmt.Errorf("list threads of process %d: %w", pid, err)
	}
	var threads []Thread
	for _, name := range names {
		tid, err := strconv.Atoi(name)
		if err != nil {
			continue
		}
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
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", pid, tid))
	if err != nil {
		return 0, false
	}
	return parseTimeslices(raw)
}

// parseTimeslices takes /proc/PID/task/TID/schedstat: ns on a CPU, ns waiting for one, times on one.
func parseTimeslices(raw []byte) (n uint64, ok bool) {
	fields := bytes.Fields(raw)
	if len(fields) < 3 {
		return 0, false
	}
	n, err := strconv.ParseUint(string(fields[2]), 10, 64)
	return n, err == nil
}

// parseThread takes /proc/PID/task/TID/stat: "12 (name) S …".
func parseThread(raw []byte) (t Thread, ok bool) {
	first, last := bytes.IndexByte(raw, '('), bytes.LastIndexByte(raw, ')')
	if first < 0 || last < first || last+2 >= len(raw) {
		return t, false
	}
	return Thread{Name: string(raw[first+1 : last]), State: raw[last+2]}, true
}
