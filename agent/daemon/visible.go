package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"ccagent/agent/config"
	"ccagent/agent/daemon/control"
	"ccagent/agent/discovery"
	"ccagent/agent/procfs"
	"ccagent/agent/rtsites"
	"ccagent/agent/source"
	"ccagent/internal/credentials"
	"ccagent/symbolize/binary"
	"ccagent/symbolize/elffile"
)

// Prospect says what a daemon with the default configuration would measure of processes. Each file is
// looked at once.
type Prospect struct{ known map[fileID]prospect }

type fileID struct {
	dev   uint64
	inode uint64
}

// prospect is why the sites of probes cannot be found in a file; rts is set if it has a run-time system.
type prospect struct {
	rts            bool
	alloc, gc, run error
}

// Describe is a process as the protocol has it, with the events that could be measured.
func (v *Prospect) Describe(p discovery.Process) control.Process {
	one, found := Describe(p), v.of(p)
	for _, event := range config.Default().Events {
		err, probed := map[string]error{"alloc": found.alloc, "gc": found.gc, "threads": found.run}[event]
		if probed && !found.rts {
			err = source.ErrNoRTS
		}
		if err != nil {
			one.Missing = append(one.Missing, control.Missing{Event: event, Reason: err.Error()})
		} else {
			one.Events = append(one.Events, event)
		}
	}
	return one
}

// of looks for the run-time system in the files that a process has mapped: its program, or a library.
func (v *Prospect) of(p discovery.Process) prospect {
	if v.known == nil {
		v.known = map[fileID]prospect{}
	}
	files := []string{fmt.Sprintf("/proc/%d/exe", p.PID)}
	maps, _ := procfs.Maps(int(p.PID)) // none where that is not permitted
	for _, m := range maps {
		path := fmt.Sprintf("/proc/%d/root%s", p.PID, m.Path)
		if filepath.IsAbs(m.Path) && discovery.IsLibrary(m.Path) && !slices.Contains(files, path) {
			files = append(files, path)
		}
	}
	for _, path := range files {
		if found := v.file(path, p); found.rts {
			return found
		}
	}
	return prospect{}
}

func (v *Prospect) file(path string, p discovery.Process) (found prospect) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return found
	}
	defer f.Close()
	var st unix.Stat_t
	if unix.Fstat(int(f.Fd()), &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFREG {
		return found
	}
	id := fileID{uint64(st.Dev), st.Ino}
	if known, ok := v.known[id]; ok {
		return known
	}
	defer func() { v.known[id] = found }()
	e, err := elffile.Open(f, st.Size)
	if err != nil {
		return found
	}
	b := binary.IdentifyProgram(e)
	if !b.RTS {
		return found
	}
	found.rts = true
	own := fmt.Sprintf("/proc/%d/root", p.PID)
	root, err := binary.OpenRoot(own)
	if err == nil {
		defer root.Close()
	}
	name, inRoot := strings.CutPrefix(path, own)
	if !inRoot {
		name = p.Path
	}
	debug, done := b.StrippedSymbols(root, name, credentials.Credentials{UID: p.UID, GID: p.GID, Groups: p.Groups})
	defer done()
	symbols, err := rtsites.ReadSymbols(e, debug)
	if err != nil {
		found.alloc, found.gc, found.run = err, err, err
		return found
	}
	_, found.alloc = rtsites.FindAllocation(symbols)
	sites, err := rtsites.Find(symbols)
	if err != nil {
		found.gc, found.run = err, err
		return found
	}
	found.gc, found.run = sites.GC.Err, sites.Threads.Err
	return found
}
