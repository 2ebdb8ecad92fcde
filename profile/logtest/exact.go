package logtest

import (
	"fmt"

	"ccagent/eventlog"
)

// Exact is a log of a -prof binary.
type Exact struct {
	*Log
	centres map[string]uint32
}

// NewExact begins a log without any cost centre.
func NewExact() *Exact {
	return &Exact{New(), make(map[string]uint32)}
}

// Centre returns the id of the cost centre with a label in module Main, and defines it
// if needed.
func (l *Exact) Centre(label string) uint32 {
	id := l.centres[label]
	if id == 0 {
		id = uint32(len(l.centres) + 1)
		l.centres[label] = id
		def := &eventlog.CentreDef{ID: id, Label: label, Module: "Main", SrcLoc: fmt.Sprintf("Main.hs:%d:1-20", 10*id)}
		switch label {
		case "MAIN", "GC", "SYSTEM":
			def.Module, def.SrcLoc = label, "<built-in>"
		}
		l.Write(1, def)
	}
	return id
}

// CentreStack defines the stack with an id: a centre on top of another stack.
func (l *Exact) CentreStack(id, parent uint32, label string) {
	l.Write(1, &eventlog.CentreStack{ID: id, Parent: parent, Centre: l.Centre(label)})
}

// CentreSample adds a sample that was taken while a cost-centre stack was current.
func (l *Exact) CentreSample(weight uint64, node, stack uint32) {
	l.SampleOf(2, eventlog.Sample{Weight: weight, Node: node, Centres: stack})
}

// DamagedExact returns a log with a sample of weight 1<<id on each of the cost-centre stacks 0
// to 12. The definitions of most stacks are damaged.
func DamagedExact() []byte {
	l := NewExact()
	l.CentreStack(1, 0, "MAIN")
	l.CentreStack(2, 3, "f") // 2 and 3 are each other's parent
	l.CentreStack(3, 2, "g")
	l.CentreStack(4, 3, "h")
	l.CentreStack(5, 99, "f") // 99 is never defined
	l.Write(1, &eventlog.CentreStack{ID: 6, Parent: 1, Centre: 77})
	l.Write(1, &eventlog.CentreStack{ID: 7, Problem: eventlog.CentreUnreadable})
	l.Write(1, &eventlog.CentreStack{ID: 8, Parent: 7, Centre: l.Centre("g")})
	l.Write(1, &eventlog.CentreStack{ID: 9, Centre: l.Centre("f"), Problem: eventlog.CentreTooDeep})
	l.Write(1, &eventlog.CentreStack{ID: 10, Centre: l.Centre("f"), Problem: 200})
	l.CentreStack(11, 11, "f")
	l.CentreStack(1, 2, "g") // defined twice
	for id := range uint32(13) {
		l.CentreSample(1<<id, 0, id)
	}
	return l.End()
}
