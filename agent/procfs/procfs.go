package procfs

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Status holds fields of /proc/PID/status.
type Status struct {
	Parent int
	TGID   int
	UIDs   [4]uint32 // real, effective, saved, file system
	GIDs   [4]uint32 // likewise
	Groups []uint32  // supplementary ones
	Tracer int       // the process that traces it, 0 if none does
	// Sets of signals, signal n at bit n-1; those that its first thread blocks.
	BlockedSignals, CaughtSignals uint64
}

func ReadStatus(pid int) (Status, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Status{}, err
	}
	var s Status
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields := strings.Fields(value)
		switch {
		case name == "PPid" && len(fields) == 1:
			s.Parent, err = strconv.Atoi(fields[0])
		case name == "Tgid" && len(fields) == 1:
			s.TGID, err = strconv.Atoi(fields[0])
		case name == "TracerPid" && len(fields) == 1:
			s.Tracer, err = strconv.Atoi(fields[0])
		case name == "SigBlk" && len(fields) == 1:
			s.BlockedSignals, err = strconv.ParseUint(fields[0], 16, 64)
		case name == "SigCgt" && len(fields) == 1:
			s.CaughtSignals, err = strconv.ParseUint(fields[0], 16, 64)
		case name == "Uid" && len(fields) == 4:
			err = parseIDs(s.UIDs[:], fields)
		case name == "Gid" && len(fields) == 4:
			err = parseIDs(s.GIDs[:], fields)
		case name == "Groups":
			s.Groups = make([]uint32, len(fields))
			err = parseIDs(s.Groups, fields)
		}
		if err != nil {
			return Status{}, fmt.Errorf("parse /proc/%d/status: %w", pid, err)
		}
	}
	return s, nil
}

func parseIDs(into []uint32, fields []string) error {
	for i, f := range fields {
		id, err := strconv.ParseUint(f, 10, 32)
		if err != nil {
			return err
		}
		into[i] = uint32(id)
	}
	return nil
}

func Parent(pid int) (int, error) {
	s, err := ReadStatus(pid)
	return s.Parent, err
}

// Mapping is one executable mapping in /proc/PID/maps.
type Mapping struct {
	Start, End, Offset uint64
	Major, Minor       uint32
	Inode              uint64
	Path               string // empty for anonymous memory
}

// maxMaps bounds the lines of /proc/PID/maps that are read; the kernel's own
// default limit on mappings is 65530.
const maxMaps = 1 << 18

// Maps lists the executable mappings of a process.
func Maps(pid int) ([]Mapping, error) {
	var maps []Mapping
	err := eachMapping(pid, func(line string) {
		if m, ok := parseMapping(line); ok {
			maps = append(maps, m)
		}
	})
	return maps, err
}

// eachMapping calls f with each line of /proc/PID/maps, up to maxMaps.
func eachMapping(pid int, f func(line string)) error {
	maps, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid))
	if err != nil {
		return err
	}
	defer maps.Close()
	lines := bufio.NewScanner(maps)
	for n := 0; lines.Scan() && n < maxMaps; n++ {
		f(lines.Text())
	}
	return lines.Err()
}

// parseMapping takes apart a line as parseRegion does; false for memory that is not executable.
func parseMapping(line string) (m Mapping, ok bool) {
	r, fields, ok := parseRegion(line)
	if !ok || !r.Executable {
		return m, false
	}
	m.Start, m.End, m.Path = r.Start, r.End, r.Path
	major, minor, _ := strings.Cut(fields[3], ":")
	var errs [4]error
	m.Offset, errs[0] = strconv.ParseUint(fields[2], 16, 64)
	maj, err := strconv.ParseUint(major, 16, 32)
	errs[1] = err
	min, err := strconv.ParseUint(minor, 16, 32)
	errs[2] = err
	m.Inode, errs[3] = strconv.ParseUint(fields[4], 10, 64)
	if errors.Join(errs[:]...) != nil {
		return Mapping{}, false
	}
	m.Major, m.Minor = uint32(maj), uint32(min)
	return m, true
}

// unescapeMapsPath undoes the kernel's one escape in /proc/PID/maps.
func unescapeMapsPath(s string) string { return strings.ReplaceAll(s, `\012`, "\n") }

// KernelRelease is the kernel's release, as uname prints it.
func KernelRelease() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// HostName is the kernel's name of this host.
func HostName() string {
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Nodename[:])
}

// CPUModel is the processor's name, empty where /proc/cpuinfo has none.
func CPUModel() string {
	raw, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range bytes.Lines(raw) {
		name, value, found := strings.Cut(string(line), ":")
		if found && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// OnlineCPUs lists the CPUs that events can be opened on.
func OnlineCPUs() ([]int, error) { return readCPUList("/sys/devices/system/cpu/online") }

// NoTickCPUs lists the CPUs whose tick stops while they have one thread to run (nohz_full).
func NoTickCPUs() ([]int, error) {
	const path = "/sys/devices/system/cpu/nohz_full"
	raw, err := os.ReadFile(path)
	if list := strings.TrimSpace(string(raw)); errors.Is(err, fs.ErrNotExist) || err == nil && (list == "" || list == "(null)") {
		return nil, nil
	}
	return readCPUList(path)
}

// readCPUList reads the kernel's list format: "0-3,5".
func readCPUList(path string) ([]int, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("list CPUs: %w", err)
	}
	var cpus []int
	for part := range strings.SplitSeq(strings.TrimSpace(string(raw)), ",") {
		first, last, isRange := strings.Cut(part, "-")
		if !isRange {
			last = first
		}
		lo, err1 := strconv.Atoi(first)
		hi, err2 := strconv.Atoi(last)
		if err1 != nil || err2 != nil || lo < 0 || hi < lo || hi > 1<<16 {
			return nil, fmt.Errorf("list CPUs: parse %q in %s", part, path)
		}
		for cpu := lo; cpu <= hi; cpu++ {
			cpus = append(cpus, cpu)
		}
	}
	return cpus, nil
}

// Comm is a process's name as the kernel keeps it, empty once it has ended.
func Comm(pid int) string {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	return strings.TrimSuffix(string(raw), "\n")
}

// Exe is the path of a process's program, empty once it has ended.
func Exe(pid uint32) string {
	path, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
	if err != nil {
		return ""
	}
	return path
}
