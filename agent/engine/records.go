package engine

import (
	"errors"
	"fmt"

	"ccagent/agent/process"
	"ccagent/agent/procfs"
	"ccagent/agent/sink"
	"ccagent/agent/source"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// routes say which source consumes which record.
type routes struct {
	byEvent    []source.Source      // samples, by the index of their event
	byType     [256]source.Receiver // records of other types
	annotators []source.Annotator
	witnesses  []source.Witness
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
		if w, ok := s.(source.Witness); ok {
			r.witnesses = append(r.witnesses, w)
		}
	}
	return r
}

// consume passes a record to its source. Records of labels go to the log.
func (e *Engine) consume(r *perf.Sample) error {
	switch r.Record {
	case bpf.RecordLabel:
		im, err := e.image(r.Pid)
		if err != nil {
			return err
		}
		return im.Log.Label(r.Pid, r.Tso, r.Label)
	case bpf.RecordSample:
		if int(r.Event) >= len(e.routes.byEvent) {
			return fmt.Errorf("sample of unknown event %d", r.Event)
		}
		return e.routes.byEvent[r.Event].Consume(r)
	}
	if to := e.routes.byType[r.Record]; to != nil {
		return to.Consume(r)
	}
	return nil
}

// errNotMeasured is returned for processes whose records are passed over.
var errNotMeasured = errors.New("the process is not measured")

// logOf returns the log of a process, nil if it is not known.
func (e *Engine) logOf(pid uint32) *sink.Sink {
	if im := e.Processes.Images[pid]; im != nil {
		return im.Log
	}
	return e.config.Default
}

// image returns the image of a process. It is unknown if the side band's record of the fork or
// exec has not arrived, or was lost.
func (e *Engine) image(pid uint32) (*process.Image, error) {
	if im := e.Processes.Images[pid]; im != nil {
		return im, nil
	}
	if e.config.Default == nil {
		im, err := e.config.Chooser.Unknown(pid)
		if im == nil && err == nil {
			err = errNotMeasured
		}
		return im, err
	}
	return e.Processes.Discover(e.config.Default, pid, procfs.Comm(int(pid)), procfs.Exe(pid), false)
}

// write writes a sample, after the stack nodes that it needs.
func (e *Engine) write(im *process.Image, r *perf.Sample) (*eventlog.Sample, error) {
	s, err := e.place(im, r)
	if err != nil {
		return nil, err
	}
	return s, e.writeAt(im, r.Time, s)
}

// writeAt writes a sample that was placed.
func (e *Engine) writeAt(im *process.Image, time uint64, s *eventlog.Sample) error {
	if err := im.Log.Emit(time, s); err != nil {
		return err
	}
	for _, w := range e.routes.witnesses {
		if err := w.Written(im, time, s); err != nil {
			return err
		}
	}
	return nil
}

// place makes the sample of a record, and writes the stack nodes that it needs.
func (e *Engine) place(im *process.Image, r *perf.Sample) (*eventlog.Sample, error) {
	if int(r.Event) >= len(e.config.Asked.Events) {
		return nil, fmt.Errorf("sample of unknown event %d", r.Event)
	}
	node, err := im.Log.Stack(r.Time, im.Incarnation, r.Frames,
		func(addr uint64) (uint32, uint64, error) { return e.Processes.Locate(im, r.Time, addr) })
	if err != nil {
		return nil, err
	}
	e.count(im, r)
	s := &eventlog.Sample{
		Event: uint32(r.Event), CPU: r.Cpu, PID: r.Pid, TID: r.Tid,
		Capability: uint32(r.Capability), TSO: r.Tso, Weight: r.Period, Node: node,
		Stop: eventlog.StopReason(r.Stop), Flags: eventlog.SampleFlags(r.Flags),
		SkippedWords: r.SkippedWords, FoldedFrames: r.FoldedFrames,
	}
	for _, a := range e.routes.annotators {
		if err := a.Annotate(im, r, s); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// writeKnown writes a sample whose stack is in the log, as of a time.
func (e *Engine) writeKnown(im *process.Image, time uint64, s *eventlog.Sample) error {
	im.Log.Counts.Weigh(int(s.Event), s.Weight)
	return im.Log.Emit(time, s)
}

// count keeps the counts of the log.
func (e *Engine) count(im *process.Image, r *perf.Sample) {
	e.meter.walks.Add(uint64(r.WalkNs))
	counts := &im.Log.Counts
	counts.Weigh(int(r.Event), r.Period)
	counts.Stop(eventlog.StopReason(r.Stop))
	counts.Haskell = counts.Haskell || im.RTS != nil
	clock := e.config.Asked.Events[r.Event].Def.Unit == "ns"
	kernel := eventlog.SampleFlags(r.Flags)&eventlog.SampleInKernel != 0
	if leaf, ok := leafAddress(r.Frames); ok && !kernel {
		module, addr, _ := im.Resolve(leaf)
		im.Log.Seen.CountLeaf(module, addr)
		if clock {
			im.Log.Seen.CountClock(module, addr)
		}
	}
	if clock && kernel {
		counts.InKernel++
	}
	// Probes stand where the top frame is known.
	if !e.config.Asked.Events[r.Event].Nests && eventlog.SampleFlags(r.Flags)&eventlog.SampleTopCFI == 0 {
		if unwound, ok := unwoundTo(r.Frames); ok {
			e.Processes.NoteUnwound(im, unwound)
		}
	}
}

// unwoundTo is the code of user space up to which a sample was unwound by call frame information.
func unwoundTo(frames []uint64) (addr uint64, ok bool) {
	for _, f := range frames {
		switch eventlog.FrameKind(f >> bpf.FrameKindShift) {
		case eventlog.FramePC, eventlog.FrameC:
			addr, ok = f&bpf.FrameAddressMask, true
		case eventlog.FrameKernel:
		default:
			return addr, ok
		}
	}
	return addr, ok
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
