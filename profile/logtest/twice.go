package logtest

import "ccagent/eventlog"

// Twice is a log of a thread that spends a quarter of its CPU time on what another one evaluates too, in a program that has made sparks.
func Twice() *Log {
	l := New()
	l.Write(0, &eventlog.EventDef{Index: 1, Requested: "duplicated", Granted: "duplicated", Unit: "ns"})
	node := l.Stack(l.Block(l.Binding("main", "M", "f", 0)))
	for i := range uint64(400) {
		l.SampleOf(i, eventlog.Sample{Weight: 1000, Node: node, TSO: 7})
		if i%4 == 0 {
			l.SampleOf(i, eventlog.Sample{Event: 1, Weight: 1000, Node: node, TSO: 7})
		}
	}
	l.Write(400, &eventlog.Sparks{Created: 900, Dud: 100, Converted: 600, Fizzled: 300})
	return l
}
