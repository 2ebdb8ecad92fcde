package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ccagent/agent/engine"
	"ccagent/agent/invoker"
	"ccagent/agent/sink"
	"ccagent/eventlog"
	"ccagent/perf"
)

// cachePatience is how long the end of a capture waits for call frame information that is still
// being compiled, so that the next capture has it from the start. That of programs of a hundred
// megabytes takes seconds.
const cachePatience = 2 * time.Second

// finish stops sampling, takes what is left, closes the sampling part of the
// log and appends the symbol tables. It does as much as can be done: a failure
// on the way is returned, and what follows is still tried.
func (c *capture) finish(ctx context.Context, reason eventlog.EndReason, cause error) error {
	var errs []error
	try := func(what string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", what, err))
		}
	}
	for _, s := range c.engine.Sources.All {
		try("stop sampling", s.Stop())
	}
	c.sum.Wall = time.Since(c.begun)
	if c.opts.Finishing != nil && (reason == eventlog.EndExited || !c.target.Started()) {
		c.opts.Finishing()
	}
	c.engine.Processes.EndCompiling()
	logWorks := cause == nil
	if logWorks {
		try("capture", c.engine.DrainAll())
		c.warnWithoutHaskell()
		at := perf.Monotonic()
		for _, s := range c.engine.Sources.All {
			try("capture", s.Finish(at))
		}
		try("write log", c.account())
		logWorks = len(errs) == 0
	}
	if !logWorks { // what was measured is reported, though the log does not have it
		try("measure", c.measureCost())
	}
	end := &eventlog.CaptureEnd{Reason: reason}
	if cause != nil {
		end.Detail = cause.Error()
	}
	if reason == eventlog.EndExited {
		if status, ok := c.target.ExitStatus(context.Background()); ok {
			end.ExitStatus, end.HaveStatus = uint32(status), true
		}
	}
	if logWorks {
		try("write log", c.log.Emit(sink.Now, end))
		try("write log", c.log.Flush())
		try("keep the log", c.log.FileLost())
	}
	try("close events", c.engine.Unfollow())
	for _, s := range c.engine.Sources.All {
		s.Report(&c.sum)
	}
	if logWorks && len(errs) == 0 && c.log.Seen.Any() { // censuses of the heap have code without samples
		try("write symbols", c.names.finish(ctx, &c.sum))
		try("write log", c.accountNames())
	}
	try("finish older logs", c.log.FinishOlder())
	if logWorks {
		try("finish log", c.log.Finish())
	}
	if logWorks && len(errs) == 0 && c.sum.Samples > 0 && c.opts.Derive != nil {
		errs = append(errs, c.log.Each(func(l *invoker.Log) error { return c.opts.Derive(ctx, l) }))
	}
	if ctx.Err() == nil && reason != eventlog.EndInterrupted {
		c.engine.Processes.StopCompiling(cachePatience)
	}
	cpu, err := engine.AgentCPU()
	try("measure", err)
	c.sum.AgentCPU = cpu
	c.summarizeLogs()
	return errors.Join(errs...)
}

// summarizeLogs adds the complete logs to the summary.
func (c *capture) summarizeLogs() {
	var paths []string
	_ = c.log.Each(func(l *invoker.Log) error {
		paths = append(paths, l.Path)
		c.sum.LogSize += l.Size()
		return nil
	})
	last := len(paths) - 1
	c.sum.Pieces, c.sum.Log, c.sum.Dropped = paths[:last], paths[last], c.log.Dropped()
}

// close releases everything that is live, in the reverse order of its making.
func (c *capture) close() error {
	var errs []error
	if c.engine != nil { // before the target may go on without it
		errs = append(errs, c.engine.Unfollow())
	}
	if c.unpass != nil {
		c.unpass()
	}
	if c.target != nil {
		errs = append(errs, c.target.Close())
	}
	if c.names != nil {
		c.names.close()
	}
	if c.engine != nil {
		errs = append(errs, c.engine.Close())
	}
	if c.log != nil {
		errs = append(errs, c.log.Close())
	}
	return errors.Join(errs...)
}
