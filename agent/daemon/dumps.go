package daemon

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/daemon/control"
	"ccagent/agent/daemon/segments"
	"ccagent/agent/procfs"
	"ccagent/eventlog"
)

// Dump asks for a log of what the threads of a process do.
type Dump struct {
	PID  uint32
	Path string // of the log
	// NoSource, NoArgs and NoLabels leave out what may be private (control.Request).
	NoSource, NoArgs, NoLabels bool
}

const (
	// maxDumps bounds the dumps that are taken at a time: each has a process of its own, which names code. A user other than root has
	// one of them at most, and rootsDumps are kept for root.
	maxDumps   = 3
	rootsDumps = 1
	// dumpPatience is how long a dump may take; most of it is naming code that has not been seen before.
	dumpPatience = 2 * time.Minute
	// leastBetween is the shortest time between dumps of one process, from the end of one to the next, and afterFailure
	// that after one that has failed: for how long the process was stopped is not known then.
	leastBetween = time.Second
	afterFailure = 10 * time.Second
)

// dumps bounds how often the threads of processes are read. A process may be stopped for that: so of the time that
// passes it stands for no larger a part than its measuring may have of its CPU time. Its budget is left alone: a
// process that stands spends nothing of it, and nobody is to see less of a process since another looks at its threads.
type dumps struct {
	dir  string // where logs are until they are passed on
	made int    // counts them

	mu      sync.Mutex
	running map[uint32]uint32    // by process id: the user who asks
	next    map[uint32]time.Time // by process id: no dump before
}

// dumpFolder makes the folder for logs of threads, without what a killed daemon has left there.
func dumpFolder(state string) (string, error) {
	dir := filepath.Join(state, ".threads")
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o700)); err != nil {
		return "", fmt.Errorf("make a folder for thread dumps: %w", err)
	}
	return dir, nil
}

// begin takes a place for a dump of a process that a user asks for, or says why there is none now.
func (d *dumps) begin(pid, uid uint32, now time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.next, func(_ uint32, at time.Time) bool { return !now.Before(at) })
	next, early := d.next[pid]
	_, being := d.running[pid]
	users, theirs := 0, 0
	for _, who := range d.running {
		if who != 0 {
			users++
		}
		if who == uid {
			theirs++
		}
	}
	switch {
	case being:
		return fmt.Errorf("the threads of process %d are being read: ask again when that is done", pid)
	case early:
		return fmt.Errorf("the threads of process %d were read a moment ago, for which it may have been stopped: ask again in %v", pid, max(next.Sub(now), 10*time.Millisecond).Round(10*time.Millisecond))
	case uid != 0 && theirs > 0:
		return errors.New("the threads of another process are being read for you: ask again when that is done")
	case len(d.running) >= maxDumps, uid != 0 && users >= maxDumps-rootsDumps:
		return fmt.Errorf("the threads of %d processes are being read: ask again when that is done", len(d.running))
	}
	if d.running == nil {
		d.running, d.next = map[uint32]uint32{}, map[uint32]time.Time{}
	}
	d.running[pid] = uid
	return nil
}

// restAfter is for how long a process is left alone that stood for a time, which may be a part of all time; 0 is no bound.
func restAfter(stood time.Duration, part float64) time.Duration {
	if part <= 0 {
		return leastBetween
	}
	return max(leastBetween, time.Duration(float64(stood)/part))
}

// end gives the place back. The next dump of the process is so much later at the earliest.
func (d *dumps) end(pid uint32, now time.Time, wait time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.running, pid)
	d.next[pid] = now.Add(wait)
}

// threads has the threads of a process read.
func (d *Daemon) threads(peer control.Peer, r control.Request, a *control.Answer) (remainder, error) {
	if err := d.engine.Drain(); err != nil { // the process may have ended
		return nil, err
	}
	p, err := d.named(peer, r)
	if err != nil {
		return nil, err
	}
	if err := mayDump(peer, p.PID); err != nil {
		return nil, err
	}
	if err := d.dumps.begin(p.PID, peer.UID, time.Now()); err != nil {
		return nil, err
	}
	d.dumps.made++
	how := Dump{
		PID: p.PID, Path: filepath.Join(d.dumps.dir, fmt.Sprintf("%d-%d", p.PID, d.dumps.made)),
		NoSource: r.NoSource, NoArgs: r.NoArgs || !d.config.Arguments, NoLabels: r.NoLabels,
	}
	part := p.terms.MaxOverhead
	return func(ctx context.Context) ([]*os.File, error) {
		wait := afterFailure
		defer func() { d.dumps.end(how.PID, time.Now(), wait) }()
		defer os.Remove(how.Path)
		ctx, cancel := context.WithTimeoutCause(ctx, dumpPatience, fmt.Errorf("not done within %v", dumpPatience))
		defer cancel()
		notes, err := d.opts.Dump(ctx, how)
		if err != nil {
			return nil, err
		}
		// It may have become a program with other rights meanwhile, or another process may have got the number.
		if err := mayDump(peer, how.PID); err != nil {
			return nil, err
		}
		f := openPiece(peer, segments.Piece{Path: how.Path})
		if f == nil {
			return nil, fmt.Errorf("process %d is not the same any more", how.PID)
		}
		stood, err := stoodOf(f)
		if err != nil {
			f.Close()
			return nil, err
		}
		wait = restAfter(stood, part)
		a.Pieces, a.Notes = []string{filepath.Base(how.Path)}, notes
		return []*os.File{f}, nil
	}, nil
}

// named finds the one process that a request names, among those that are sampled.
func (d *Daemon) named(peer control.Peer, r control.Request) (*proc, error) {
	var found []*proc
	for _, p := range d.procs {
		if peer.Sees(p.UID) && wanted(r, p.PID, p.Service) && !p.image.Exited {
			found = append(found, p)
		}
	}
	switch {
	case len(found) == 0 && r.PID != 0:
		return nil, fmt.Errorf("process %d is not sampled (ccagent ps lists what is)", r.PID)
	case len(found) == 0:
		return nil, fmt.Errorf("no process of service %q is sampled (ccagent ps lists what is)", r.Service)
	case len(found) == 1:
		return found[0], nil
	}
	var pids []uint32
	for _, p := range found {
		pids = append(pids, p.PID)
	}
	slices.Sort(pids)
	const most = 8
	list := strings.Trim(fmt.Sprint(pids[:min(len(pids), most)]), "[]")
	if len(pids) > most {
		list += " …"
	}
	return nil, fmt.Errorf("service %q has %d processes: name one by its id: %s", r.Service, len(pids), list)
}

// mayDump refuses a user other than root processes that have other rights than theirs, or had: those with ids of others, and those that
// the kernel lets root alone look into (PR_SET_DUMPABLE of prctl(2)) since they have changed their ids, or have got ids or capabilities from
// their file, or wish so.
func mayDump(peer control.Peer, pid uint32) error {
	if peer.UID == 0 {
		return nil
	}
	s, err := procfs.ReadStatus(int(pid))
	if err != nil {
		return fmt.Errorf("process %d has ended", pid)
	}
	// The file is the user's while they may look into the process, and root's otherwise.
	var st unix.Stat_t
	if err := unix.Stat(fmt.Sprintf("/proc/%d/environ", pid), &st); err != nil {
		return fmt.Errorf("process %d has ended", pid)
	}
	refused := st.Uid != peer.UID
	for i := range s.UIDs {
		refused = refused || s.UIDs[i] != peer.UID || s.GIDs[i] != s.GIDs[0]
	}
	if refused {
		return fmt.Errorf("process %d has rights that its user has not, or had: root may ask for its threads", pid)
	}
	return nil
}

// maxBefore bounds the events that precede a dump in its log.
const maxBefore = 1 << 16

// stoodOf reads from a dump's log for how long the process was stopped, and leaves the file at its beginning.
func stoodOf(f *os.File) (time.Duration, error) {
	r := eventlog.NewReader(f)
	for n := 0; n < maxBefore && r.Next(); n++ {
		if e, is := r.Record().Event.(*eventlog.ThreadDump); is {
			_, err := f.Seek(0, 0)
			return time.Duration(e.StoodNs), err
		}
	}
	return 0, errors.Join(errors.New("the log has no thread dump"), r.Err())
}
