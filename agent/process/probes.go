package process

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"ccagent/agent/rtsites"
	"ccagent/agent/uprobe"
)

// Probe is a site in an image's run-time system, for Put.
type Probe struct {
	Addr   uint64 // module address
	Cookie uint64 // that the BPF program is given
}

// errNoCode is returned for a place that is not in the run-time system's file.
var errNoCode = errors.New("the place of a probe is not in the file of the run-time system")

// Put puts probes that run a program into the image's process, in the code of its run-time
// system; multi is set if the program is made for links of many probes. It may be called
// by several goroutines.
func (im *Image) Put(program *ebpf.Program, multi bool, probes ...Probe) (*uprobe.Probes, error) {
	exe, err := im.RTS.executable()
	if err != nil {
		return nil, &uprobe.Error{Err: err}
	}
	sites := make([]uprobe.Site, len(probes))
	for i, p := range probes {
		offset, ok := im.RTS.FileOffset(p.Addr)
		if !ok {
			return nil, errNoCode
		}
		sites[i] = uprobe.Site{Offset: offset, Cookie: p.Cookie}
	}
	return uprobe.Put(exe, im.PID, program, multi, sites...)
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
	if runtime.GOARCH != "amd64" {
		return rtsites.ErrMachine.Error(), "sample the other events; let the program write its own eventlog (+RTS -l) and have ccview merge show both"
	}
	if _, err := os.Stat("/sys/bus/event_source/devices/uprobe"); err != nil {
		return "the kernel puts no probes into programs", "boot a kernel with CONFIG_UPROBE_EVENTS, which every distribution's has"
	}
	return "", ""
}
