package procfs

import (
	"slices"
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
}

// Regions lists all mappings of a process.
func Regions(pid int) ([]Region, error) {
	var all []Region
	err := eachMapping(pid, func(line string) {
		if r, _, ok := parseRegion(line); ok {
			all = append(all, r)
		}
	})
	return all, err
}

// Named lists a process's mappings that have one of some names, at most so many.
func Named(pid int, names []string, most int) (all []Region, err error) {
	err = eachMapping(pid, func(line string) {
		if len(all) == most || !slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(line, name) }) {
			return
		}
		if r, _, ok := parseRegion(line); ok && slices.Contains(names, r.Path) {
			all = append(all, r)
		}
	})
	return all, err
}

// parseRegion takes apart a line such as
// "00403000-00495000 r-xp 00003000 fe:00 1234   /usr/bin/prog", and returns its fields too.
func parseRegion(line string) (r Region, fields []string, ok bool) {
	fields = strings.SplitN(line, " ", 6)
	if len(fields) < 5 || len(fields[1]) != 4 {
		return r, nil, false
	}
	start, end, dash := strings.Cut(fields[0], "-")
	var errs [2]error
	r.Start, errs[0] = strconv.ParseUint(start, 16, 64)
	r.End, errs[1] = strconv.ParseUint(end, 16, 64)
	if !dash || errs[0] != nil || errs[1] != nil || r.End < r.Start {
		return r, nil, false
	}
	r.Readable, r.Writable, r.Executable = fields[1][0] == 'r', fields[1][1] == 'w', fields[1][2] == 'x'
	if len(fields) == 6 {
		r.Path = unescapeMapsPath(strings.TrimLeft(fields[5], " "))
	}
	return r, fields, true
}
