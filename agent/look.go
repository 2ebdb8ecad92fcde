package agent

import (
	"context"
	"errors"

	"ccagent/agent/engine"
	"ccagent/agent/invoker"
	"ccagent/agent/process"
	"ccagent/agent/procfs"
	"ccagent/agent/sink"
	"ccagent/eventlog"
)

// look writes a log of what f finds in the process opts.PID as it is now, without an engine: what the
// process maps is described, f writes events, and the code that they refer to is named. It uses
// Output, User, EmbedSource, NoArgs, NoLabels, Symbolize…, AgentVersion and Warn. If f fails, there
// is no log.
func look(ctx context.Context, opts Options, f func(*capture, *process.Image) error) (_ *Summary, err error) {
	c := &capture{opts: opts}
	defer func() { err = errors.Join(err, c.close()) }()
	if c.who, err = invoker.Find(opts.User); err != nil {
		return nil, err
	}
	if err := c.takeTarget(); err != nil {
		return nil, err
	}
	c.log = sink.New(sink.Config{Who: c.who, NoLabels: opts.NoLabels, Warn: opts.Warn})
	if err := c.createLog(); err != nil {
		return nil, err
	}
	table := process.NewUnwalked(sink.NewSet(opts.Warn, c.log))
	defer func() { err = errors.Join(err, table.Close()) }()
	c.names = newNames(&c.opts, c.who, c.owner, c.log, table)
	if err := c.lookAt(table, f); err != nil {
		return nil, errors.Join(err, c.log.Remove())
	}
	end := &eventlog.CaptureEnd{Reason: eventlog.EndDuration}
	if err := c.log.Emit(sink.Now, end); err != nil {
		return nil, err
	}
	if err := c.names.finish(ctx, &c.sum); err != nil {
		return nil, err
	}
	if err := c.log.Finish(); err != nil {
		return nil, err
	}
	c.summarizeLogs()
	return &c.sum, nil
}

// lookAt writes the log's head, and what f finds.
func (c *capture) lookAt(table *process.Table, f func(*capture, *process.Image) error) error {
	pid := c.target.PID
	head := &eventlog.Capture{
		AgentVersion: c.opts.AgentVersion, Mode: eventlog.CaptureAttach, PID: uint32(pid), UID: c.who.UID,
		Program: c.target.Path, Args: c.loggedArgs(), TargetIDs: append([]uint32{c.owner.UID, c.owner.GID}, c.owner.Groups...),
	}
	im, err := table.Discover(c.log, uint32(pid), procfs.Comm(pid), c.target.Path, false)
	if err != nil {
		return err
	}
	if im.RTS != nil {
		b := &im.RTS.Binary
		head.GHCVersion, head.Way, head.LayoutAssumed = b.GHCVersion, string(b.Way), im.Assumed
	}
	if err := engine.WriteHead(c.log, head, nil); err != nil {
		return err
	}
	return f(c, im)
}
