package engine

import (
	"runtime"
	"time"

	"ccagent/agent/procfs"
	"ccagent/agent/sink"
	"ccagent/eventlog"
	"ccagent/perf"
)

// WriteHead writes into a new log what it is of, after adding time and machine; the standard
// events that other tools look for; and the definitions of the sampled events.
func (e *Engine) WriteHead(log *sink.Sink, c *eventlog.Capture) error {
	var defs []eventlog.EventDef
	for _, asked := range e.config.Asked.Events {
		defs = append(defs, asked.Def)
	}
	return WriteHead(log, c, defs)
}

// WriteHead does so for a log that no engine writes.
func WriteHead(log *sink.Sink, c *eventlog.Capture, events []eventlog.EventDef) error {
	const capset = 0
	wall := wallClock(log)
	c.StartUnixNs = wall
	c.Kernel, c.Arch = procfs.KernelRelease(), runtime.GOARCH
	c.CPUModel, c.CPUs = procfs.CPUModel(), uint32(runtime.NumCPU())
	c.Labels = append(c.Labels, eventlog.Label{Key: eventlog.LabelHost, Value: procfs.HostName()})
	args := c.Args
	if len(args) == 0 {
		args = []string{c.Program}
	}
	head := []eventlog.Event{
		c,
		&eventlog.CapsetCreate{Capset: capset, Type: eventlog.CapsetOSProcess},
		&eventlog.OSProcessPID{Capset: capset, PID: c.PID},
		&eventlog.WallClock{Capset: capset, Sec: wall / 1e9, Nsec: uint32(wall % 1e9)},
		&eventlog.ProgramArgs{Capset: capset, Args: args},
	}
	for i := range events {
		head = append(head, &events[i])
	}
	for _, event := range head {
		if err := log.Emit(0, event); err != nil {
			return err
		}
	}
	return nil
}

// wallClock is the wall clock at a log's time 0, ns since 1970. The two clocks cannot be read at once:
// of a few pairs of readings the one counts between which the least time passed.
func wallClock(log *sink.Sink) (wall uint64) {
	least := ^uint64(0)
	for range 5 {
		before := perf.Monotonic()
		now := time.Now().UnixNano()
		if took := perf.Monotonic() - before; took < least {
			least, wall = took, uint64(now-int64(log.Time(before)))
		}
	}
	return wall
}
