package doctor

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"ccagent/agent/procfs"
	"ccagent/agent/rtsites"
	"ccagent/symbolize/binary"
	"ccagent/symbolize/elffile"
)

// heapCensus says whether the heap of a program can be counted, and when, by its file and that file's separate debug file, which is nil if there
// is none. Of a run-time system in a shared library it says that it was not looked at.
func heapCensus(f, debug *elffile.File, b *binary.Info) Check {
	const name = "heap census"
	s, err := rtsites.ReadSymbols(f, debug)
	if err == nil {
		_, err = rtsites.FindCensus(s)
	}
	switch {
	case err == nil:
		return Check{Name: name, Status: OK, Detail: "at the end of major collections (ccagent heap PID; -e heap), and at rest"}
	case errors.Is(err, rtsites.ErrMachine):
		return Check{Name: name, Status: Warning, Detail: "none on this machine", Fix: "count heaps on x86-64"}
	case b.DynamicHaskell:
		return Check{Name: name, Status: Warning, Detail: "at rest (ccagent heap PID), garbage included; its run-time system is a shared library, which was not looked at: without symbols of its functions there is no census at collections, and no series (-e heap)",
			Fix: "if they are missing, link the program without -dynamic, or install the debug symbols of that library"}
	}
	return Check{Name: name, Status: Warning, Detail: fmt.Sprintf("at rest alone (ccagent heap PID), garbage included, and no series (-e heap): %v", err), Fix: fixStripped}
}

// Process adds what keeps the heap of a running process from being counted to the check of its program.
func Process(pid int, checks []Check) []Check {
	i := slices.IndexFunc(checks, func(c Check) bool { return c.Name == "heap census" })
	if i < 0 {
		return checks
	}
	c := &checks[i]
	if flag := nonmoving(pid); flag != "" {
		c.Status, c.Detail = Warning, "none of closures: it runs with +RTS "+flag+"; ccagent heap PID says where its memory is"
		c.Fix = "run it without that flag"
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
