package ui

import "runtime/debug"

// garbageShare is how much garbage the viewer lets lie at most, in percent of what it needs. Columns of
// samples, most of what it needs, have no pointers, so collecting often is cheap.
const garbageShare = 30

// From leastMemory on, or memoryASample for each sample where that is more, garbage is collected as soon
// as there is some. A sample takes 20 bytes, and what screens make of it as much again, or twice.
const (
	leastMemory   = 300 << 20
	memoryASample = 64
)

// limitMemory sets how much memory a log of so many samples may take before garbage is collected at once.
func limitMemory(samples int) {
	debug.SetMemoryLimit(max(leastMemory, memoryASample*int64(samples)))
}
