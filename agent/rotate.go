package agent

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"ccagent/agent/invoker"
	"ccagent/agent/process"
	"ccagent/eventlog"
)

// piece is a log that rotation has left behind. It has everything but the
// symbol tables, which it gets with the last one's when the capture ends.
type piece struct {
	file *invoker.Log
	log  *eventlog.Writer
}

// rotation divides a capture into logs. Each begins with all definitions made so
// far and goes on with the capture's time, so that each can be read alone, and
// all of them merged are the capture.
type rotation struct {
	base    string
	number  int // of the current piece, from 1
	defined []definition
	old     []piece // oldest first
}

// definition is an event that every piece must have.
type definition struct {
	time uint64 // in the log
	ev   eventlog.Event
}

// maxDefinitions bounds what is remembered of a capture's definitions; beyond,
// the oldest processes' events are the first to be missing from later pieces.
const maxDefinitions = 1 << 16

// remember keeps an event that later pieces must repeat.
func (c *capture) remember(time uint64, e eventlog.Event) {
	if c.opts.Rotate == 0 {
		return
	}
	switch e := e.(type) {
	case *eventlog.CapsetCreate, *eventlog.OSProcessPID, *eventlog.WallClock, *eventlog.ProgramArgs, *eventlog.Capture,
		*eventlog.EventDef, *eventlog.EventRate, *eventlog.Module, *eventlog.Mapping, *eventlog.Process, *eventlog.ThreadLabel:
		r := &c.rotation
		if len(r.defined) == maxDefinitions {
			r.defined = append(r.defined[:0], r.defined[1:]...)
		}
		r.defined = append(r.defined, definition{time, e})
	}
}

// rotate begins a new piece if the current one is large enough. It is called
// between samples only: stack nodes are defined anew in each piece.
func (c *capture) rotate() error {
	if c.opts.Rotate == 0 || uint64(c.log.Size()) < c.opts.Rotate {
		return nil
	}
	if err := c.emit(process.Now, &eventlog.CaptureEnd{Reason: eventlog.EndRotated}); err != nil {
		return err
	}
	if err := c.log.Flush(); err != nil {
		return err
	}
	r := &c.rotation
	if r.number == 0 {
		r.base, r.number = c.sum.Log, 1
	}
	path := pieceName(r.base, r.number+1)
	file, err := c.file.CreateBeside(path)
	if err != nil {
		return err
	}
	r.number++
	r.old = append(r.old, piece{c.file, c.log})
	c.file, c.sum.Log, c.log = file, path, eventlog.NewWriter(file, nil)
	c.stacks = newStacks()
	c.centres.forgetWritten()
	c.alloc.forgetRecent()
	for _, d := range r.defined {
		if err := c.log.Write(d.time, eventlog.NoCap, d.ev); err != nil {
			return err
		}
	}
	if err := c.rts.Declare(monotonic()); err != nil {
		return err
	}
	return c.dropOld()
}

// pieceName is NAME.2.eventlog for the second piece of NAME.eventlog.
func pieceName(base string, n int) string {
	ext := filepath.Ext(base)
	return fmt.Sprintf("%s.%d%s", strings.TrimSuffix(base, ext), n, ext)
}

// dropOld removes the oldest pieces beyond those to be kept.
func (c *capture) dropOld() error {
	r := &c.rotation
	for c.opts.Keep > 0 && len(r.old)+1 > c.opts.Keep {
		p := r.old[0]
		r.old = r.old[1:]
		c.sum.Dropped++
		if err := errors.Join(p.file.Remove(), p.file.Close()); err != nil {
			return fmt.Errorf("drop an old log: %w", err)
		}
	}
	return nil
}

// emitSymbol writes an event of the symbol tables to all pieces.
func (c *capture) emitSymbol(e eventlog.Event) error {
	for _, p := range c.rotation.old {
		if err := p.log.Write(monotonic()-c.start, eventlog.NoCap, e); err != nil {
			return fmt.Errorf("write %s: %w", p.file.Path, err)
		}
	}
	return c.emit(process.Now, e)
}

// closeOld lets go of the pieces left behind.
func (c *capture) closeOld() error {
	var errs []error
	for _, p := range c.rotation.old {
		errs = append(errs, p.file.Close())
		c.sum.Pieces = append(c.sum.Pieces, p.file.Path)
	}
	c.rotation.old = nil
	return errors.Join(errs...)
}
