package columns

import (
	"slices"

	"ccagent/eventlog"
)

// Footprint is where the memory of a process was at a moment.
type Footprint struct {
	Time uint64
	eventlog.Footprint
	Parts  []eventlog.FootprintPart
	Pins   []eventlog.FootprintPin
	Stacks []eventlog.FootprintStack // their nodes are indices in Log.Nodes
}

// Bounds of what is kept of a log's footprints.
const (
	maxFootprints = 1 << 12
	maxParts      = 1 << 10 // of each list of one
)

// footprint takes an event of a footprint. The last one is that which the event belongs to.
func (p *Log) footprint(time uint64, ev eventlog.Event, nodes *nodeTable) {
	if e, begins := ev.(*eventlog.Footprint); begins && len(p.Footprints) < maxFootprints {
		f := Footprint{Time: time, Footprint: *e}
		f.Notes = slices.Clone(e.Notes)
		p.Footprints = append(p.Footprints, f)
		return
	}
	if n := len(p.Footprints); n > 0 {
		f := &p.Footprints[n-1]
		switch e := ev.(type) {
		case *eventlog.FootprintPart:
			if len(f.Parts) < maxParts {
				f.Parts = append(f.Parts, *e)
				return
			}
		case *eventlog.FootprintPin:
			if len(f.Pins) < maxParts {
				f.Pins = append(f.Pins, *e)
				return
			}
		case *eventlog.FootprintStack:
			if len(f.Stacks) < maxParts {
				s := *e
				var ok bool
				if s.Node, ok = nodes.resolve(e.Node); !ok {
					p.Accounting.Undefined.Nodes++
					s.Node = 0
				}
				f.Stacks = append(f.Stacks, s)
				return
			}
		}
	}
	p.Accounting.Dropped++
}
