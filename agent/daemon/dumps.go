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
)

// Dump asks for a log of what the threads of a process do, or of what its heap has.
type Dump struct {
	PID  uint32
	Path string // of the log
	// Heap is how its heap is counted; nil where its threads are asked for.
	Heap *Census
	// NoSource, NoArgs and NoLabels leave out what may be private (control.Request).
	NoSource, NoArgs, NoLabels bool
}

// Dumped is what a Dump has taken.
type Dumped struct {
	Notes []string      // lines for who has asked for it
	Stood time.Duration // for how long the process was stopped altogether
}

// Census is how a heap is counted.
type Census struct {
	MaxPause time.Duration // for which the process may be stopped at once; 0 is no bound
	Wait     time.Duration // for a major collection
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
	// defaultPause is for how long a census may stop a process where the request does not say, and longestPause and longestWait bound what it
	// may say.
	defaultPause = 5 * time.Millisecond
	longestPause = time.Minute
	longestWait  = time.Minute
)

// dumps bounds how often the threads and heaps of processes are read. A process may be stopped for that: so of the time that
// passes it stands for no larger a part than its measuring may have of its CPU time. Its budget is left alone: a
// process that stands spends nothing of it, and nobody is to see less of a process since another looks into it.
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
		return fmt.Errorf("the threads or the heap of process %d are being read: ask again when that is done", pid)
	case early:
		return fmt.Errorf("the threads or the heap of process %d were read a moment ago, for which it may have been stopped: ask again in %v", pid, max(next.Sub(now), 10*time.Millisecond).Round(10*time.Millisecond))
	case uid != 0 && theirs > 0:
		return errors.New("the threads or the heap of another process are being read for you: ask again when that is done")
	case len(d.running) >= maxDumps, uid != 0 && users >= maxDumps-rootsDumps:
		return fmt.Errorf("threads or heaps of %d processes are being read: ask again when that is done", len(d.running))
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

// censusOf is how a request wants a heap to be counted.
func censusOf(r control.Request) (*Census, error) {
	c := &Census{MaxPause: defaultPause, Wait: longestWait}
	if !(r.Wait >= 0 && r.Wait <= longestWait.Seconds()) {
		return nil, fmt.Errorf("wait for 0 s to %v for a major collection, not for %v s", longestWait, r.Wait)
	}
	c.Wait = time.Duration(r.Wait * float64(time.Second))
	if r.MaxPause != nil {
		if !(*r.MaxPause >= 0 && *r.MaxPause <= longestPause.Seconds()) {
			return nil, fmt.Errorf("a pause is up to %v, or 0 for no bound, not %v s", longestPause, *r.MaxPause)
		}
		c.MaxPause = time.Duration(*r.MaxPause * float64(time.Second))
	}
	return c, nil
}

// dump has the threads of a process read, or its heap counted.
func (d *Daemon) dump(peer control.Peer, r control.Request, a *control.Answer) (remainder, error) {
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
	how := Dump{PID: p.PID, NoSource: r.NoSource, NoArgs: r.NoArgs || !d.config.Arguments, NoLabels: r.NoLabels}
	if r.Command == control.CommandHeap {
		if how.Heap, err = censusOf(r); err != nil {
			return nil, err
		}
	}
	if err := d.dumps.begin(p.PID, peer.UID, time.Now()); err != nil {
		return nil, err
	}
	d.dumps.made++
	how.Path = filepath.Join(d.dumps.dir, fmt.Sprintf("%d-%d", p.PID, d.dumps.made))
	part := p.terms.MaxOverhead
	return func(ctx context.Context) ([]*os.File, error) {
		wait := afterFailure
		defer func() { d.dumps.end(how.PID, time.Now(), wait) }()
		defer os.Remove(how.Path)
		ctx, cancel := context.WithTimeoutCause(ctx, dumpPatience, fmt.Errorf("not done within %v", dumpPatience))
		defer cancel()
		done, err := d.opts.Dump(ctx, how)
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
		wait = restAfter(done.Stood, part)
		a.Pieces, a.Notes = []string{filepath.Base(how.Path)}, done.Notes
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
		return fmt.Errorf("process %d has rights that its user has not, or had: root may ask for that", pid)
	}
	return nil
}
