package procfs

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

// Usage is a mapping of a process with how much of it is in memory, in bytes.
type Usage struct {
	Region
	Resident uint64
	// LazyFree is the part of Resident that the process has given back by MADV_FREE, and the kernel
	// takes when it needs memory.
	LazyFree uint64
	Swapped  uint64
}

// Smaps lists all mappings of a process with how much of each is in memory. The kernel looks at every
// page for that: some 35 ms for 1 GB.
func Smaps(pid int) ([]Usage, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/smaps", pid))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return parseSmaps(f)
}

// parseSmaps reads mappings, each a line as in /proc/PID/maps with lines "Rss:  12 kB" below it. Lines
// of any other form are left out.
func parseSmaps(r io.Reader) (all []Usage, err error) {
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if m, _, ok := parseRegion(line); ok {
			if len(all) == maxMaps {
				break
			}
			all = append(all, Usage{Region: m})
			continue
		}
		name, rest, colon := strings.Cut(line, ":")
		if !colon || len(all) == 0 {
			continue
		}
		m := &all[len(all)-1]
		var to *uint64
		switch name {
		case "Rss":
			to = &m.Resident
		case "LazyFree":
			to = &m.LazyFree
		case "Swap":
			to = &m.Swapped
		default:
			continue
		}
		text, kB := strings.CutSuffix(strings.TrimSpace(rest), " kB")
		if n, err := strconv.ParseUint(text, 10, 44); err == nil && kB {
			*to = n << 10
		}
	}
	return all, lines.Err()
}
