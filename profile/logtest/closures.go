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
