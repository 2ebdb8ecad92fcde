package procfs

import (
	"bufio"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Region is a mapping of a process, of whatever kind.
type Region struct {
	Start, End uint64
	Readable   bool
	Writable   bool
	Executable bool
	Path       string // empty for anonymous memory; "[heap]", "[stack]" as the kernel calls them
	// RSS is what of it is in memory, in bytes; only RegionsRSS sets it.
	RSS uint64
}

// Regions lists all mappings of a process.
func Regions(pid int) ([]Region, error) { return readRegions(fmt.Sprintf("/proc/%d/maps", pid)) }

// RegionsRSS is like Regions, and says what of each is in memory.
func RegionsRSS(pid int) ([]Region, error) { return readRegions(fmt.Sprintf("/proc/%d/smaps", pid)) }

func readRegions(path string) ([]Region, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var all []Region
	for lines := bufio.NewScanner(f); ; {
		if !lines.Scan() {
			return all, lines.Err()
		}
		if r, ok := parseRegion(lines.Text()); ok {
			if len(all) == maxMaps {
				return all, nil
			}
			all = append(all, r)
		} else if kb, ok := strings.CutPrefix(lines.Text(), "Rss:"); ok && len(all) > 0 {
			n, _ := strconv.ParseUint(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(kb), "kB")), 10, 54)
			all[len(all)-1].RSS = n << 10
		}
	}
}

// parseRegion takes apart a line such as
// "00403000-00495000 r-xp 00003000 fe:00 1234   /usr/bin/prog"; false for other lines of smaps.
func parseRegion(line string) (r Region, ok bool) {
	fields := strings.SplitN(line, " ", 6)
	if len(fields) < 5 || len(fields[1]) != 4 {
		return r, false
	}
	start, end, dash := strings.Cut(fields[0], "-")
	var errs [2]error
	r.Start, errs[0] = strconv.ParseUint(start, 16, 64)
	r.End, errs[1] = strconv.ParseUint(end, 16, 64)
	if !dash || errs[0] != nil || errs[1] != nil || r.End < r.Start {
		return r, false
	}
	r.Readable, r.Writable, r.Executable = fields[1][0] == 'r', fields[1][1] == 'w', fields[1][2] == 'x'
	if len(fields) == 6 {
		r.Path = unescapeMapsPath(strings.TrimLeft(fields[5], " "))
	}
	return r, true
}
