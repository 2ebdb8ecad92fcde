package sink

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"ccagent/agent/invoker"
	"ccagent/eventlog"
)

// finished is a log that rotation has left behind. It has everything but the symbol tables,
// which it gets with the last one's when the capture ends.
type finished struct {
	file *invoker.Log
	log  *eventlog.Writer
}

// Rotate begins a new log if the current one is large enough, and reports whether it did.
// The new one begins with all definitions and goes on with the capture's time, so that each
// log can be read alone, and all of them merged are the capture. Stack nodes are defined
// anew, so it is called between samples only.
func (s *Sink) Rotate() (rotated bool, err error) {
	if s.config.Rotate == 0 || uint64(s.log.Size()) < s.config.Rotate {
		return false, nil
	}
	if err := s.Emit(Now, &eventlog.CaptureEnd{Reason: eventlog.EndRotated}); err != nil {
		return false, err
	}
	if err := s.log.Flush(); err != nil {
		return false, err
	}
	path := pieceName(s.base, s.number+1)
	file, err := s.file.CreateBeside(path)
	if err != nil {
		return false, err
	}
	s.number++
	s.old = append(s.old, finished{s.file, s.log})
	s.file, s.log = file, eventlog.NewWriter(file, nil)
	s.stacks = newStacks()
	for _, d := range s.definitions.all() {
		if err := s.log.Write(d.time, eventlog.NoCap, d.event); err != nil {
			return true, err
		}
	}
	if n := s.definitions.takeForgotten(); n > 0 {
		s.Warn(fmt.Sprintf("there are more labels of threads and mappings than can be repeated in each log: %d of the oldest are missing from here on", n))
	}
	return true, s.dropOld()
}

// pieceName is NAME.2.eventlog for the second log of NAME.eventlog.
func pieceName(base string, n int) string {
	ext := filepath.Ext(base)
	return fmt.Sprintf("%s.%d%s", strings.TrimSuffix(base, ext), n, ext)
}

// dropOld removes the oldest logs beyond those to be kept.
func (s *Sink) dropOld() error {
	for s.config.Keep > 0 && len(s.old)+1 > s.config.Keep {
		p := s.old[0]
		s.old = s.old[1:]
		s.dropped++
		if err := errors.Join(p.file.Remove(), p.file.Close()); err != nil {
			return fmt.Errorf("drop an old log: %w", err)
		}
	}
	return nil
}

// EmitSymbol writes an event of the symbol tables to all logs.
func (s *Sink) EmitSymbol(e eventlog.Event) error {
	for _, p := range s.old {
		if err := p.log.Write(s.clock.at(Now), eventlog.NoCap, e); err != nil {
			return fmt.Errorf("write %s: %w", p.file.Path, err)
		}
	}
	return s.Emit(Now, e)
}

// Each calls f with each log, oldest first.
func (s *Sink) Each(f func(*invoker.Log) error) error {
	var errs []error
	for _, p := range s.old {
		errs = append(errs, f(p.file))
	}
	if s.file != nil {
		errs = append(errs, f(s.file))
	}
	return errors.Join(errs...)
}

// Dropped is how many logs rotation has removed again.
func (s *Sink) Dropped() int { return s.dropped }

// FinishOlder completes the logs that rotation has left behind.
func (s *Sink) FinishOlder() error {
	var errs []error
	for _, p := range s.old {
		errs = append(errs, p.log.Close())
	}
	return errors.Join(errs...)
}

// Finish completes the current log: nothing is written to it afterwards.
func (s *Sink) Finish() error { return s.log.Close() }
