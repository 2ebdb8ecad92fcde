package logtest

import (
	"ccagent/eventlog"
	"ccagent/internal/ghc"
)

// Allocated is a log with 40 blocks of a nursery: six tenths of their bytes are of the
// constructor Main.Node, and the others of a thunk in Main.main and of evaluated thunks.
func Allocated() *Log {
	l := New()
	file := l.File("src/Main.hs", "module Main where\n\nmain = f\n")
	b := l.Binding("main", "Main", "main", 0)
	thunk := l.Block(b, l.Span(file, 3, 8, 3, 9, b))
	l.Sample(1, 1, l.Stack(thunk))
	l.Write(1, &eventlog.Closure{ID: 1, Module: Module, Addr: 0x77, Type: uint32(ghc.Constr20), Name: "main:Main.Node"})
	l.Write(1, &eventlog.Closure{ID: 2, Module: Module, Addr: thunk.Addr, Type: uint32(ghc.Thunk10)})
	l.Write(1, &eventlog.Closure{ID: 3, Module: Module, Addr: 0x99, Type: uint32(ghc.Blackhole)})
	for i := range uint64(40) {
		l.Write(10+i, &eventlog.NurseryBlock{PID: 1, Places: 256, Used: 4000, Read: 4000, Closures: []eventlog.ClosureCount{
			{Closure: 1, Count: 100, Bytes: 2400}, {Closure: 2, Count: 40, Bytes: 1000 - uint32(i)}, {Closure: 3, Count: 15, Bytes: 600 + uint32(i)}}})
	}
	return l
}

// Retaining makes the log of one census with its pointers, and where memory is: a thread keeps forty nodes, of which each
// but the first is kept by the one before, and the last of them a thunk.
func Retaining() *Log {
	l := New()
	file := l.File("src/Main.hs", "module Main where\n\nmain = f\n")
	b := l.Binding("main", "Main", "main", 0)
	thunk := l.Block(b, l.Span(file, 3, 8, 3, 9, b))
	l.Sample(1, 1, l.Stack(thunk))
	l.Write(2, &eventlog.Closure{ID: 1, Module: Module, Addr: 0x77, Type: uint32(ghc.Constr20), Name: "main:Main.Node"})
	l.Write(2, &eventlog.Closure{ID: 2, Module: Module, Addr: thunk.Addr, Type: uint32(ghc.Thunk10)})
	for _, e := range []eventlog.Event{
		&eventlog.HeapGraph{PID: 1, Closures: 42, Pointers: 41, Bytes: 1200, Unreached: 1, UnreachedBytes: 16, Threads: 1, Notes: []string{"a note"}, Stuck: 1, StuckKnown: true},
		&eventlog.HeapBand{Closure: 1, Count: 40, Bytes: 960, Retained: 1184, Largest: 1184},
		&eventlog.HeapBand{Closure: 2, Count: 1, Bytes: 224, Retained: 224, Largest: 224},
		&eventlog.HeapRoot{ID: 1, Kind: eventlog.HeapRootThread, TSO: 7, Label: "reader", Retained: 1184},
		&eventlog.HeapBranch{Count: 42, Bytes: 0, Retained: 1200},
		&eventlog.HeapBranch{Parent: 0, Root: 1, Count: 1, Retained: 1184},
		&eventlog.HeapBranch{Parent: 1, Closure: 1, Count: 40, Bytes: 960, Retained: 1184},
		&eventlog.HeapBranch{Parent: 2, Closure: 2, Count: 1, Bytes: 224, Retained: 224},
		&eventlog.HeapPath{Closure: 2, Root: 1, Count: 1, Bytes: 224, Retained: 224,
			Steps: []eventlog.HeapStep{{Closure: 1, Times: 40}, {Closure: 2, Times: 1}}},
		&eventlog.HeapStuck{TSO: 7, Label: "reader", Kind: eventlog.BlockerMVar, Held: true},
		&eventlog.Footprint{PID: 1, Resident: 64 << 20, Swapped: 4096, Slop: 16, StackBytes: 1024, Threads: 2, Megablocks: 60, Partly: 50, Notes: []string{"a note"}},
		&eventlog.FootprintPart{Kind: eventlog.FootprintFreeBlocks, Bytes: 40 << 20, Mapped: 40 << 20, Count: 50},
		&eventlog.FootprintPart{Kind: eventlog.FootprintLive, Generation: 1, Bytes: 20 << 20, Mapped: 20 << 20, Count: 5120},
		&eventlog.FootprintPart{Kind: eventlog.FootprintLarge, Name: "ARR_WORDS", Bytes: 1 << 20, Mapped: 2 << 20, Count: 1},
		&eventlog.FootprintPart{Kind: eventlog.FootprintFiles, Name: "/usr/bin/prog", Bytes: 2 << 20, Mapped: 3 << 20, Count: 4},
		&eventlog.FootprintPin{Kind: eventlog.FootprintStacks, Megablocks: 50, Free: 40 << 20, Held: 50 << 12, Count: 50},
		&eventlog.FootprintPin{Kind: eventlog.FootprintLarge, Name: "ARR_WORDS", Megablocks: 1, Free: 4096, Held: 1 << 19, Count: 1},
		&eventlog.FootprintStack{TSO: 7, Label: "reader", Bytes: 1024, Node: l.Stack(thunk)},
	} {
		l.Write(3, e)
	}
	return l
}

// Growing is a log of five censuses of a heap, a second apart, in which nodes grow by 2400 bytes each time, a
// stack breathes, and what is scratched shrinks by 80 bytes in all.
func Growing() *Log {
	l := New()
	l.Sample(1, 1, l.Stack(l.Unknown()))
	l.SampleOf(2, eventlog.Sample{Weight: 3, Node: l.Stack(l.Unknown()), Flags: eventlog.SampleInTransaction})
	l.Write(2, &eventlog.HeapProfBegin{PeriodNs: 1e9, Breakdown: eventlog.BreakdownClosureType})
	l.Write(3, &eventlog.TransactionWindow{PID: 100, LengthNs: 1, StandsNs: 4, Begun: 10, BegunStands: 40,
		Ends: [eventlog.TransactionEnds]uint64{6, 3, 1}, Noted: 1, Sampled: [eventlog.TransactionEnds]uint64{0, 1}})
	for i := range uint64(5) {
		at := (i + 1) * 1e9
		l.Write(at, &eventlog.HeapCensus{PID: 1, Collection: uint32(i + 3), PauseNs: 2e6, TookNs: 5e6, Beside: i == 4, Closures: 100*i + 111, Counts: []uint64{100*i + 100, 1, 10 - i}})
		l.Write(at, &eventlog.HeapSampleBegin{Era: i + 1})
		l.Write(at, &eventlog.HeapSampleString{Bytes: 2400 * (i + 1), Label: "main:Main.Node"})
		l.Write(at, &eventlog.HeapSampleString{Bytes: 1000 + 24*(i%2), Label: "STACK"})
		l.Write(at, &eventlog.HeapSampleString{Bytes: 200 - 20*i, Label: "main:Main.Scratch"})
		l.Write(at, &eventlog.HeapSampleEnd{Era: i + 1})
	}
	l.Write(5e9, &eventlog.Sparks{Created: 900, Dud: 100, Converted: 600, Fizzled: 300})
	missed := make([]uint64, eventlog.HeapMisses)
	missed[eventlog.HeapMissCollected] = 2
	l.Write(6e9, &eventlog.HeapSeries{PID: 1, PeriodNs: 1e9, MaxPauseNs: 5e6, Collections: 40, Majors: 9, Taken: 5, Missed: missed,
		LongestNs: 7e6, StoodNs: 31e6, AgentNs: 30e6, CostNs: 31e6, DeferredNs: 1e9, Stops: 7, Over: 2})
	return l
}

// Divided is a log of three censuses of a heap, a second apart, that were counted by info table, too: nodes, a thunk that is written
// in Main.main and grows by 1600 bytes each time, one of the run-time system's, stacks, pinned arrays, and kinds that are not listed. Beside
// it, blocks of the nursery say that half of what is allocated are nodes.
func Divided() *Log { return DividedUntil(3) }

// DividedUntil is Divided with so many censuses.
func DividedUntil(censuses uint64) *Log {
	l := New()
	file := l.File("src/Main.hs", "module Main where\n\nmain = f\n")
	b := l.Binding("main", "Main", "main", 0)
	thunk := l.Block(b, l.Span(file, 3, 8, 3, 9, b))
	l.Sample(1, 1, l.Stack(thunk))
	l.Write(1, &eventlog.HeapProfBegin{PeriodNs: 1e9, Breakdown: eventlog.BreakdownClosureType})
	for id, c := range []eventlog.Closure{
		{Addr: 0x77, Type: uint32(ghc.Constr20), Name: "main:Main.Node"}, {Addr: thunk.Addr, Type: uint32(ghc.Thunk10)},
		{Addr: 0x99, Type: uint32(ghc.Stack)}, {Addr: 0x111, Type: uint32(ghc.Thunk02)},
	} {
		c.ID, c.Module = uint32(id+1), Module
		l.Write(1, &c)
	}
	for i := range censuses {
		at := (i + 1) * 1e9
		l.Write(at, &eventlog.NurseryBlock{PID: 1, Places: 100, Total: 8000 * (i + 1), Used: 4000, Read: 4000, Closures: []eventlog.ClosureCount{{Closure: 1, Count: 80, Bytes: 2000}, {Closure: 2, Count: 50, Bytes: 2000}}})
		l.Write(at, &eventlog.HeapCensus{PID: 1, Collection: uint32(i + 3), PauseNs: 2e6, TookNs: 5e6, Closures: 100, Counts: []uint64{40 * (i + 1), 40, 2, 5, 1, 9}})
		l.Write(at, &eventlog.HeapKinds{PID: 1, Pinned: 1, PinnedBytes: 4096, Rest: 9, RestBytes: 72, Kinds: []eventlog.HeapKind{
			{Closure: 2, Count: 40 * (i + 1), Bytes: 1600 * (i + 1)}, {Closure: 1, Count: 40, Bytes: 960}, {Closure: 3, Count: 2, Bytes: 2048}}})
		l.Write(at, &eventlog.HeapKinds{PID: 1, Kinds: []eventlog.HeapKind{{Closure: 4, Count: 5, Bytes: 200}}})
		l.Write(at, &eventlog.HeapSampleBegin{Era: i + 1})
		for _, band := range []eventlog.HeapSampleString{
			{Bytes: 1600 * (i + 1), Label: "THUNK_1_0"}, {Bytes: 960, Label: "main:Main.Node"}, {Bytes: 2048, Label: "STACK"}, {Bytes: 200, Label: "THUNK_0_2"},
			{Bytes: 4096, Label: "ARR_WORDS"}, {Bytes: 72, Label: "BCO"},
		} {
			l.Write(at, &band)
		}
		l.Write(at, &eventlog.HeapSampleEnd{Era: i + 1})
	}
	return l
}

// Drawn is a log of two censuses of a heap, a second apart, that have counted 64 of 400 megablocks. Nodes grow by 4000 bytes,
// and are known to 300 and 400.
func Drawn() *Log {
	l := New()
	l.Sample(1, 1, l.Stack(l.Unknown()))
	l.Write(2, &eventlog.HeapProfBegin{PeriodNs: 1e9, Breakdown: eventlog.BreakdownClosureType})
	for i := range uint64(2) {
		at := (i + 1) * 1e9
		l.Write(at, &eventlog.HeapDraw{PID: 1, Megablocks: 400, Drawn: 64, Stood: 64, Margins: []uint64{300 + 100*i, 0}})
		l.Write(at, &eventlog.HeapSampleBegin{Era: i + 1})
		l.Write(at, &eventlog.HeapSampleString{Bytes: 40000 + 4000*i, Label: "main:Main.Node"})
		l.Write(at, &eventlog.HeapSampleString{Bytes: 1000, Label: "STACK"})
		l.Write(at, &eventlog.HeapSampleEnd{Era: i + 1})
	}
	return l
}
