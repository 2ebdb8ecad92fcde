package agent

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ccagent/agent/process"
	"ccagent/eventlog"
)

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
	for _, s := range c.sampled {
		try("stop sampling", s.Disable())
	}
	try("stop sampling", c.offCPU.Close())
	c.sum.Wall = time.Since(c.begun)
	if c.opts.Finishing != nil && (reason == eventlog.EndExited || !c.target.Started()) {
		c.opts.Finishing()
	}
	c.processes.StopCompiling() // what is not compiled by now is of no use
	logWorks := cause == nil
	if logWorks {
		try("capture", c.drainAll())
		try("write log", c.alloc.settleAll())
		for _, s := range c.offCPU.unfinished(monotonic(), c.processes.Exited) {
			try("capture", c.taken(s))
		}
		if c.offCPU != nil {
			c.sum.Idle = time.Duration(c.offCPU.idleNs)
		}
		try("finish timeline", c.rts.Finish(monotonic()))
		told, err := c.counters.shared()
		try("capture", err)
		for _, line := range told {
			c.warn(line)
		}
		try("write log", c.account())
		logWorks = len(errs) == 0
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
		try("write log", c.ticky.finish(c.processes.Images, c.emitNow))
		try("write log", c.emit(process.Now, end))
		try("write log", c.log.Flush())
	}
	try("close events", c.closeEvents())
	if logWorks && len(errs) == 0 && c.sum.Samples > 0 {
		try("write symbols", c.symbolize(ctx))
	}
	for _, p := range c.rotation.old {
		try("finish older logs", p.log.Close())
	}
	if logWorks {
		try("finish log", c.log.Close())
	}
	if logWorks && len(errs) == 0 && c.sum.Samples > 0 && c.opts.Derive != nil {
		for _, p := range c.rotation.old {
			errs = append(errs, c.opts.Derive(ctx, p.file))
		}
		errs = append(errs, c.opts.Derive(ctx, c.file))
	}
	c.sum.LogSize = c.file.Size()
	for _, p := range c.rotation.old {
		c.sum.LogSize += p.file.Size()
	}
	try("finish older logs", c.closeOld())
	return errors.Join(errs...)
}

// close releases everything that is live, in the reverse order of its making.
func (c *capture) close() error {
	var errs []error
	if c.samples != nil {
		errs = append(errs, c.samples.Close())
	}
	errs = append(errs, c.closeEvents(), c.offCPU.Close())
	if c.unpass != nil {
		c.unpass()
	}
	if c.target != nil {
		errs = append(errs, c.target.Close())
	}
	if c.live != nil && c.live.running != nil { // of a capture that was not finished
		c.live.cancel()
		<-c.live.running
	}
	if c.processes != nil {
		c.processes.StopCompiling()
		errs = append(errs, c.alloc.Close(), c.ticky.Close(), c.rts.Close(), c.processes.Close())
	}
	errs = append(errs, c.clocks.Close())
	if c.statsOn != nil {
		errs = append(errs, c.statsOn())
	}
	if c.sampler != nil {
		errs = append(errs, c.sampler.Close())
	}
	if c.file != nil {
		errs = append(errs, c.file.Close())
	}
	for _, p := range c.rotation.old { // of a capture that was not finished
		errs = append(errs, p.file.Close())
	}
	return errors.Join(errs...)
}
