package engine

import (
	"ccagent/agent/alloc"
	"ccagent/agent/blocked"
	"ccagent/agent/ccs"
	"ccagent/agent/cpu"
	"ccagent/agent/duplicated"
	"ccagent/agent/nursery"
	"ccagent/agent/offcpu"
	"ccagent/agent/rts"
	"ccagent/agent/search"
	"ccagent/agent/series"
	"ccagent/agent/source"
	"ccagent/agent/stm"
	"ccagent/agent/ticky"
)

// HostKinds lists those that measure all processes of a host: what each of them adds to an engine
// is made for many processes.
func HostKinds() []source.Kind {
	return []source.Kind{series.HostKind(), alloc.Kind(), rts.Kind(), blocked.HostKind(), cpu.Kind()}
}

// Kinds lists all ways of measuring. An event belongs to the first kind that accepts its name;
// cpu comes last, because it takes every name for a perf event.
func Kinds() []source.Kind {
	return []source.Kind{
		series.Kind(), // first: it takes its part of the budget before the others have theirs
		alloc.Kind(),
		nursery.Kind(),
		rts.Kind(),
		offcpu.Kind(),
		blocked.Kind(),
		stm.Kind(),
		search.Kind(),
		duplicated.Kind(),
		ticky.Kind(),
		ccs.Kind(),
		cpu.Kind(),
	}
}
