package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"ccagent/agent/dump"
	"ccagent/agent/process"
	"ccagent/agent/target"
)

// dumping is a thread dump that is taken beside a capture.
type dumping struct {
	answer chan<- error
	image  *process.Image
	cancel context.CancelFunc
	done   chan dumped
}

type dumped struct {
	dump *dump.Dump
	err  error
}

// ErrCaptureEnded is why the threads of a program are not read.
var ErrCaptureEnded = errors.New("the capture has ended")

// stepDump writes a dump that was taken beside the capture, or begins one that is asked for. An error is one of writing the log.
func (c *capture) stepDump() error {
	if c.dump == nil {
		select {
		case answer := <-c.opts.Dumps:
			c.beginDump(answer)
		default:
		}
		return nil
	}
	select {
	case r := <-c.dump.done:
		return c.tookDump(r)
	default:
		return nil
	}
}

// haskeller is the target if it runs a Haskell program, else the process with the lowest id that does; nil if none does.
func (c *capture) haskeller() *process.Image {
	all := c.engine.Processes.Images
	runs := func(im *process.Image) bool { return im != nil && !im.Exited && im.RTS != nil }
	if im := all[uint32(c.target.PID)]; runs(im) {
		return im
	}
	for _, pid := range slices.Sorted(maps.Keys(all)) {
		if runs(all[pid]) {
			return all[pid]
		}
	}
	return nil
}

// beginDump begins to read the threads of the target, or of a Haskell program that it has started.
func (c *capture) beginDump(answer chan<- error) {
	im := c.haskeller()
	if im == nil {
		answer <- errNoHaskell
		return
	}
	if err := target.MayTrace(int(im.PID), c.who); err != nil {
		answer <- err
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.dump = &dumping{answer: answer, image: im, cancel: cancel, done: make(chan dumped, 1)}
	// What is read once of a module is read here, and the capture goes on changing its own list of mappings.
	_, _ = im.RTS.RTSSymbols() // it fails there too
	still := *im
	still.Mappings = slices.Clone(im.Mappings)
	done := c.dump.done
	go func() {
		d, err := dump.Take(ctx, &still)
		done <- dumped{d, err}
	}()
}

// tookDump writes what was read.
func (c *capture) tookDump(r dumped) error {
	d := c.dump
	c.dump = nil
	d.cancel()
	if r.err == nil && d.image.Exited {
		r.err = fmt.Errorf("process %d has ended", d.image.PID)
	}
	if r.err != nil {
		d.answer <- fmt.Errorf("read the threads: %w", r.err)
		return nil
	}
	err := errors.Join(c.writeDump(d.image, r.dump), c.log.Flush())
	d.answer <- err
	return err
}

// endDump gives up a dump that is under way when the capture ends.
func (c *capture) endDump() {
	if c.dump == nil {
		return
	}
	c.dump.cancel()
	<-c.dump.done
	c.dump.answer <- ErrCaptureEnded
	c.dump = nil
}
