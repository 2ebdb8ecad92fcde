package sink

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"ccagent/agent/invoker"
	"ccagent/eventlog"
	"ccagent/perf"
)

// Now is the time of events that have none of their own.
const Now = ^uint64(0)

// Config describes a sink.
type Config struct {
	Who *invoker.User // who owns the logs
	// Rotate begins a new log when one has reached so many bytes; 0 never does.
	// Keep is how many of them are kept; 0 keeps all.
	Rotate uint64
	Keep   int
	// Unbegun has time stand at 0 until Begin.
	Unbegun bool
	// NoLabels leaves out what the program calls its threads.
	NoLabels bool
	// Warn takes what the user should know at once, a line without newline.
	Warn func(line string)
}

// Sink is the log of a capture, or the logs, if it rotates.
type Sink struct {
	config Config
	clock  clock

	file     *invoker.Log
	beside   *beside // in place of file, of a log that a Disk writes
	log      *eventlog.Writer
	fileLost error // what somebody did to the file

	base    string // the first log's name
	number  int    // of the current log, from 1
	old     []finished
	dropped int

	// Counts are of the samples in it, Seen the code that it has to name.
	Counts Counts
	Seen   Seen

	definitions definitions
	modules     map[uint32]bool // that are defined
	stacks      *stacks
	labels      labels
	losses      losses
	warned      []string        // not yet in the log
	noted       map[string]bool // by Set.WarnOf
	unwritten   uint64          // events that were dropped
	// unwrittenSamples are those of them that are samples, by event, which the log does not have as lost yet.
	unwrittenSamples map[uint32]uint64
}

// holdMost is what a log that Outlives errors holds at most, in bytes: some minutes of a busy program.
const holdMost = 1 << 20

// besideBuffer is how many bytes of such a log wait for the next Flush at most.
const besideBuffer = 64 << 10

// New makes a sink that takes warnings; its log is created by Create.
func New(c Config) *Sink {
	return &Sink{config: c, number: 1, modules: map[uint32]bool{}, stacks: newStacks(), Seen: Seen{map[Address]sighting{}}}
}

// Create creates the log at path or, if that is empty, one with a name made from the
// program's and its process id. Its time begins now, unless it is to begin later.
func (s *Sink) Create(path, program string, pid int) error {
	var err error
	if path == "" {
		s.file, err = invoker.CreateDefaultLog(program, pid, s.config.Who)
	} else {
		s.file, err = invoker.CreateLog(path, s.config.Who)
	}
	if err != nil {
		return err
	}
	s.base = s.file.Path
	if !s.config.Unbegun {
		s.Begin(perf.Monotonic())
	}
	s.log = eventlog.NewWriter(s.file, nil)
	return s.writeWarnings()
}

// CreateBeside is Create for a log that is made, by create, and written by a Disk. Such a log outlives errors of writing it: what cannot be
// written is held, tried again with each Flush, and counted when it is too much.
func (s *Sink) CreateBeside(disk *Disk, create func() (*invoker.Log, error)) error {
	s.beside = newBeside(disk, create)
	s.Begin(perf.Monotonic())
	s.log = eventlog.NewWriter(s.beside, &eventlog.WriterOptions{Hold: holdMost, Buffer: besideBuffer})
	return s.writeWarnings()
}

// HoldAtMost bounds what a log that cannot be written holds, in bytes, of which it has at most holdMost.
func (s *Sink) HoldAtMost(n int) { s.log.HoldAtMost(min(max(n, besideBuffer), holdMost)) }

// Problem is why a log that is written by a Disk is not written now, nil if it is.
func (s *Sink) Problem() error { return s.beside.Problem() }

// Attend has the caller wait for what is written from now on, and get its errors, though a Disk has written it so far.
func (s *Sink) Attend() {
	if s.beside != nil {
		s.beside.attend()
	}
}

// Repair has a log written again that had to drop events, once all that it holds is written, and says in it what it lacks. Nothing that
// follows may refer to stacks.
func (s *Sink) Repair() error {
	if err := s.log.Resume(); err != nil || s.unwritten == 0 {
		return err
	}
	for _, event := range slices.Sorted(maps.Keys(s.unwrittenSamples)) {
		if err := s.Lose(Place{Event: int(event), Reason: eventlog.LossUnwritten}, s.unwrittenSamples[event]); err != nil {
			return err
		}
	}
	s.unwrittenSamples = nil
	return s.Emit(Now, &eventlog.Warning{Text: fmt.Sprintf("%d events are missing: the disk was full or took nothing for too long", s.unwritten)})
}

// write writes an event, or counts it as dropped.
func (s *Sink) write(at uint64, capability int, e eventlog.Event) error {
	err := s.log.Write(at, capability, e)
	var wrong *eventlog.EventError
	if err != nil && s.beside != nil && !errors.As(err, &wrong) {
		s.unwritten++
		if e, ok := e.(*eventlog.Sample); ok {
			if s.unwrittenSamples == nil {
				s.unwrittenSamples = map[uint32]uint64{}
			}
			s.unwrittenSamples[e.Event]++
		}
		return nil
	}
	return err
}

// Drop gives up what is held, which is counted. What was handed to the Disk is written yet.
func (s *Sink) Drop() {
	s.unwritten += s.log.Drop()
}

// Held is how many bytes could not be handed over to be written.
func (s *Sink) Held() int { return s.log.Held() }

// Unwritten is how many events were dropped because they could not be written.
func (s *Sink) Unwritten() uint64 { return s.unwritten }

// Path is the current log's; empty while there is none.
func (s *Sink) Path() string {
	if s.beside != nil {
		return s.beside.path()
	}
	return s.file.Path
}

// File is the current log, nil if a Disk writes it.
func (s *Sink) File() *invoker.Log { return s.file }

// Written is how many bytes the current log has.
func (s *Sink) Written() uint64 { return uint64(s.log.Size()) }

// Emit writes an event that is of no capability, at a time or Now. What happened before the
// log's time 0 is written as of 0.
func (s *Sink) Emit(time uint64, e eventlog.Event) error {
	at := s.clock.at(time)
	switch e := e.(type) {
	case *eventlog.Process: // its threads are no more, or are not these
		s.labels.forget(e.PID)
	case *eventlog.Module:
		s.modules[e.ID] = true
	case *eventlog.Sampling:
		s.Counts.CPUNs = max(s.Counts.CPUNs, e.CPUNs)
	}
	if s.config.Rotate != 0 {
		s.definitions.remember(at, e)
	}
	return s.write(at, eventlog.NoCap, e)
}

// Defines reports whether a module is defined in the log.
func (s *Sink) Defines(module uint32) bool { return s.modules[module] }

// EmitOn writes an event of a capability.
func (s *Sink) EmitOn(time uint64, capability int, e eventlog.Event) error {
	return s.write(s.clock.at(time), capability, e)
}

// Label writes a thread's label, unless that is how it was written last: the walker sends
// labels again when the GC has moved them.
func (s *Sink) Label(pid uint32, tso uint64, label string) error {
	t := thread{pid, tso}
	if s.config.NoLabels || !s.labels.set(t, label) {
		return nil
	}
	e := &eventlog.ThreadLabel{Thread: uint32(tso), Label: label}
	at := s.clock.at(Now)
	if s.config.Rotate != 0 {
		s.definitions.label(t, at, e)
	}
	return s.write(at, eventlog.NoCap, e)
}

// LabelOf is the label of a thread, as it was written last.
func (s *Sink) LabelOf(pid uint32, tso uint64) string { return s.labels.of[pid][tso] }

// Stack returns the node of a stack, frames leaf first, after writing the nodes that are new.
// Frames are as the walker sends them; their addresses mean something within one process
// incarnation only, for which locate gives module and module address.
func (s *Sink) Stack(time uint64, incarnation uint32, frames []uint64,
	locate func(addr uint64) (module uint32, addrInModule uint64, err error)) (uint32, error) {
	return s.stacks.intern(incarnation, frames, locate, func(n *eventlog.Nodes) error {
		s.Seen.addNodes(n.Nodes)
		return s.Emit(time, n)
	})
}

// Warn warns the user at once, and writes the warning into the log with the next Flush.
func (s *Sink) Warn(line string) {
	s.config.Warn(line)
	s.warned = append(s.warned, line)
}

func (s *Sink) writeWarnings() error {
	for _, line := range s.warned {
		if err := s.Emit(Now, &eventlog.Warning{Text: line}); err != nil {
			return err
		}
	}
	s.warned = nil
	return nil
}

// Flush writes the warnings that have not been, and hands everything to the file.
func (s *Sink) Flush() error {
	if err := s.writeWarnings(); err != nil {
		return err
	}
	if err := s.log.Flush(); err != nil {
		return err
	}
	if s.beside != nil {
		if err := s.beside.Problem(); err != nil {
			return err
		}
	}
	s.checkFile()
	return nil
}

// Discard closes a log that is written by a Disk, and removes its file.
func (s *Sink) Discard() error { return s.beside.end(true) }

// Remove removes the current log's file.
func (s *Sink) Remove() error { return s.file.Remove() }

// Close closes the logs' files, and removes a log that nothing has been written to: its
// capture has failed before, and nobody could read it. It may be called at any time, also
// before Create.
func (s *Sink) Close() error {
	var errs []error
	if s.beside != nil {
		errs = append(errs, s.beside.end(false))
	}
	if s.file != nil {
		if info, err := s.file.Stat(); err == nil && info.Size() == 0 {
			errs = append(errs, s.file.Remove())
		}
		errs = append(errs, s.file.Close())
	}
	for _, p := range s.old { // of a capture that was not finished
		errs = append(errs, p.file.Close())
	}
	s.file, s.old = nil, nil
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("close log: %w", err)
	}
	return nil
}
