package agent

import (
	"ccagent/agent/process"
	"ccagent/bpf"
	"ccagent/eventlog"
)

// Programs have thousands of cost-centre stacks. These bound what one may make
// the agent remember; later ones are not known.
const (
	maxCentreStacks = 1 << 18
	maxCentres      = 1 << 16
)

// centreStack is a cost-centre stack of a program image. It is known by its
// address as soon as something refers to it, and told when its record comes:
// samples of another CPU can overtake that.
type centreStack struct {
	id      uint32
	parent  *centreStack
	centre  uint32
	problem eventlog.CentreProblem
	told    bool
	used    bool // by a sample of this log, or a stack above
	written bool // to this log
}

type centreAddress struct {
	generation uint32
	address    uint64
}

// centreStacks are the cost-centre stacks that samples ran on.
type centreStacks struct {
	stacks  map[centreAddress]*centreStack
	centres map[eventlog.CentreDef]uint32 // by content: ID is 0
	defs    []centreDef                   // id−1
}

type centreDef struct {
	eventlog.CentreDef
	written bool
}

func newCentreStacks() *centreStacks {
	return &centreStacks{stacks: map[centreAddress]*centreStack{}, centres: map[eventlog.CentreDef]uint32{}}
}

// at gives the stack at an address; nil if there is none, or too many are known.
func (cs *centreStacks) at(im *process.Image, address uint64) *centreStack {
	if address == 0 {
		return nil
	}
	key := centreAddress{im.Incarnation, address}
	st := cs.stacks[key]
	if st == nil && len(cs.stacks) < maxCentreStacks {
		st = &centreStack{id: uint32(len(cs.stacks) + 1), problem: eventlog.CentreUntold}
		cs.stacks[key] = st
	}
	return st
}

// told takes the walker's record of a stack.
func (cs *centreStacks) told(im *process.Image, r *bpf.CCSRecord, emit func(eventlog.Event) error) error {
	st := cs.at(im, r.Ccs)
	if st == nil || st.told {
		return nil // the walker forgets what it has told, in its time
	}
	st.told = true
	st.problem = centreProblem(bpf.CCSWhy(r.Why))
	if r.Prev != 0 {
		if st.parent = cs.at(im, r.Prev); st.parent == nil {
			st.problem = eventlog.CentreTooDeep
		}
	}
	if r.Cc != 0 {
		st.centre = cs.centre(im, r)
	}
	if st.used {
		return cs.write(st, emit)
	}
	return nil
}

func centreProblem(why bpf.CCSWhy) eventlog.CentreProblem {
	switch why {
	case bpf.CCSWhole:
		return eventlog.CentreWhole
	case bpf.CCSTooDeep:
		return eventlog.CentreTooDeep
	case bpf.CCSImplausible:
		return eventlog.CentreImplausible
	}
	return eventlog.CentreUnreadable
}

// centre gives the id of a cost centre, 0 if too many are known.
func (cs *centreStacks) centre(im *process.Image, r *bpf.CCSRecord) uint32 {
	def := eventlog.CentreDef{
		Label: im.ReadName(r.Label), Module: im.ReadName(r.Module), SrcLoc: im.ReadName(r.Srcloc), CAF: r.IsCaf != 0,
	}
	id, ok := cs.centres[def]
	if !ok && len(cs.defs) < maxCentres {
		id = uint32(len(cs.defs) + 1)
		cs.centres[def] = id
		def.ID = id
		cs.defs = append(cs.defs, centreDef{CentreDef: def})
	}
	return id
}

// use gives the id of a stack that a sample ran on, 0 if it had none, after
// writing what is known of it.
func (cs *centreStacks) use(im *process.Image, address uint64, emit func(eventlog.Event) error) (uint32, error) {
	st := cs.at(im, address)
	if st == nil {
		return 0, nil
	}
	st.used = true
	return st.id, cs.write(st, emit)
}

// write writes a stack and those below it, as far as they are known and the log
// has not got them. Each step goes to one that was not written before, so that a
// cycle ends.
func (cs *centreStacks) write(st *centreStack, emit func(eventlog.Event) error) error {
	for ; st != nil; st = st.parent {
		st.used = true
		if !st.told || st.written {
			return nil
		}
		st.written = true
		e := &eventlog.CentreStack{ID: st.id, Centre: st.centre, Problem: st.problem}
		if st.parent != nil {
			e.Parent = st.parent.id
		}
		if c := st.centre; c != 0 && !cs.defs[c-1].written {
			cs.defs[c-1].written = true
			if err := emit(&cs.defs[c-1].CentreDef); err != nil {
				return err
			}
		}
		if err := emit(e); err != nil {
			return err
		}
	}
	return nil
}

// forgetWritten begins another log.
func (cs *centreStacks) forgetWritten() {
	for _, st := range cs.stacks {
		st.used, st.written = false, false
	}
	for i := range cs.defs {
		cs.defs[i].written = false
	}
}
