package diagnosis

import (
	"fmt"
	"strings"

	"ccagent/profile"
)

// NoClosures says why a log does not say what was allocated by closure; empty if it does.
func NoClosures(p *profile.Profile) string {
	if len(p.Nurseries.Blocks) > 0 {
		return ""
	}
	for i := range p.Warnings {
		if strings.HasPrefix(p.Warnings[i].Text, "allocation by closure is not available") {
			return p.Warnings[i].Text
		}
	}
	if _, ok := p.EventNamed("alloc"); !ok {
		return "The log does not say what was allocated: record with -e alloc, which is among the events by default."
	}
	if p.HaveCapture {
		return fmt.Sprintf("No block of the nursery was sampled: there was no collection while one was to be copied, or ccagent %s does not copy any.", p.Capture.AgentVersion)
	}
	return "The log has no samples of the nursery."
}
