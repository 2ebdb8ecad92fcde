// Package logtest writes logs for tests: small ones by hand, large ones
// generated. Nothing but tests imports it.
package logtest

import (
	"bytes"
	"fmt"

	"ccagent/eventlog"
)

// Log is a log under construction. Symbol tables are collected and written at the
// end, as in a capture.
type Log struct {
	buf     bytes.Buffer
	w       *eventlog.Writer
	symbols []eventlog.Event
	locs    eventlog.Locations
	nodes   map[eventlog.Node]uint32
	next    struct{ node, binding, file, span, block, core uint32 }
	addr    uint64
	last    uint64
}

// Module is the id of the program's own module.
const Module = 1

// New begins a log of a program with one event, index 0: cycles were requested, and
// cpu-clock in ns was granted.
func New() *Log {
	l := &Log{nodes: make(map[eventlog.Node]uint32), addr: 0x400000}
	l.w = eventlog.NewWriter(&l.buf, nil)
	l.locs.Module = Module
	l.Write(0, &eventlog.Capture{
		AgentVersion: "0.1.0", StartUnixNs: 1_700_000_000_000_000_000, PID: 100, UID: 1000, Program: "/home/u/nbody",
		Args: []string{"./nbody", "1000"}, GHCVersion: "9.0.2", Way: "rts_thr", Kernel: "6.1.0", Arch: "amd64", CPUModel: "Example CPU", CPUs: 4,
	})
	l.Write(0, &eventlog.EventDef{Index: 0, Requested: "cycles", Granted: "cpu-clock", Fallback: "this machine has no hardware counters", Unit: "ns", Rate: 997})
	l.Write(0, &eventlog.Module{ID: Module, Path: "/home/u/nbody", BuildID: []byte{0xab, 0xcd}, Size: 1 << 20})
	return l
}

// Write adds an event to the log immediately.
func (l *Log) Write(time uint64, ev eventlog.Event) { l.WriteOn(time, eventlog.NoCap, ev) }

// WriteOn adds an event of a capability.
func (l *Log) WriteOn(time uint64, cap int, ev eventlog.Event) {
	if err := l.w.Write(time, cap, ev); err != nil {
		panic(fmt.Sprintf("write log: %v", err))
	}
	l.last = max(l.last, time)
}

// Len ends the log's blocks, and returns the number of its bytes so far.
func (l *Log) Len() int {
	if err := l.w.Flush(); err != nil {
		panic(fmt.Sprintf("write log: %v", err))
	}
	return l.buf.Len()
}

// Symbol adds an event to the symbol tables.
func (l *Log) Symbol(ev eventlog.Event) { l.symbols = append(l.symbols, ev) }

// Binding defines a Haskell binding and returns its id. parent is the binding that it
// was derived from, or 0.
func (l *Log) Binding(pkg, module, name string, parent uint32) uint32 {
	l.next.binding++
	l.Symbol(&eventlog.Binding{ID: l.next.binding, Symbol: module + "_" + name + "_info", Package: pkg, Module: module, Name: name, Parent: parent, Category: eventlog.CategoryHaskell})
	return l.next.binding
}

// Function defines a C function or other code of a category and returns its id.
func (l *Log) Function(name string, c eventlog.Category) uint32 {
	l.next.binding++
	l.Symbol(&eventlog.Binding{ID: l.next.binding, Symbol: name, Name: name, Category: c})
	return l.next.binding
}

// File defines a source file; an empty text is left out.
func (l *Log) File(path, text string) uint32 {
	l.next.file++
	f := &eventlog.File{ID: l.next.file, Path: path, TextSize: uint64(len(text))}
	l.Symbol(f)
	for at := 0; at < len(text); at += eventlog.MaxTextPart {
		l.Symbol(&eventlog.FileText{File: f.ID, Offset: uint64(at), Text: []byte(text[at:min(len(text), at+eventlog.MaxTextPart)])})
	}
	return f.ID
}

// Core defines the Core of a binding, with notes in the order of the text.
func (l *Log) Core(binding, file uint32, name, text string, notes ...eventlog.CoreNote) uint32 {
	l.next.core++
	c := &eventlog.Core{ID: l.next.core, Binding: binding, File: file, Name: name, Dump: "Main.dump-simpl", Line: 1, TextSize: uint64(len(text)), Notes: notes}
	l.Symbol(c)
	for at := 0; at < len(text); at += eventlog.MaxTextPart {
		l.Symbol(&eventlog.CoreText{Core: c.ID, Offset: uint64(at), Text: []byte(text[at:min(len(text), at+eventlog.MaxTextPart)])})
	}
	return c.ID
}

// Span defines a source note.
func (l *Log) Span(file, line, col, endLine, endCol, binding uint32) uint32 {
	l.next.span++
	l.Symbol(&eventlog.Span{ID: l.next.span, File: file, Line: line, Col: col, EndLine: endLine, EndCol: endCol, Binding: binding})
	return l.next.span
}

// Frame is a frame of a stack.
type Frame struct {
	Kind   eventlog.FrameKind
	Module uint32
	Addr   uint64
}

// As returns the frame with another kind.
func (f Frame) As(k eventlog.FrameKind) Frame {
	f.Kind = k
	return f
}

// Block adds code of a binding, with the spans of its cause set, nearest first.
func (l *Log) Block(binding uint32, spans ...uint32) Frame {
	l.next.block++
	b := &eventlog.Block{ID: l.next.block, Module: Module, Lo: l.addr, Hi: l.addr + 16, Binding: binding}
	for i, s := range spans {
		b.Causes = append(b.Causes, eventlog.Cause{Span: s, Distance: uint32(i)})
	}
	l.Symbol(b)
	return l.code(eventlog.Location{Block: b.ID, Binding: binding, Quality: eventlog.QualityExact, Category: eventlog.CategoryHaskell})
}

// Enclosed adds code with causes of any distance, in a procedure that others statically
// enclose, innermost first.
func (l *Log) Enclosed(binding uint32, enclosing []uint32, causes ...eventlog.Cause) Frame {
	l.next.block++
	b := &eventlog.Block{ID: l.next.block, Module: Module, Lo: l.addr, Hi: l.addr + 16, Binding: binding, Enclosing: enclosing, Causes: causes}
	l.Symbol(b)
	return l.code(eventlog.Location{Block: b.ID, Binding: binding, Quality: eventlog.QualityExact, Category: eventlog.CategoryHaskell})
}

// Code adds code without source notes.
func (l *Log) Code(binding uint32, q eventlog.Quality, c eventlog.Category, lines ...eventlog.Line) Frame {
	return l.code(eventlog.Location{Binding: binding, Quality: q, Category: c, Lines: lines})
}

func (l *Log) code(loc eventlog.Location) Frame {
	loc.Addr = l.addr
	l.addr += 16
	l.locs.Locations = append(l.locs.Locations, loc)
	return Frame{eventlog.FrameReturn, Module, loc.Addr}
}

// Unknown adds code without any symbol information.
func (l *Log) Unknown() Frame {
	l.addr += 16
	return Frame{eventlog.FrameReturn, Module, l.addr - 16}
}

// Mark returns a frame that has no code.
func Mark(k eventlog.FrameKind) Frame { return Frame{Kind: k} }

// Stack returns the node of a stack whose frames are given root first. If the last
// frame is a FrameReturn, it becomes a FramePC.
func (l *Log) Stack(frames ...Frame) uint32 {
	at := uint32(0)
	for i, f := range frames {
		if i == len(frames)-1 && f.Kind == eventlog.FrameReturn {
			f.Kind = eventlog.FramePC
		}
		n := eventlog.Node{Parent: at, Kind: f.Kind, Module: f.Module, Addr: f.Addr}
		id, ok := l.nodes[n]
		if !ok {
			l.next.node++
			id = l.next.node
			l.nodes[n] = id
			l.Write(l.last, &eventlog.Nodes{First: id, Nodes: []eventlog.Node{n}})
		}
		at = id
	}
	return at
}

// Sample adds a sample of event 0 on capability 0.
func (l *Log) Sample(time, weight uint64, node uint32) {
	l.SampleOf(time, eventlog.Sample{Weight: weight, Node: node, TSO: 1})
}

// SampleOf adds a sample of the program's process.
func (l *Log) SampleOf(time uint64, s eventlog.Sample) {
	s.PID, s.TID = 100, 100+s.Capability
	l.Write(time, &s)
}

// End closes the capture and writes the symbol tables.
func (l *Log) End() []byte {
	l.Write(l.last, &eventlog.CaptureEnd{Reason: eventlog.EndExited, HaveStatus: true})
	return l.EndAbruptly(true)
}

// EndAbruptly ends the log without closing the capture. It writes the symbol tables if
// symbols is set.
func (l *Log) EndAbruptly(symbols bool) []byte {
	if symbols {
		l.Write(l.last, &eventlog.ModuleSymbols{Module: Module, GHCVersion: "9.0.2", Way: "rts_thr", HasSymtab: true, HasDWARF: true, HasNotes: true})
		for _, ev := range l.symbols {
			l.Write(l.last, ev)
		}
		l.Write(l.last, &l.locs)
	}
	if err := l.w.Close(); err != nil {
		panic(fmt.Sprintf("close log: %v", err))
	}
	return l.buf.Bytes()
}
