// Package ccs names the cost-centre stacks that samples of programs of the profiling way ran
// on.
package ccs

import (
	"fmt"
	"slices"

	"ccagent/agent/process"
	"ccagent/agent/sink"
	"ccagent/agent/source"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// Programs have thousands of cost-centre stacks. These bound what one may make
// the agent remember; later ones are not known.
const (
	maxStacks  = 1 << 18
	maxCentres = 1 << 16
)

// stack is a cost-centre stack of a program image. It is created when a sample or another stack
// refers to its address, and complete when its record has arrived: samples of other CPUs may
// come before that.
type stack struct {
	id       uint32
	parent   *stack
	centre   uint32
	problem  eventlog.CentreProblem
	recorded bool
	used     bool // by a sample of this log, or a stack above
	written  bool // to this log
}

// stackAddress is the address of a stack in a process.
type stackAddress struct {
	incarnation uint32
	address     uint64
}

// Kind makes the source of cost-centre stacks, which are recorded without being asked for.
func Kind() source.Kind { return source.Kind{New: open} }

// ccs is the source of all cost-centre stacks of a capture.
type ccs struct {
	source.Base
	host    *source.Host
	stacks  *stacks
	unknown uint64 // samples whose stack has no room
}

func open(h *source.Host, _ []*source.Event, _ source.Need) source.Source {
	return &ccs{host: h, stacks: newStacks()}
}

func (c *ccs) emit(e eventlog.Event) error { return c.host.Log.Emit(sink.Now, e) }

// Receives returns the type of the record that the walker sends once for each stack.
func (c *ccs) Receives() []uint8 { return []uint8{bpf.RecordCCS} }

// Consume completes a stack by the walker's record.
func (c *ccs) Consume(r *perf.Sample) error {
	im, err := c.host.Image(r.Pid)
	if err != nil {
		return err
	}
	return c.stacks.complete(im, &r.Stack, c.emit)
}

// Annotate adds the stack that a sample ran on.
func (c *ccs) Annotate(im *process.Image, r *perf.Sample, e *eventlog.Sample) (err error) {
	e.Centres, err = c.stacks.use(im, r.Ccs, c.emit)
	if err == nil && r.Ccs != 0 && e.Centres == 0 {
		c.unknown++
	}
	return err
}

// Finish writes which of the stacks that samples ran on are not known: the walker's record
// of them was lost, or there were too many.
func (c *ccs) Finish(uint64) error {
	for _, id := range c.stacks.incomplete() {
		if err := c.emit(&eventlog.CentreStack{ID: id, Problem: eventlog.CentreLost}); err != nil {
			return err
		}
	}
	if c.unknown > 0 {
		c.host.Log.Warn(fmt.Sprintf("%d samples have no cost-centre stack: the program has more than the %d that are kept", c.unknown, maxStacks))
	}
	return nil
}

// Declare has stacks written again when they are used.
func (c *ccs) Declare(uint64) error {
	c.stacks.forgetWritten()
	return nil
}

// stacks are the cost-centre stacks that samples ran on.
type stacks struct {
	stacks  map[stackAddress]*stack
	centres map[eventlog.CentreDef]uint32 // by content: ID is 0
	defs    []definition                  // id−1
}

type definition struct {
	eventlog.CentreDef
	written bool
}

func newStacks() *stacks {
	return &stacks{stacks: map[stackAddress]*stack{}, centres: map[eventlog.CentreDef]uint32{}}
}

// at returns the stack at an address; nil if there is none, or too many are known.
func (cs *stacks) at(im *process.Image, address uint64) *stack {
	if address == 0 {
		return nil
	}
	key := stackAddress{im.Incarnation, address}
	st := cs.stacks[key]
	if st == nil && len(cs.stacks) < maxStacks {
		st = &stack{id: uint32(len(cs.stacks) + 1), problem: eventlog.CentreLost}
		cs.stacks[key] = st
	}
	return st
}

// complete completes a stack by the walker's record.
func (cs *stacks) complete(im *process.Image, r *bpf.CCSRecord, emit func(eventlog.Event) error) error {
	st := cs.at(im, r.Ccs)
	if st == nil || st.recorded {
		return nil // the walker's table of sent stacks is bounded, so it may send one again
	}
	st.recorded = true
	st.problem = problemOf(bpf.CCSWhy(r.Why))
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

func problemOf(why bpf.CCSWhy) eventlog.CentreProblem {
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

// centre returns the id of a cost centre, 0 if too many are known.
func (cs *stacks) centre(im *process.Image, r *bpf.CCSRecord) uint32 {
	def := eventlog.CentreDef{
		Label: im.ReadName(r.Label), Module: im.ReadName(r.Module), SrcLoc: im.ReadName(r.Srcloc), CAF: r.IsCaf != 0,
	}
	id, ok := cs.centres[def]
	if !ok && len(cs.defs) < maxCentres {
		id = uint32(len(cs.defs) + 1)
		cs.centres[def] = id
		def.ID = id
		cs.defs = append(cs.defs, definition{CentreDef: def})
	}
	return id
}

// use returns the id of a stack that a sample ran on, 0 if it had none, after
// writing what is known of it.
func (cs *stacks) use(im *process.Image, address uint64, emit func(eventlog.Event) error) (uint32, error) {
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
func (cs *stacks) write(st *stack, emit func(eventlog.Event) error) error {
	for ; st != nil; st = st.parent {
		st.used = true
		if !st.recorded || st.written {
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

// incomplete returns the stacks that samples of this log ran on and whose record has not arrived.
func (cs *stacks) incomplete() []uint32 {
	var ids []uint32
	for _, st := range cs.stacks {
		if st.used && !st.recorded {
			ids = append(ids, st.id)
		}
	}
	slices.Sort(ids)
	return ids
}

// forgetWritten begins another log.
func (cs *stacks) forgetWritten() {
	for _, st := range cs.stacks {
		st.used, st.written = false, false
	}
	for i := range cs.defs {
		cs.defs[i].written = false
	}
}
