package agent

import (
	"context"
	"fmt"
	"path/filepath"

	"ccagent/agent/dump"
	"ccagent/agent/process"
	"ccagent/agent/sink"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/heap/threads"
)

// Threads writes a log of what the threads of the process opts.PID do now. Of the other options it
// uses those of look and NoLabels.
func Threads(ctx context.Context, opts Options) (*Summary, error) {
	return look(ctx, opts, func(c *capture, im *process.Image) error {
		d, err := dump.Take(ctx, im)
		if err != nil {
			return fmt.Errorf("read the threads of process %d (%s): %w", im.PID, filepath.Base(c.target.Path), err)
		}
		c.sum.Stood = d.Stood
		return c.writeDump(im, d)
	})
}

// writeDump writes a dump into the log.
func (c *capture) writeDump(im *process.Image, d *dump.Dump) error {
	emit := func(e eventlog.Event) error { return c.log.Emit(sink.Now, e) }
	err := emit(&eventlog.ThreadDump{
		PID: im.PID, TookNs: uint64(d.Took), PauseNs: uint64(d.Pause), Stopped: uint32(d.Stopped), Collections: d.Collections, More: d.More, Notes: d.Notes,
		StoodNs: uint64(d.Stood),
	})
	if err != nil {
		return err
	}
	ids := func(threads []int) []uint64 {
		out := make([]uint64, len(threads))
		for i, n := range threads {
			out[i] = d.Threads[n].ID
		}
		return out
	}
	for i := range d.Objects {
		o := &d.Objects[i]
		e := &eventlog.Blocker{
			ID: uint32(i + 1), Kind: blockerKinds[o.Kind], Address: o.Address, Full: o.Full, Stood: o.Stood, Queue: ids(o.Queue),
			Variables: o.Variables, Entries: uint32(o.Entries),
		}
		if o.Owner >= 0 {
			e.Owner = d.Threads[o.Owner].ID
		}
		for _, h := range o.Holders {
			e.Holders = append(e.Holders, eventlog.BlockerHolder{TSO: d.Threads[h.Thread].ID, Handler: h.Handler})
		}
		if o.Code != 0 {
			var err error
			if e.Node, err = c.writeStack(im, []uint64{uint64(eventlog.FrameReturn)<<bpf.FrameKindShift | o.Code&bpf.FrameAddressMask}); err != nil {
				return err
			}
		}
		if err := emit(e); err != nil {
			return err
		}
	}
	tids := map[int]uint32{}
	for _, os := range d.OS {
		if os.TSO >= 0 {
			tids[os.TSO] = uint32(os.TID)
		}
	}
	for i := range d.Threads {
		if err := c.writeThread(im, d, i, tids[i]); err != nil {
			return err
		}
	}
	for _, os := range d.OS {
		e := &eventlog.OSThread{TID: uint32(os.TID), Name: os.Name, State: os.State, Role: osRoles[os.Role]}
		if os.TSO >= 0 {
			e.TSO = d.Threads[os.TSO].ID
		}
		if err := emit(e); err != nil {
			return err
		}
	}
	return nil
}

var blockerKinds = map[threads.Kind]eventlog.BlockerKind{
	threads.MVar: eventlog.BlockerMVar, threads.BlackHole: eventlog.BlockerBlackHole,
	threads.Exception: eventlog.BlockerException, threads.STM: eventlog.BlockerSTM,
}

var osRoles = map[dump.Role]eventlog.OSThreadRole{
	dump.NoRole: eventlog.OSThreadOther, dump.Runs: eventlog.OSThreadRuns, dump.Calls: eventlog.OSThreadCalls, dump.BoundTo: eventlog.OSThreadBound,
}

func (c *capture) writeThread(im *process.Image, d *dump.Dump, i int, tid uint32) error {
	t := &d.Threads[i]
	e := &eventlog.HaskellThread{
		TSO: t.ID, Label: t.Label, State: dump.State(t, t.Cap >= 0 && d.Capabilities[t.Cap].Current == t.Address), Capability: eventlog.NoCapability, Bound: t.InCall != 0, TID: tid,
		On: uint32(t.On + 1), Moved: !t.Stood,
		StackBytes: t.Stack.Bytes, StackUsed: t.Stack.Used, SkippedWords: t.Stack.Skipped,
	}
	if c.opts.NoLabels {
		e.Label = ""
	}
	if t.Cap >= 0 {
		e.Capability = d.Capabilities[t.Cap].Number
	}
	if e.State == eventlog.StateRead || e.State == eventlog.StateWrite {
		e.FD = t.BlockInfo
	}
	frames, stop := dump.Frames(&t.Stack)
	e.Stop = stop
	var err error
	if e.Node, err = c.writeStack(im, frames); err != nil {
		return err
	}
	return c.log.Emit(sink.Now, e)
}

// writeStack writes the nodes of a stack, and returns its leaf.
func (c *capture) writeStack(im *process.Image, frames []uint64) (uint32, error) {
	return c.log.Stack(sink.Now, im.Incarnation, frames, func(addr uint64) (uint32, uint64, error) {
		module, at, _ := im.Resolve(addr)
		return module, at, nil
	})
}
