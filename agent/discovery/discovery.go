package discovery

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/procfs"
	"ccagent/internal/ghc"
	"ccagent/symbolize/binary"
	"ccagent/symbolize/elffile"
)

// Process is a process that runs a program compiled by GHC.
type Process struct {
	PID     uint32
	UID     uint32
	GID     uint32
	Groups  []uint32
	Comm    string
	Path    string // of the program, as the kernel names it
	Service string
	Cgroup  string
	Unit    string            // systemd's; empty if it is in none
	Labels  map[string]string // of OTEL_RESOURCE_ATTRIBUTES and Published
	// Published is what it publishes of itself while it runs.
	Published Published
	// Container is the id of the container that it runs in; empty outside of any.
	Container string
	GHC       string // version; empty if unknown
	Way       string
	BuildID   []byte
}

// Finder finds processes. It is used by one goroutine.
type Finder struct {
	known map[file]program
}

// file is the identity of a program's file, as long as it is not changed.
type file struct {
	dev, inode uint64
	changed    unix.Timespec
}

// program is what a file has of Haskell.
type program struct {
	haskell bool
	info    binary.Info
}

// New makes a Finder.
func New() *Finder { return &Finder{known: map[file]program{}} }

// maxFiles bounds the files whose examination is remembered.
const maxFiles = 1 << 14

// All lists the Haskell processes of the host, by process id.
func (f *Finder) All() ([]Process, error) {
	dir, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var all []Process
	for _, e := range dir {
		pid, err := strconv.ParseUint(e.Name(), 10, 32)
		if err != nil {
			continue
		}
		if p, ok := f.Look(uint32(pid)); ok {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(a, b Process) int { return int(a.PID) - int(b.PID) })
	return all, nil
}

// Look looks at a process; false if it runs no Haskell, in its program or in a library that it has
// loaded, or none any more.
func (f *Finder) Look(pid uint32) (p Process, ok bool) {
	program, ok := f.program(pid)
	if !ok {
		if program, ok = embedded(pid); !ok {
			return p, false
		}
	}
	return describe(pid, program)
}

// Executed looks at a process that has just executed a program; false if that runs no Haskell by itself. Libraries that it loads
// are seen when it maps them (IsLibrary): most processes of a host are not Haskell, and end before a list of
// their mappings would be read.
func (f *Finder) Executed(pid uint32) (p Process, ok bool) {
	program, ok := f.program(pid)
	if !ok {
		return p, false
	}
	return describe(pid, program)
}

// describe describes a process that runs a program of Haskell; false if it has ended.
func describe(pid uint32, program program) (p Process, ok bool) {
	status, err := procfs.ReadStatus(int(pid))
	if err != nil {
		return p, false
	}
	p = Process{
		PID: pid, UID: status.UIDs[1], GID: status.GIDs[1], Groups: status.Groups,
		Comm: procfs.Comm(int(pid)), Path: procfs.Exe(pid),
		GHC: program.info.GHCVersion, Way: string(program.info.Way), BuildID: program.info.BuildID,
	}
	p.Published, _ = ReadPublished(pid, Published{}) // none, or none that is of use
	p.name()
	return p, true
}

// program returns what a process runs; false if that is not Haskell.
func (f *Finder) program(pid uint32) (program, bool) {
	exe := "/proc/" + strconv.FormatUint(uint64(pid), 10) + "/exe"
	var st unix.Stat_t
	if unix.Stat(exe, &st) != nil {
		return program{}, false // a kernel thread, or it has ended
	}
	key := file{uint64(st.Dev), st.Ino, st.Ctim}
	p, known := f.known[key]
	if !known {
		p = examine(exe)
		if len(f.known) >= maxFiles {
			clear(f.known)
		}
		f.known[key] = p
	}
	return p, p.haskell
}

// IsLibrary reports whether a file is the shared library of GHC's run-time system, by its name: a
// program that loads it is a Haskell program from then on.
func IsLibrary(path string) bool {
	l, ok := ghc.ParseLibrary(filepath.Base(path))
	return ok && l.RTS
}

// embedded returns what a process has loaded of Haskell by a shared library of it, as a program in C
// or Python may whose own file shows nothing of that.
func embedded(pid uint32) (program, bool) {
	maps, err := procfs.Maps(int(pid))
	if err != nil {
		return program{}, false
	}
	for _, m := range maps {
		if l, ok := ghc.ParseLibrary(filepath.Base(m.Path)); ok && l.RTS {
			return program{true, binary.Info{GHC: true, DynamicHaskell: true, GHCVersion: l.Version, Way: l.Way}}, true
		}
	}
	return program{}, false
}

// examine looks into a program's file. What cannot be read is not Haskell.
func examine(path string) (p program) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return p
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return p
	}
	e, err := elffile.Open(f, st.Size())
	if err != nil || !binary.MayBeHaskell(e) {
		return p
	}
	p.info = binary.IdentifyProgram(e)
	p.haskell = p.info.RTS || p.info.DynamicHaskell
	return p
}

// Age is for how long a process has run; 0 if it has ended.
func Age(pid uint32, now time.Time) time.Duration {
	st, err := os.Stat("/proc/" + strconv.FormatUint(uint64(pid), 10))
	if err != nil {
		return 0
	}
	return now.Sub(st.ModTime())
}
