package bpf

import "ccagent/internal/ghc"

// HeapLayout returns the offsets of the fields that the walker reads, for a version and way
// of GHC's run-time system. Assumed is true if the version is unknown and the newest known
// layout was taken.
func HeapLayout(version string, profiled, threaded bool) (l ProcessLayout, assumed bool) {
	g, known := ghc.LayoutOf(version, profiled, threaded)
	const word = 8
	return ProcessLayout{
		Header:         g.Header,
		TsoStackobj:    g.TSOStackObj,
		TsoId:          g.TSOID,
		TsoLabel:       g.TSOLabel,
		TsoCccs:        g.TSOCCCS,
		TsoTrec:        g.TSOTRec,
		TrecEntry:      uint16(g.TRecEntryBytes()),
		TsoRead:        max(g.TSOID, g.TSOLabel) + word,
		StackSize:      g.StackSize,
		StackSp:        g.StackSp,
		StackFirst:     g.StackFirst,
		TaskIncall:     g.TaskInCall,
		TotalAllocated: g.TotalAllocated,
		PinnedBlocks:   g.PinnedBlocks,
	}, !known
}
