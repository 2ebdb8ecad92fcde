package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"ccagent/agent/uprobe"
)

// Probe is a site in an image's run-time system, for Put.
type Probe struct {
	Addr   uint64 // module address
	Cookie uint64 // that the BPF program is given
}

// errNoCode is returned for a place that is not in the run-time system's file.
var errNoCode = errors.New("the place of a probe is not in the file of the run-time system")

// ErrEnded is returned where a probe was not put into a process, or its memory cannot be read, since that has ended.
var ErrEnded = errors.New("the process has ended")

// Put puts probes that run a program into the image's process, in the code of its run-time
// system; multi is set if the program is made for links of many probes. It may be called
// by several goroutines.
func (im *Image) Put(program *ebpf.Program, multi bool, at ...Probe) (*uprobe.Probes, error) {
	exe, err := im.RTS.executable()
	if err != nil {
		return nil, &uprobe.Error{Err: err}
	}
	sites := make([]uprobe.Site, len(at))
	for i, p := range at {
		offset, ok := im.RTS.FileOffset(p.Addr)
		if !ok {
			return nil, errNoCode
		}
		sites[i] = uprobe.Site{Offset: offset, Cookie: p.Cookie}
	}
	probes, err := uprobe.Put(exe, im.PID, program, multi, sites...)
	if err != nil && im.ended() {
		return nil, fmt.Errorf("%w: %w", ErrEnded, err)
	}
	return probes, err
}

// ended reports whether the image's process has ended: the kernel then refuses probes with
// whatever error comes first.
func (im *Image) ended() bool {
	if im.Exited {
		return true
	}
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", im.PID))
	if err != nil {
		return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ESRCH)
	}
	// The state follows the name, which is in parentheses and may hold any character. The flags
	// show an exit that is under way; the memory goes before the state changes.
	const exiting, flags = 0x4, 6 // PF_EXITING
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if len(fields) <= flags {
		return false
	}
	set, err := strconv.ParseUint(fields[flags], 10, 64)
	return fields[0] == "Z" || fields[0] == "X" || err == nil && set&exiting != 0
}

// executable opens the module for uprobes, by the descriptor that is held open: its path may
// name another file by now.
func (mod *Module) executable() (*link.Executable, error) {
	mod.linking.Do(func() {
		mod.exe, mod.exeErr = link.OpenExecutable(fmt.Sprintf("/proc/self/fd/%d", mod.File.Fd()))
	})
	return mod.exe, mod.exeErr
}

// WhyNoProbes returns why the machine supports no probes in run-time systems, and what would
// help; both are empty if it supports them.
func WhyNoProbes() (reason, help string) {
	if !uprobe.Available() {
		return "the kernel puts no probes into programs", "boot a kernel with CONFIG_UPROBE_EVENTS, which every distribution's has; a container may hide /sys/bus/event_source"
	}
	return "", ""
}
