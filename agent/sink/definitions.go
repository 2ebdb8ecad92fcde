package sink

import (
	"cmp"
	"slices"

	"ccagent/eventlog"
)

// definitions holds the events that every log of a rotated capture must repeat, by what they
// define: a later definition of the same thing replaces the earlier. Those of a
// process are forgotten when it ends, since later logs have no samples of it.
type definitions struct {
	capture   []definition // of the capture itself, its events and modules: never forgotten
	processes map[uint32]*processDefinitions
	sequence  uint64
	several   int    // labels and mappings of all processes
	forgotten uint64 // labels and mappings, since takeForgotten
}

// definition is an event and when it was written. Definitions are repeated in the order in
// which they were first written.
type definition struct {
	time     uint64 // in the log
	event    eventlog.Event
	sequence uint64
}

// processDefinitions are those of one process.
type processDefinitions struct {
	life     []definition // how it began, and the program that it executed last
	mappings map[uint64]definition
	labels   map[uint64]definition
}

// maxSeveral bounds the labels and mappings that are remembered. There are few of everything
// else: the package that numbers modules bounds them, and a machine its processes.
const maxSeveral = 1 << 17

func (d *definitions) next(time uint64, e eventlog.Event) definition {
	d.sequence++
	return definition{time, e, d.sequence}
}

func (d *definitions) process(pid uint32) *processDefinitions {
	p := d.processes[pid]
	if p == nil {
		if d.processes == nil {
			d.processes = map[uint32]*processDefinitions{}
		}
		p = &processDefinitions{mappings: map[uint64]definition{}, labels: map[uint64]definition{}}
		d.processes[pid] = p
	}
	return p
}

// remember keeps an event if it is a definition.
func (d *definitions) remember(time uint64, e eventlog.Event) {
	switch e := e.(type) {
	case *eventlog.CapsetCreate, *eventlog.OSProcessPID, *eventlog.WallClock, *eventlog.ProgramArgs, *eventlog.Capture,
		*eventlog.EventDef, *eventlog.Module:
		d.capture = append(d.capture, d.next(time, e))
	case *eventlog.EventRate: // the last one is in force
		d.capture = slices.DeleteFunc(d.capture, func(old definition) bool {
			r, ok := old.event.(*eventlog.EventRate)
			return ok && r.Event == e.Event
		})
		d.capture = append(d.capture, d.next(time, e))
	case *eventlog.Process:
		switch e.Change {
		case eventlog.ProcessExited:
			d.forget(e.PID)
			delete(d.processes, e.PID)
		case eventlog.ProcessExeced:
			d.forget(e.PID)
			p := d.process(e.PID)
			p.life = append(slices.DeleteFunc(p.life, isExec), d.next(time, e))
		default: // the process id may have been another's
			d.forget(e.PID)
			d.process(e.PID).life = []definition{d.next(time, e)}
		}
	case *eventlog.Mapping:
		d.keep(d.process(e.PID).mappings, e.Start, time, e)
	}
}

func isExec(d definition) bool {
	p, ok := d.event.(*eventlog.Process)
	return ok && p.Change == eventlog.ProcessExeced
}

// label keeps the label of a thread.
func (d *definitions) label(t thread, time uint64, e *eventlog.ThreadLabel) {
	d.keep(d.process(t.pid).labels, t.tso, time, e)
}

// keep keeps one of those that there may be very many of.
func (d *definitions) keep(in map[uint64]definition, key, time uint64, e eventlog.Event) {
	if _, again := in[key]; !again {
		if d.several >= maxSeveral {
			d.shrink()
		}
		d.several++
	}
	in[key] = d.next(time, e)
}

// forget forgets the labels and mappings of a process.
func (d *definitions) forget(pid uint32) {
	p := d.processes[pid]
	if p == nil {
		return
	}
	d.several -= len(p.mappings) + len(p.labels)
	clear(p.mappings)
	clear(p.labels)
}

// shrink forgets the older half of all labels or, where there are few of them, of all
// mappings: without a label a thread has a number, without its mapping code has no name.
func (d *definitions) shrink() {
	labels := 0
	for _, p := range d.processes {
		labels += len(p.labels)
	}
	which := func(p *processDefinitions) map[uint64]definition { return p.labels }
	if labels < maxSeveral/4 {
		which = func(p *processDefinitions) map[uint64]definition { return p.mappings }
	}
	var sequences []uint64
	for _, p := range d.processes {
		for _, def := range which(p) {
			sequences = append(sequences, def.sequence)
		}
	}
	slices.Sort(sequences)
	middle := sequences[len(sequences)/2]
	for _, p := range d.processes {
		in := which(p)
		for key, def := range in {
			if def.sequence <= middle {
				delete(in, key)
				d.several--
				d.forgotten++
			}
		}
	}
}

// takeForgotten returns how many definitions were forgotten for lack of room since its last call.
func (d *definitions) takeForgotten() uint64 {
	n := d.forgotten
	d.forgotten = 0
	return n
}

// all returns the definitions in the order in which they were written.
func (d *definitions) all() []definition {
	out := slices.Clone(d.capture)
	for _, p := range d.processes {
		out = append(out, p.life...)
		for _, def := range p.mappings {
			out = append(out, def)
		}
		for _, def := range p.labels {
			out = append(out, def)
		}
	}
	slices.SortFunc(out, func(a, b definition) int { return cmp.Compare(a.sequence, b.sequence) })
	return out
}
