package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/daemon/control"
	"ccagent/agent/daemon/segments"
	"ccagent/agent/discovery"
	"ccagent/agent/source"
	"ccagent/eventlog"
)

// handle answers requests, in the daemon's loop but for what takes long.
func (d *Daemon) handle(ctx context.Context, peer control.Peer, r control.Request) (a control.Answer, files []*os.File) {
	peer = peer.For(r)
	d.opts.Log(fmt.Sprintf("user %d (process %d) asks for %s", peer.UID, peer.PID, describe(r)))
	var rest remainder
	done := make(chan struct{})
	call := func() {
		defer close(done)
		rest = d.answer(peer, r, &a)
	}
	select {
	case d.calls <- call:
		<-done
	case <-ctx.Done():
		a.Error = "the daemon ends"
		return a, nil
	}
	if rest == nil || a.Error != "" {
		return a, nil
	}
	files, err := rest(ctx)
	if err != nil {
		a.Error = err.Error()
	}
	return a, files
}

// remainder is what of an answer takes long, and is done beside the loop. It gives the files of the answer.
type remainder func(context.Context) ([]*os.File, error)

func describe(r control.Request) string {
	switch {
	case r.Command == control.CommandBoost && r.For == 0:
		return fmt.Sprintf("the end of the boost of process %d", r.PID)
	case r.Command == control.CommandBoost:
		return fmt.Sprintf("a boost of process %d, %d Hz for %.9g s", r.PID, r.Rate, r.For)
	case r.Command == control.CommandThreads:
		return "the threads of " + whose(r)
	case r.Command == control.CommandHeap:
		return "the heap of " + whose(r)
	case r.Command == control.CommandSnapshot:
		return "a snapshot of " + whose(r)
	}
	return fmt.Sprintf("%.32q", r.Command)
}

// whose says in words of what a request is.
func whose(r control.Request) string {
	if r.PID != 0 {
		return fmt.Sprintf("process %d", r.PID)
	}
	return fmt.Sprintf("service %q", r.Service)
}

// answer answers a request, but for what takes long.
func (d *Daemon) answer(peer control.Peer, r control.Request, a *control.Answer) remainder {
	switch r.Command {
	case control.CommandPS:
		a.Processes = d.processes(peer)
	case control.CommandStatus:
		a.Status = d.status()
	case control.CommandReload:
		if peer.UID != 0 {
			a.Error = "only root can have the configuration read again"
		} else if err := d.reload(); err != nil {
			a.Error = fmt.Sprintf("the configuration stays as it was: %v", err)
		}
	case control.CommandBoost:
		if err := d.boost(peer, r); err != nil {
			a.Error = err.Error()
		}
	case control.CommandSnapshot:
		if err := errors.Join(d.engine.Drain(), d.account()); err != nil {
			a.Error = err.Error()
			return nil
		}
		sampled := false
		for _, p := range d.procs {
			if !peer.Sees(p.UID) || !wanted(r, p.PID, p.Service) {
				continue
			}
			sampled = true
			if !p.log.Counts.None() {
				if err := d.next(p); err != nil {
					a.Error = err.Error()
					return nil
				}
			}
		}
		done := make(chan struct{})
		d.closer.add(closing{done: done})
		return func(ctx context.Context) ([]*os.File, error) {
			select {
			case <-done: // the pieces are closed
			case <-ctx.Done():
				return nil, errors.New("the daemon ends")
			}
			files, err := d.pieces(peer, r, a)
			if err == nil && len(files) == 0 {
				err = noSample(peer, r, sampled)
			}
			return files, err
		}
	case control.CommandThreads, control.CommandHeap:
		rest, err := d.dump(peer, r, a)
		if err != nil {
			a.Error = err.Error()
		}
		return rest
	default:
		a.Error = fmt.Sprintf("there is no command %q", r.Command)
	}
	return nil
}

// wanted reports whether a process is one of those that a request names.
func wanted(r control.Request, pid uint32, service string) bool {
	return r.PID == pid && r.PID != 0 || r.Service != "" && discovery.Clean(r.Service) == discovery.Clean(service)
}

// pieces opens the closed pieces of a snapshot.
func (d *Daemon) pieces(peer control.Peer, r control.Request, a *control.Answer) (files []*os.File, err error) {
	all, err := d.folder.Pieces()
	if err != nil {
		return nil, err
	}
	const longest = 1e9 // seconds
	since := time.Now().Add(-time.Duration(min(max(r.Last, 0), longest) * float64(time.Second)))
	a.SinceUnixNs = since.UnixNano()
	for _, p := range all {
		if !wanted(r, p.PID, p.Service) || p.End.Before(since) || d.disk.Open(p.Path) || len(files) == control.MaxFiles {
			continue
		}
		if f := openPiece(peer, p); f != nil {
			files, a.Pieces = append(files, f), append(a.Pieces, p.Path)
		}
	}
	return files, nil
}

// noSample is the error for a request that names a process or service without samples. It does not tell a user whether another user's process exists.
func noSample(peer control.Peer, r control.Request, sampled bool) error {
	last := time.Duration(r.Last * float64(time.Second)).Round(time.Second)
	switch {
	case sampled:
		return fmt.Errorf("there is no sample of %s in the last %v: what does nothing has none", whose(r), last)
	case peer.UID != 0:
		return fmt.Errorf("there is no sample of %s in the last %v, and it is none of your processes that are sampled now (ccagent ps lists them)", whose(r), last)
	}
	return fmt.Errorf("there is no sample of %s in the last %v, and none is sampled now (ccagent ps lists what is)", whose(r), last)
}

// openPiece opens a piece that the peer may see; nil if it may not, or if the piece is gone or
// still being written.
func openPiece(peer control.Peer, p segments.Piece) *os.File {
	f, err := os.OpenFile(p.Path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil
	}
	if uid, ok := OwnerOf(f); eventlog.BeingWritten(f) || !ok || !peer.Sees(uid) {
		f.Close()
		return nil
	}
	if _, err := f.Seek(0, 0); err != nil {
		f.Close()
		return nil
	}
	return f
}

// OwnerOf reads whose process a piece is of, which its head says.
func OwnerOf(f *os.File) (uid uint32, ok bool) {
	r := eventlog.NewReader(f)
	for n := 0; n < 16 && r.Next(); n++ {
		if c, is := r.Record().Event.(*eventlog.Capture); is && len(c.TargetIDs) > 0 {
			return c.TargetIDs[0], true
		}
	}
	return 0, false
}

// processes lists what the peer may see.
func (d *Daemon) processes(peer control.Peer) []control.Process {
	var all []control.Process
	for _, p := range d.procs {
		if !peer.Sees(p.UID) {
			continue
		}
		one := Describe(p.Process)
		one.State, one.Samples, one.Boost = "sampled", p.samples+p.log.Counts.Samples, d.boosted(p)
		if cost, used, ok := d.engine.CostOf(p.image); ok {
			part := float64(cost) / float64(used)
			one.Cost = &part
		}
		for _, e := range d.config.Measured() {
			if err := p.missing(d.engine.Missing(p.image, e), time.Now()); err != nil {
				one.Missing = append(one.Missing, control.Missing{Event: e, Reason: err.Error()})
				continue
			}
			one.Events = append(one.Events, e)
			if err := d.engine.Partly(p.image, e); err != nil {
				one.Partly = append(one.Partly, control.Missing{Event: e, Reason: err.Error()})
			}
		}
		all = append(all, one)
	}
	for _, p := range d.excluded {
		if !peer.Sees(p.UID) {
			continue
		}
		one := Describe(p)
		one.State = "excluded"
		for _, e := range d.config.Measured() {
			one.Missing = append(one.Missing, control.Missing{Event: e, Reason: "a rule of the configuration excludes the process"})
		}
		all = append(all, one)
	}
	for _, f := range d.failed {
		if !peer.Sees(f.UID) {
			continue
		}
		one := Describe(f.Process)
		one.State = "failed"
		for _, e := range d.config.Measured() {
			one.Missing = append(one.Missing, control.Missing{Event: e, Reason: f.err.Error()})
		}
		all = append(all, one)
	}
	slices.SortFunc(all, func(a, b control.Process) int { return cmp.Compare(a.PID, b.PID) })
	return all
}

// settling is for how long after it was found a process may not be attached to yet: its libraries are mapped after it
// begins, and other processes may come first.
const settling = 10 * time.Second

var errNotYet = errors.New("it was found a moment ago, and is not attached to yet")

// missing is why an event is not measured in a process, as a user is to read it.
func (p *proc) missing(err error, now time.Time) error {
	if errors.Is(err, source.ErrNoRTS) && now.Sub(p.taken) < settling {
		return errNotYet
	}
	return err
}

// Describe is a process as the protocol has it.
func Describe(p discovery.Process) control.Process {
	return control.Process{PID: p.PID, UID: p.UID, Service: p.Service, Program: p.Path, GHC: p.GHC, Way: p.Way,
		Cgroup: p.Cgroup, Container: p.Container, State: "visible", Events: []string{}, Missing: []control.Missing{}}
}

func (d *Daemon) status() *control.Status {
	s := &control.Status{Version: d.opts.Version, PID: os.Getpid(), UpSeconds: time.Since(d.begun).Seconds(), Processes: len(d.procs),
		Events: d.config.Measured()}
	s.Pieces, s.Bytes = d.kept.amount()
	for _, p := range d.procs {
		lost, _ := p.log.Losses()
		s.Samples, s.Lost = s.Samples+p.log.Counts.Samples, s.Lost+lost
	}
	s.Engines = []control.Engine{}
	if d.opts.Engines != nil {
		s.Engines = append(s.Engines, d.opts.Engines()...)
	}
	var problem error
	if s.Stalled, problem = d.problem(); problem != nil {
		s.Problem = problem.Error()
	}
	d.closer.mu.Lock()
	s.Samples, s.Lost, s.Failed = s.Samples+d.closer.closed, s.Lost+d.closer.lost, d.closer.failed
	d.closer.mu.Unlock()
	s.Unwritten = d.unwritten()
	var ru unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &ru) == nil {
		s.CPUSecs, s.RSS = float64(ru.Utime.Nano()+ru.Stime.Nano())/1e9, uint64(ru.Maxrss)<<10
	}
	if unix.Getrusage(unix.RUSAGE_CHILDREN, &ru) == nil {
		s.CPUSecs += float64(ru.Utime.Nano()+ru.Stime.Nano()) / 1e9
	}
	return s
}
