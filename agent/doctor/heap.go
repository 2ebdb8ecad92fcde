package doctor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"ccagent/agent/procfs"
	"ccagent/agent/rtsites"
	"ccagent/internal/ghc"
	"ccagent/symbolize/binary"
	"ccagent/symbolize/elffile"
)

// heapCensus says whether the heap of a program can be counted, and when, by its file and that file's separate debug file, which is nil if there
// is none; where its run-time system is a shared library, by that.
func heapCensus(program string, f, debug *elffile.File, b *binary.Info) Check {
	lib, path := b.SharedRTS(program)
	switch {
	case lib == "" || b.RTS:
		return censusBy(f, debug, "")
	case path == "":
		return notLookedAt(lib, "the program's own search path does not lead to it; ccagent doctor PID looks at what a process has loaded")
	}
	return censusByLibrary(nil, path)
}

const heapCensusName = "heap census"

// notLookedAt is the check of a program whose run-time system is in a library that was not read.
func notLookedAt(lib, why string) Check {
	return Check{Name: heapCensusName, Status: Warning, Fix: fixLibrary,
		Detail: fmt.Sprintf("at rest (ccagent heap PID), garbage included; its run-time system is a shared library, %s, which was not looked at: %s. Without symbols of its functions there is no census at collections, and no series (-e heap)", lib, why)}
}

const fixLibrary = "if the library lacks symbols, link the program without -dynamic, or install the debug symbols of that library"

// censusByLibrary is heapCensus for a run-time system in a shared library, of a process whose root directory is root, or with nil of a program here.
func censusByLibrary(root *os.File, path string) Check {
	file, err := binary.OpenInRoot(root, path)
	if err != nil {
		return notLookedAt(path, err.Error())
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return notLookedAt(path, "it is no regular file")
	}
	f, err := openELF(file)
	if err != nil {
		return notLookedAt(path, err.Error())
	}
	b := binary.IdentifyFile(f)
	var debug *elffile.File
	if !b.HasSymtab {
		if d := binary.OpenDebugFile(root, path, &b); d != nil {
			defer d.Close()
			debug, _ = openELF(d)
		}
	}
	return censusBy(f, debug, path)
}

// censusBy judges by the file of a run-time system; library is its path where that is not the program's.
func censusBy(f, debug *elffile.File, library string) Check {
	c := Check{Name: heapCensusName, Status: Warning}
	s, err := rtsites.ReadSymbols(f, debug)
	if err == nil {
		_, err = rtsites.FindCensus(s)
	}
	switch {
	case err == nil:
		c.Status, c.Detail = OK, "at the end of major collections (ccagent heap PID; -e heap), and at rest"
		if library != "" {
			c.Detail += ", by the symbols of " + library
		}
	case errors.Is(err, rtsites.ErrMachine):
		c.Detail, c.Fix = "none on this machine", "count heaps on x86-64"
	default:
		c.Detail, c.Fix = fmt.Sprintf("at rest alone (ccagent heap PID), garbage included, and no series (-e heap): %v", err), fixStripped
		if library != "" {
			c.Detail, c.Fix = c.Detail+", in "+library, "link the program without -dynamic, or install the debug symbols of that library"
		}
	}
	return c
}

// loadedRTS is the check by the shared library that has the run-time system of a process; false if it has loaded none.
func loadedRTS(pid int) (Check, bool) {
	maps, err := procfs.Maps(pid)
	if err != nil {
		return Check{}, false
	}
	for _, m := range maps {
		if l, ok := ghc.ParseLibrary(filepath.Base(m.Path)); !ok || !l.RTS {
			continue
		}
		root, err := os.OpenFile(fmt.Sprintf("/proc/%d/root", pid), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return notLookedAt(m.Path, "the process may not be examined: "+err.Error()), true
		}
		defer root.Close()
		return censusByLibrary(root, m.Path), true
	}
	return Check{}, false
}

// Process adds what keeps the heap of a running process from being counted to the check of its program.
func Process(pid int, checks []Check) []Check {
	i := slices.IndexFunc(checks, func(c Check) bool { return c.Name == heapCensusName })
	if i < 0 {
		return checks
	}
	c := &checks[i]
	if loaded, is := loadedRTS(pid); is {
		*c = loaded // the dynamic linker may have found another than the program's own search path leads to
	}
	if flag := nonmoving(pid); flag != "" {
		c.Status, c.Detail = Warning, "at rest, garbage included, and none in a series: it runs with +RTS "+flag
		c.Fix = "ccagent heap --graph PID tells what of it is alive; or run it without that flag"
	}
	if s, err := procfs.ReadStatus(pid); err == nil && s.Tracer != 0 {
		tracer := s.Tracer // the thread that does
		if t, err := procfs.ReadStatus(tracer); err == nil {
			tracer = t.TGID
		}
		c.Status, c.Detail = Warning, fmt.Sprintf("not now: process %d traces it, and a process has no more than one tracer", tracer)
		c.Fix = "end that process first"
	}
	return checks
}

// nonmoving is the flag that has a process's oldest generation collected without moving; "" if its command line has none. What it
// takes from GHCRTS or was linked with is not seen.
func nonmoving(pid int) string {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil {
		return ""
	}
	inside := false
	for arg := range bytes.SplitSeq(line, []byte{0}) {
		switch a := string(arg); {
		case a == "+RTS":
			inside = true
		case a == "-RTS":
			inside = false
		case a == "--RTS", a == "--":
			return ""
		case inside && (a == "--nonmoving-gc" || a == "-xn" || strings.HasPrefix(a, "-xn")):
			return a
		}
	}
	return ""
}
