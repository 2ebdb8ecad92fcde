package daemon

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"ccagent/agent/counters"
	"ccagent/agent/discovery"
	"ccagent/agent/engine"
	"ccagent/agent/invoker"
	"ccagent/agent/process"
	"ccagent/agent/sink"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/internal/credentials"
	"ccagent/perf"
)

// proc is a process that is sampled.
type proc struct {
	discovery.Process
	terms   engine.Terms
	image   *process.Image
	log     *sink.Sink   // the piece that is being written
	since   time.Time    // that began
	taken   time.Time    // when the process was taken in
	samples uint64       // of earlier pieces
	problem error        // why the piece could not be written last, nil if it could
	counted counters.RTS // as last read
	counts  bool         // they have been read
	heapIn  *sink.Sink   // the piece that says how large the heap is
	live    uint64       // bytes that the last major collection has left, 0 if none was seen
}

// failure is a process that is chosen, but that could not be taken in.
type failure struct {
	discovery.Process
	err error
}

// fork is a process that was forked by one that is sampled, and that has not been sampled itself.
type fork struct {
	parent  discovery.Process
	image   *process.Image
	time    uint64
	noticed time.Time
}

// Changed is called with each change of what processes of the host run.
func (d *Daemon) Changed(c perf.Change) (done bool, err error) {
	switch c := c.(type) {
	case *perf.Fork:
		if old := d.procs[c.PID]; old != nil && old.image.Exited && c.PID != c.Parent { // its number is another's by now
			if err := errors.Join(d.account(), d.end(old)); err != nil {
				return true, err
			}
		}
		f := fork{time: c.Time, noticed: time.Now()}
		if p := d.procs[c.Parent]; p != nil {
			f.parent, f.image = p.Process, p.image
		} else if of, ok := d.forks.of[c.Parent]; ok {
			f.parent, f.image = of.parent, of.image
		} else {
			return false, nil
		}
		if d.forks.add(c.PID, f) != nil {
			return true, d.engine.Remove(c.PID) // the walker may have entered it
		}
		err = d.engine.Join(c.PID) // it may have been forked before its parent was taken in
		if errors.Is(err, bpf.ErrTooManyTargets) {
			err = nil
		}
		return true, err
	case *perf.Exec:
		return true, d.execed(c.PID)
	case *perf.Exit:
		if c.PID == c.TID {
			d.forks.remove(c.PID)
			delete(d.excluded, c.PID)
			delete(d.failed, c.PID)
		}
	case *perf.Mmap:
		if d.procs[c.PID] == nil && !d.looked[c.PID] && discovery.IsLibrary(c.Filename) {
			d.looked[c.PID] = true // a process may map such a file again and again
			return true, d.look(c.PID)
		}
	}
	return false, nil
}

// execed takes in a process that executes another program.
func (d *Daemon) execed(pid uint32) error {
	_, forked := d.forks.remove(pid)
	delete(d.excluded, pid)
	delete(d.failed, pid)
	delete(d.boosts, pid)
	if p := d.procs[pid]; p != nil {
		// The source holds samples that belong into its log.
		if err := d.account(); err != nil {
			return err
		}
		if err := d.end(p); err != nil {
			return err
		}
	} else if forked {
		if err := d.engine.Remove(pid); err != nil {
			return err
		}
	}
	if p, ok := d.finder.Executed(pid); ok && d.procs[pid] == nil {
		return d.take(p)
	}
	return nil
}

// look takes a process in if it runs a Haskell program.
func (d *Daemon) look(pid uint32) error {
	if p, ok := d.finder.Look(pid); ok && d.procs[pid] == nil {
		return d.take(p)
	}
	return nil
}

// missed is what is known of changes that were lost.
type missed struct {
	changes uint64    // of which the processes have been looked at since
	looked  time.Time // when they were
}

// catchUpInterval is the least time between looks at all processes, since changes were lost: a process that maps code
// without end can have the kernel drop some all the time.
const catchUpInterval = 30 * time.Second

// deleted is what the kernel adds to the path of a program whose file was removed or replaced.
const deleted = " (deleted)"

// catchUp takes in, and ends, what has begun and ended while changes were lost.
func (d *Daemon) catchUp(now time.Time) error {
	lost := d.engine.LostChanges()
	if lost == d.missed.changes || now.Sub(d.missed.looked) < catchUpInterval {
		return nil
	}
	d.missed = missed{lost, now}
	all, err := d.finder.All()
	if err != nil {
		return err
	}
	if err := d.engine.Drain(); err != nil { // ends that were not lost have come by then
		return err
	}
	runs := map[uint32]bool{}
	for _, p := range all {
		runs[p.PID] = true
		known := d.procs[p.PID]
		switch _, forked := d.forks.of[p.PID]; {
		case known != nil && known.image.Exited:
		case known != nil && strings.TrimSuffix(known.Path, deleted) != strings.TrimSuffix(p.Path, deleted):
			err = d.execed(p.PID)
		case known == nil && !forked:
			err = d.take(p)
		}
		if err != nil {
			return err
		}
	}
	for pid, p := range d.procs {
		if !runs[pid] && !p.image.Exited && p.taken.Before(now) {
			if err := d.execed(pid); err != nil {
				return err
			}
		}
	}
	return nil
}

// take takes a process in that runs already.
func (d *Daemon) take(found discovery.Process) error {
	if !d.chooses(found) {
		d.excluded[found.PID] = found
		return nil
	}
	p := &proc{Process: found, terms: d.terms(found), taken: time.Now()}
	if !d.begin(p) {
		return nil
	}
	var err error
	if p.image, err = d.engine.Add(p.log, p.terms, p.PID, p.Comm, p.Path); errors.Is(err, bpf.ErrTooManyTargets) {
		d.fail(found, fmt.Errorf("%w: %w", errNoRoom, err))
		return errors.Join(d.engine.Remove(p.PID), d.discard(p.log))
	} else if err != nil {
		return errors.Join(err, d.discard(p.log))
	}
	d.procs[p.PID] = p
	return nil
}

// fork takes a process in that was forked by another, by which it is known.
func (d *Daemon) fork(pid uint32, f fork) (*process.Image, error) {
	p := &proc{Process: f.parent, terms: d.terms(f.parent), taken: time.Now()}
	p.PID = pid
	if !d.begin(p) {
		return nil, d.engine.Remove(pid)
	}
	var err error
	if p.image, err = d.engine.Fork(p.log, p.terms, f.time, pid, f.image); err != nil {
		return nil, errors.Join(err, d.discard(p.log))
	}
	d.procs[pid] = p
	return p.image, nil
}

// begin begins a process's first piece; false if that fails now, and is to be tried again.
func (d *Daemon) begin(p *proc) bool {
	err := d.room(p.UID)
	if err == nil {
		p.log, err = d.piece(p.Process)
	}
	if err != nil {
		d.fail(p.Process, err)
		return false
	}
	p.since = time.Now()
	d.taken = p.since
	delete(d.failed, p.PID)
	return true
}

// fail notes why a process is not sampled, and reports it: that there is no room for it only of the first one.
func (d *Daemon) fail(p discovery.Process, err error) {
	crowd := errors.Is(err, errNoRoom)
	if _, again := d.failed[p.PID]; !again && !(crowd && d.crowd) {
		d.opts.Log(fmt.Sprintf("%s (%d) is not recorded yet: %v", p.Service, p.PID, err))
	}
	d.crowd = d.crowd || crowd
	d.failed[p.PID] = failure{p, err}
}

// tryAgain takes in the processes that could not be.
func (d *Daemon) tryAgain() error {
	d.crowd = false
	for pid, f := range d.failed {
		if errors.Is(f.err, errNoRoom) && d.room(f.UID) != nil {
			d.crowd = true
			continue
		}
		found, ok := d.finder.Look(pid)
		if !ok {
			delete(d.failed, pid)
			continue
		}
		if err := d.take(found); err != nil {
			return err
		}
	}
	return nil
}

// piece makes a process's next piece. Nothing is left of one that cannot be made.
func (d *Daemon) piece(p discovery.Process) (*sink.Sink, error) {
	service, pid, start := p.Service, p.PID, time.Now()
	log := sink.New(sink.Config{Who: d.who, Warn: d.opts.Log})
	if err := log.CreateBeside(d.disk, func() (file *invoker.Log, err error) {
		return file, d.folder.Create(service, pid, start, func(path string) error {
			file, err = invoker.CreateLog(path, d.who)
			return err
		})
	}); err != nil {
		return nil, err
	}
	e := &eventlog.Capture{
		AgentVersion: d.opts.Version, Mode: eventlog.CaptureAttach, PID: p.PID, UID: d.who.UID,
		Program: p.Path, Args: []string{p.Path}, GHCVersion: p.GHC, Way: p.Way,
		TargetIDs: append([]uint32{p.UID, p.GID}, p.Groups...),
		Labels:    []eventlog.Label{{Key: eventlog.LabelService, Value: p.Service}},
	}
	if p.Container != "" {
		e.Labels = append(e.Labels, eventlog.Label{Key: "container.id", Value: p.Container})
	}
	attributes := p.Attributes()
	for _, key := range slices.Sorted(maps.Keys(attributes)) {
		e.Labels = append(e.Labels, eventlog.Label{Key: key, Value: attributes[key]})
	}
	if d.config.Arguments {
		e.Args = discovery.Arguments(p.PID)
	}
	if err := errors.Join(d.engine.WriteHead(log, e), d.logs.Add(log)); err != nil {
		return nil, errors.Join(err, d.discard(log))
	}
	return log, nil
}

// discard removes a piece that is of no use.
func (d *Daemon) discard(log *sink.Sink) error {
	d.logs.Remove(log)
	d.disk.Do(func() {
		if err := log.Discard(); err != nil {
			d.opts.Log(err.Error())
		}
	})
	return nil
}

// next ends a process's piece and begins another. Where what it holds cannot be written now, the old one goes on.
func (d *Daemon) next(p *proc) error {
	if p.problem = p.log.Flush(); p.problem != nil && !errors.Is(p.problem, eventlog.ErrNoRoom) {
		return nil
	}
	p.Refresh() // it may have said by now what it is called
	log, err := d.piece(p.Process)
	if err != nil {
		p.problem = err
		return nil
	}
	if err := d.engine.Redirect(p.image, log, p.Comm, p.Path); err != nil {
		return errors.Join(err, d.discard(log))
	}
	old := p.log
	p.log, p.since, p.problem = log, time.Now(), nil
	p.samples += old.Counts.Samples
	d.closePiece(p, old, eventlog.EndRotated)
	return nil
}

// end ends the log of a process, which is not sampled any more.
func (d *Daemon) end(p *proc) error {
	reason := eventlog.EndInterrupted
	if p.image.Exited {
		reason = eventlog.EndExited
	}
	delete(d.procs, p.PID)
	if p.image.Exited {
		delete(d.boosts, p.PID)
	}
	err := errors.Join(d.engine.EndBoost(p.image), d.engine.Remove(p.PID))
	d.closePiece(p, p.log, reason)
	return err
}

// drop ends a process's log early, and samples it no more.
func (d *Daemon) drop(p *proc) error {
	if err := d.account(); err != nil {
		return err
	}
	d.excluded[p.PID] = p.Process
	return d.end(p)
}

// closePiece has a piece named and closed. Nothing writes to it any more.
func (d *Daemon) closePiece(p *proc, log *sink.Sink, reason eventlog.EndReason) {
	d.logs.Remove(log)
	owner := credentials.Credentials{UID: p.UID, GID: p.GID, Groups: p.Groups}
	one := closing{log: log, reason: reason, seen: d.seenOf(log, owner), service: p.Service, user: p.UID}
	if reason == eventlog.EndExited && !log.Counts.None() {
		d.closer.hold(one, time.Now())
	} else {
		d.closer.add(one)
	}
}

// forget forgets forks that have had their time without being sampled, and are no more.
func (d *Daemon) forget() {
	for pid, f := range d.forks.of {
		if time.Since(f.noticed) > time.Minute && discovery.Age(pid, time.Now()) == 0 {
			d.forks.remove(pid)
		}
	}
}
