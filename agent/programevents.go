package agent

import (
	"os"
	"runtime"

	"ccagent/agent/rtsites"
	"ccagent/agent/rtsprobes"
)

// ProgramEvent is an event of the program and its run-time system, not of the machine.
type ProgramEvent struct {
	Name, Unit string
	About      string
	// Reason is why this machine lacks it, empty if it does not, and Help what would
	// bring it. What the program lacks is seen at capture.
	Reason, Help string
}

// ProgramEvents lists them.
func ProgramEvents() []ProgramEvent {
	events := []ProgramEvent{
		{Name: AllocEvent, Unit: "bytes", About: "what allocates"},
		{Name: rtsprobes.GCEvent, About: "collections over time, the heap's size"},
		{Name: rtsprobes.ThreadsEvent, About: "threads over time, why they stop"},
		{Name: OffCPUEvent, Unit: "ns", About: "waits in calls from Haskell"},
	}
	reason, help := whyNoProbes()
	for i := range events[:3] {
		events[i].Reason, events[i].Help = reason, help
	}
	if _, err := os.Stat("/sys/kernel/btf/vmlinux"); err != nil {
		events[3].Reason = "the kernel does not tell its types (/sys/kernel/btf/vmlinux)"
		events[3].Help = "boot a kernel with CONFIG_DEBUG_INFO_BTF, which every distribution's has"
	}
	return events
}

// whyNoProbes tells why the machine takes no probes in run-time systems.
func whyNoProbes() (reason, help string) {
	if runtime.GOARCH != "amd64" {
		return rtsites.ErrMachine.Error(), "sample the other events; let the program write its own eventlog (+RTS -l) and have ccview merge show both"
	}
	if _, err := os.Stat("/sys/bus/event_source/devices/uprobe"); err != nil {
		return "the kernel puts no probes into programs", "boot a kernel with CONFIG_UPROBE_EVENTS, which every distribution's has"
	}
	return "", ""
}
