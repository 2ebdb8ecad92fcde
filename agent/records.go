package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"ccagent/agent/process"
	"ccagent/agent/procfs"
	"ccagent/agent/sink"
	"ccagent/agent/source"
	"ccagent/agent/target"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// routes say which source consumes which record.
type routes struct {
	byEvent    []source.Source      // samples, by the index of their event
	byType     [256]source.Receiver // records of other types
	annotators []source.Annotator
}

func routesTo(set *source.Set) routes {
	r := routes{byEvent: set.ByEvent}
	for _, s := range set.All {
		if receiver, ok := s.(source.Receiver); ok {
			for _, t := range receiver.Receives() {
				r.byType[t] = receiver
			}
		}
		if a, ok := s.(source.Annotator); ok {
			r.annotators = append(r.annotators, a)
		}
	}
	return r
}

// consume passes a record to its source. Records of labels go to the log.
func (c *capture) consume(r *perf.Sample) error {
	switch r.Record {
	case bpf.RecordLabel:
		return c.log.Label(r.Pid, r.Tso, r.Label)
	case bpf.RecordSample:
		if int(r.Event) >= len(c.routes.byEvent) {
			return fmt.Errorf("sample of unknown event %d", r.Event)
		}
		return c.routes.byEvent[r.Event].Consume(r)
	}
	if to := c.routes.byType[r.Record]; to != nil {
		return to.Consume(r)
	}
	return nil
}

// image returns the image of a process. It is unknown if the side band's record of the fork or
// exec has not arrived, or was lost.
func (c *capture) image(pid uint32) (*process.Image, error) {
	if im := c.processes.Images[pid]; im != nil {
		return im, nil
	}
	return c.processes.Discover(pid, procfs.Comm(int(pid)), procfs.Exe(pid), false)
}

// write writes a sample, after the stack nodes that it needs.
func (c *capture) write(im *process.Image, r *perf.Sample) (*eventlog.Sample, error) {
	e, err := c.place(im, r)
	if err != nil {
		return nil, err
	}
	return e, c.writeAt(r.Time, e)
}

// writeAt writes a sample that was placed.
func (c *capture) writeAt(time uint64, e *eventlog.Sample) error { return c.log.Emit(time, e) }

// place makes the sample of a record, and writes the stack nodes that it needs.
func (c *capture) place(im *process.Image, r *perf.Sample) (*eventlog.Sample, error) {
	if int(r.Event) >= len(c.sum.Events) {
		return nil, fmt.Errorf("sample of unknown event %d", r.Event)
	}
	node, err := c.log.Stack(r.Time, im.Incarnation, r.Frames,
		func(addr uint64) (uint32, uint64, error) { return c.processes.Locate(im, r.Time, addr) }, c.names.seen.addNodes)
	if err != nil {
		return nil, err
	}
	c.count(im, r)
	e := &eventlog.Sample{
		Event: uint32(r.Event), CPU: r.Cpu, PID: r.Pid, TID: r.Tid,
		Capability: uint32(r.Capability), TSO: r.Tso, Weight: r.Period, Node: node,
		Stop: eventlog.StopReason(r.Stop), Flags: eventlog.SampleFlags(r.Flags),
		SkippedWords: r.SkippedWords, FoldedFrames: r.FoldedFrames,
	}
	for _, a := range c.routes.annotators {
		if err := a.Annotate(im, r, e); err != nil {
			return nil, err
		}
	}
	return e, nil
}

// writeKnown writes a sample whose stack is in the log.
func (c *capture) writeKnown(e *eventlog.Sample) error {
	c.countWeight(int(e.Event), e.Weight)
	return c.log.Emit(sink.Now, e)
}

func (c *capture) countWeight(event int, weight uint64) {
	e := &c.sum.Events[event]
	e.Samples++
	e.Weight += weight
	c.sum.Samples++
}

// count keeps the summary's counts.
func (c *capture) count(im *process.Image, r *perf.Sample) {
	c.countWeight(int(r.Event), r.Period)
	c.meter.walks.Add(uint64(r.WalkNs))
	switch stop := eventlog.StopReason(r.Stop); {
	case stop == eventlog.StopNoHaskell || stop == eventlog.StopNoUserContext:
		c.sum.NoHaskell++
	case stop.Complete():
		c.sum.Complete++
	case stop.Truncated():
		c.sum.Truncated++
	default:
		c.sum.Failed++
	}
	if im.RTS != nil {
		c.sum.Haskell = true
	}
	if leaf, ok := leafAddress(r.Frames); ok {
		module, addr, _ := im.Resolve(leaf)
		c.names.seen.countLeaf(module, addr)
	}
}

// leafAddress is the user-space address that a sample hit, or came from.
func leafAddress(frames []uint64) (uint64, bool) {
	for _, f := range frames {
		if eventlog.FrameKind(f>>bpf.FrameKindShift) == eventlog.FramePC {
			return f & bpf.FrameAddressMask, true
		}
	}
	return 0, false
}

// threads lists the threads of all processes that are sampled, in order; false where not all
// processes may be known.
func (c *capture) threads() (all []int, sure bool, err error) {
	for pid, im := range c.processes.Images {
		if im.Exited || target.MayTrace(int(pid), c.who) != nil {
			continue
		}
		tids, err := perf.Threads(int(pid))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, false, err
		}
		all = append(all, tids...)
	}
	slices.Sort(all)
	return all, c.sideBand != nil && c.sideBand.Lost == 0, nil
}
