package procfs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// CPUClock reads the CPU time of one process, even if another process has its number by now.
type CPUClock struct{ stat *os.File }

// OpenCPUClock fails with os.ErrNotExist if there is no such process.
func OpenCPUClock(pid int) (*CPUClock, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil, fmt.Errorf("read CPU time: %w", err)
	}
	return &CPUClock{f}, nil
}

// Close closes it.
func (c *CPUClock) Close() error { return c.stat.Close() }

// Used is the user and system time, in ns, that the process has used, and that
// children of it had used when it waited for them. False once it is gone; ended while
// nobody has waited for it yet.
func (c *CPUClock) Used() (used uint64, ended, ok bool) {
	var raw [1024]byte
	n, err := c.stat.ReadAt(raw[:], 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0, false, false
	}
	return parseCPUTime(raw[:n])
}

// parseCPUTime takes /proc/PID/stat.
func parseCPUTime(raw []byte) (used uint64, ended, ok bool) {
	const (
		ticksPerSecond = 100 // USER_HZ, fixed by the kernel's ABI
		// Fields by their place behind the name.
		state, first, last = 0, 11, 14
	)
	// The name in parentheses may hold anything; the fields follow the last.
	rest := raw[bytes.LastIndexByte(raw, ')')+1:]
	at := 0
	for field := range bytes.FieldsSeq(rest) {
		switch {
		case at == state:
			ended = field[0] == 'Z'
		case at >= first:
			ticks, err := strconv.ParseUint(string(field), 10, 64)
			if err != nil {
				return 0, false, false
			}
			used += ticks * (1e9 / ticksPerSecond)
		}
		if at == last {
			return used, ended, true
		}
		at++
	}
	return 0, false, false
}

// CPUTime returns the current value of a process's CPUClock.
func CPUTime(pid int) (used uint64, ended, ok bool) {
	c, err := OpenCPUClock(pid)
	if err != nil {
		return 0, false, false
	}
	defer c.Close()
	return c.Used()
}

// ProcessTime returns the CPU time that the threads of a process have used so far, in ns, without that
// of children; false once it is gone.
func ProcessTime(pid int) (ns uint64, ok bool) {
	const schedClock = 2 // of a thread group: MAKE_PROCESS_CPUCLOCK in the kernel's posix-timers.h
	var ts unix.Timespec
	if pid <= 0 || unix.ClockGettime(int32(^pid)<<3|schedClock, &ts) != nil {
		return 0, false
	}
	return uint64(ts.Nano()), true
}

// ThreadTime returns the CPU time that a thread has used so far, in ns, and its process.
func ThreadTime(tid int) (ns uint64, pid int, err error) {
	status, err := ReadStatus(tid)
	if err != nil {
		return 0, 0, err
	}
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", tid))
	if err != nil {
		return 0, 0, err
	}
	if _, err := fmt.Sscan(string(raw), &ns); err != nil {
		return 0, 0, fmt.Errorf("parse /proc/%d/schedstat: %w", tid, err)
	}
	return ns, status.TGID, nil
}
