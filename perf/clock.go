package perf

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Monotonic reads CLOCK_MONOTONIC, the clock of all records' times, in ns.
func Monotonic() uint64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts); err != nil {
		panic(fmt.Sprintf("read CLOCK_MONOTONIC: %v", err)) // every Linux has it
	}
	return uint64(ts.Nano())
}
