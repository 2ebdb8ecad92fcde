package process

import (
	"os"
	"runtime"

	"ccagent/agent/rtsites"
)

// WhyNoProbes tells why the machine takes no probes in run-time systems, and what would
// help; both are empty if it does.
func WhyNoProbes() (reason, help string) {
	if runtime.GOARCH != "amd64" {
		return rtsites.ErrMachine.Error(), "sample the other events; let the program write its own eventlog (+RTS -l) and have ccview merge show both"
	}
	if _, err := os.Stat("/sys/bus/event_source/devices/uprobe"); err != nil {
		return "the kernel puts no probes into programs", "boot a kernel with CONFIG_UPROBE_EVENTS, which every distribution's has"
	}
	return "", ""
}
