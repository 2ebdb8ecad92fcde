package agent

import (
	"fmt"
	"runtime/debug"

	"ccagent/agent/process"
	"ccagent/internal/sandbox"
)

const (
	// roomyMemory is what control groups have to leave, in bytes, for a capture to take
	// memory for speed: verifying all BPF programs at once takes most of it.
	roomyMemory = 160 << 20
	// leastMemory is what a capture cannot do without. Below, the kernel would kill the
	// agent in the midst of it.
	leastMemory = 44 << 20
	// tightRows is the room for call frame information where memory is short.
	tightRows = 1 << 18
	tightHeap = 16 << 20 // of the agent
)

// memoryPlan is what a capture may take.
type memoryPlan struct {
	tight bool
	rows  int // of call frame information
}

// planMemory fits the capture to what control groups leave of memory, or refuses where
// that is too little.
func (c *capture) planMemory() (memoryPlan, error) {
	plan := memoryPlan{rows: process.UnwindRows(c.target.CodeSize())}
	left, group, ok := sandbox.MemoryLeft()
	switch {
	case !ok || left >= roomyMemory:
	case left < leastMemory:
		return plan, fmt.Errorf("the control group %s leaves %d MB of memory, and a capture takes %d MB or more: raise its memory limit, or run ccagent outside of it", group, left>>20, leastMemory>>20)
	default:
		plan.tight, plan.rows = true, min(plan.rows, tightRows)
		debug.SetMemoryLimit(tightHeap)
		c.log.Warn(fmt.Sprintf("the control group %s leaves %d MB of memory: C code of large libraries may not be unwound, and names may be those of symbols", group, left>>20))
	}
	return plan, nil
}
