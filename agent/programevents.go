package agent

import (
	"errors"
	"os"
	"runtime"

	"ccagent/agent/rtsites"
)

// ProgramEvent is an event of the program and its run-time system, not of the machine.
type ProgramEvent struct {
	Name, Unit string
	Err        error // why this machine lacks it; what the program lacks is seen at capture
}

// ProgramEvents lists them.
func ProgramEvents() []ProgramEvent {
	var probes, switches error
	if runtime.GOARCH != "amd64" {
		probes = rtsites.ErrMachine
	} else if _, err := os.Stat("/sys/bus/event_source/devices/uprobe"); err != nil {
		probes = errors.New("the kernel puts no probes into programs (CONFIG_UPROBE_EVENTS)")
	}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		switches = errors.New("the kernel tells no types (CONFIG_DEBUG_INFO_BTF)")
	}
	return []ProgramEvent{
		{AllocEvent, "bytes", probes},
		{OffCPUEvent, "ns", switches},
		{GCEvent, "", probes},
		{ThreadsEvent, "", probes},
	}
}
