package daemon

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/daemon/metrics"
	"ccagent/agent/daemon/segments"
	"ccagent/agent/invoker"
	"ccagent/agent/resymbolize"
	"ccagent/agent/sink"
	"ccagent/agent/symbols"
	"ccagent/eventlog"
	"ccagent/internal/credentials"
	"ccagent/internal/pagecache"
	"ccagent/perf"
)

// closing is a piece that is to be closed.
type closing struct {
	log    *sink.Sink
	reason eventlog.EndReason
	seen   []symbols.Seen
	done   chan<- struct{} // closed when it is; no piece, but a mark, if log is nil
	ended  bool            // it says why it ends

	service string
	user    uint32
	// What the closer has counted of it already.
	lost, unwritten uint64
	holds           int // bytes
}

// closer closes pieces, in their order, beside the loop: names of code are looked
// up, which may take seconds for the first piece of a build. It also finishes what has no names: the
// pieces that a killed daemon has left, and those for whose names the disk had no room.
type closer struct {
	opts    Options
	disk    *sink.Disk
	store   *symbols.Store
	metrics *metrics.Metrics   // nil if there are none
	cancel  context.CancelFunc // what another daemon can do
	ended   chan struct{}
	// written are the pieces that were closed last.
	written []string

	mu        sync.Mutex
	more      *sync.Cond
	queue     []closing
	held      []closing // of processes that have ended
	heldSince time.Time // of the first
	gathering bool      // more pieces follow at once
	nameless  []string  // closed pieces
	stuck     []closing
	waiting   []string // nameless ones that could not be written
	over      bool
	problem   error // why the last of stuck or waiting is
	failed    uint64
	closed    uint64 // samples, also of pieces that are to be closed
	holds     int    // bytes that such pieces hold
	pieces    uint64 // that were closed
	lost      uint64
	unwritten uint64 // events
}

// newCloser begins with the pieces that an earlier daemon has left.
func newCloser(o Options, left []string, disk *sink.Disk, store *symbols.Store, m *metrics.Metrics) *closer {
	ctx, cancel := context.WithCancel(context.Background())
	c := &closer{opts: o, disk: disk, store: store, metrics: m, cancel: cancel, ended: make(chan struct{}), nameless: left}
	c.more = sync.NewCond(&c.mu)
	go c.work(context.Background(), ctx)
	return c
}

// add has a piece closed, and with it those that are held, unless it is empty: then there are no names to look up.
func (c *closer) add(one closing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one.log == nil || !one.log.Counts.None() {
		c.release()
	}
	c.queue = append(c.queue, c.count(one))
	c.more.Signal()
}

// count ends and counts a piece, which loses what it holds where all together hold too much: the disk hangs, and
// others follow. The caller holds the lock.
func (c *closer) count(one closing) closing {
	if one.log == nil {
		return one
	}
	// Its time ends here: it may be held for a minute yet, and the next piece goes on from here.
	one.log.Pause(perf.Monotonic())
	if one.holds = one.log.Held(); c.holds+one.holds > holdAll {
		one.log.Drop()
		one.holds = 0
	}
	one.lost, _ = one.log.Losses()
	one.unwritten = one.log.Unwritten()
	c.closed, c.lost, c.unwritten, c.holds = c.closed+one.log.Counts.Samples, c.lost+one.lost, c.unwritten+one.unwritten, c.holds+one.holds
	return one
}

// together has all pieces that f adds closed as one batch. Otherwise the first would be by itself: its names would be
// looked up by a child of their own, in files that the others' child opens again.
func (c *closer) together(f func() error) error {
	gather := func(is bool) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.gathering = is; !is {
			c.more.Signal()
		}
	}
	gather(true)
	defer gather(false)
	return f()
}

// maxHeld bounds the pieces that are held, each of which has a file open, and what it has seen in memory.
const maxHeld = 32

// hold has the last piece of a process closed with the next pieces of others: what one by itself takes is mostly starts of
// the children that name, convert and send it, and a host may start a short-lived program every few seconds. What
// it has is on the disk meanwhile, so that a killed daemon loses no more of it.
func (c *closer) hold(one closing, now time.Time) {
	_ = one.log.Flush() // whoever closes it reports that there is no room
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.held) == 0 {
		c.heldSince = now
	}
	if c.held = append(c.held, c.count(one)); len(c.held) >= maxHeld {
		c.release()
		c.more.Signal()
	}
}

// release has what is held closed. The caller holds the lock.
func (c *closer) release() { c.queue, c.held = append(c.queue, c.held...), nil }

// stop waits until all is closed.
func (c *closer) stop() {
	c.mu.Lock()
	c.over = true
	c.release()
	c.more.Signal()
	c.mu.Unlock()
	c.cancel()
	<-c.ended
}

// ready reports whether there is something to close, or nothing will be. The caller holds the lock.
func (c *closer) ready() bool {
	return !c.gathering && (len(c.queue) > 0 || len(c.nameless) > 0 || c.over)
}

func (c *closer) work(ctx, passing context.Context) {
	defer close(c.ended)
	for {
		c.mu.Lock()
		for !c.ready() {
			c.more.Wait()
		}
		over := c.over
		var batch []closing
		var path string
		switch {
		case len(c.queue) > 0:
			batch, c.queue = c.queue, nil
		case over && len(c.stuck) > 0:
			batch, c.stuck = c.stuck, nil
		case over: // the next daemon does the rest
			c.mu.Unlock()
			return
		default:
			path, c.nameless = c.nameless[0], c.nameless[1:]
		}
		c.mu.Unlock()
		if path != "" {
			c.finishNameless(passing, path)
		}
		c.finishAll(ctx, batch, over)
	}
}

// finishAll names and closes pieces. The names of all programs of one user are looked up together: most of
// what that takes is a process's start, and opening programs' files.
func (c *closer) finishAll(ctx context.Context, batch []closing, last bool) {
	type owner struct{ uid, gid uint32 }
	seen := map[owner][]symbols.Seen{}
	for i := range batch {
		if one := &batch[i]; one.log != nil && !one.log.Counts.None() {
			for _, s := range one.seen {
				of := owner{s.Reader.UID, s.Reader.GID}
				seen[of] = append(seen[of], s)
			}
		}
	}
	problems := map[owner]error{}
	for of, all := range seen {
		if err := c.store.Resolve(ctx, all); err != nil {
			problems[of] = fmt.Errorf("names are missing: %w", err)
		}
	}
	for _, why := range c.store.Problems() {
		c.opts.Log(why)
	}
	if before := c.written; len(before) > 0 && len(seen) > 0 {
		// They are on the disk by now, and engines have them.
		c.disk.Do(func() { _ = pagecache.Drop(before) }) // it is tried once
		c.written = nil
	}
	// Engines are sent the pieces of one user's programs together.
	whole := map[owner][]string{}
	for i := range batch {
		one := &batch[i]
		if one.log != nil {
			var of owner
			if len(one.seen) > 0 {
				of = owner{one.seen[0].Reader.UID, one.seen[0].Reader.GID}
			}
			if path := c.finish(one, problems[of], last); path != "" {
				whole[of] = append(whole[of], path)
			}
		}
		if one.done != nil {
			close(one.done)
		}
	}
	var paths []string
	for _, of := range whole {
		paths = append(paths, of...)
	}
	if c.opts.Closed != nil && len(paths) > 0 {
		c.opts.Closed(paths...)
	}
}

// maxStuck bounds the pieces that wait for room, each of which holds up to 1 MB.
const maxStuck = 64

// again has pieces tried again that could not be written, and those closed that were held for a time.
func (c *closer) again(now time.Time, longest time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now.Sub(c.heldSince) >= longest {
		c.release()
	}
	c.queue = append(c.queue, c.stuck...)
	c.nameless = append(c.nameless, c.waiting...)
	c.stuck, c.waiting = nil, nil
	c.more.Signal()
}

// stuckBy returns how many pieces could not be written when it was tried last, and why.
func (c *closer) stuckBy() (pieces int, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.stuck) + len(c.waiting), c.problem
}

// finish writes names into a piece, which problem says why they are not all known, and closes it. An empty one
// is removed. One that cannot be written is stuck, unless it is the last chance. It returns the path of one that is whole.
func (c *closer) finish(one *closing, problem error, last bool) (whole string) {
	one.log.Attend()
	empty := one.log.Counts.None()
	if !empty {
		if err := one.end(); err != nil && !errors.Is(err, eventlog.ErrNoRoom) && !last {
			c.mu.Lock()
			room := len(c.stuck) < maxStuck
			if room {
				one.done, c.stuck, c.problem = nil, append(c.stuck, *one), err
			}
			c.mu.Unlock()
			if room {
				return ""
			}
		}
	}
	var err error
	if !empty {
		err = errors.Join(problem, c.write(one))
	}
	path := one.log.Path()
	if !empty {
		err = errors.Join(err, one.log.Close())
	} else {
		err = one.log.Discard()
	}
	nameless := !empty && path != "" && noRoom(err)
	lost, _ := one.log.Losses()
	c.mu.Lock()
	c.lost, c.unwritten, c.holds = c.lost+lost-one.lost, c.unwritten+one.log.Unwritten()-one.unwritten, c.holds-one.holds
	c.pieces++
	c.settled(path, nameless, err)
	c.mu.Unlock()
	if err != nil {
		c.opts.Log(fmt.Sprintf("close %s: %v", path, err))
		return ""
	}
	if empty {
		return ""
	}
	c.written = append(c.written, path)
	return path
}

// noRoom reports whether a piece may be finished when there is room.
func noRoom(err error) bool {
	return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) || errors.Is(err, eventlog.ErrNoRoom)
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// settled notes how finishing a piece has ended.
func (c *closer) settled(path string, again bool, err error) {
	switch {
	case again:
		c.waiting, c.problem = append(c.waiting, path), err
	case err != nil:
		c.failed++
	}
	if len(c.stuck)+len(c.waiting) == 0 {
		c.problem = nil
	}
}

// end writes why the piece ends, and all that it holds.
func (one *closing) end() error {
	if !one.ended {
		if err := one.log.Repair(); err != nil {
			return err
		}
		one.ended = true
		if err := one.log.Emit(sink.Now, &eventlog.CaptureEnd{Reason: one.reason}); err != nil {
			return err
		}
	}
	return one.log.Flush()
}

// write writes names into a piece that has all else.
func (c *closer) write(one *closing) error {
	if err := one.end(); err != nil {
		return err
	}
	by := map[string]uint64{}
	emit := func(e eventlog.Event) error {
		if l, ok := e.(*eventlog.Locations); ok {
			for _, loc := range l.Locations {
				by[categoryOf(loc.Category)] += one.log.Seen.Clock(sink.Address{Module: l.Module, Addr: loc.Addr})
			}
		}
		return one.log.Emit(sink.Now, e)
	}
	defer func() { c.measure(one, by) }()
	return errors.Join(c.store.Write(one.seen, emit), one.log.Finish())
}

// categoryOf is what metrics call a category.
func categoryOf(c eventlog.Category) string {
	switch c {
	case eventlog.CategoryHaskell, eventlog.CategorySTG:
		return "mutator"
	case eventlog.CategoryGC:
		return "gc"
	case eventlog.CategoryRTS:
		return "rts"
	case eventlog.CategoryForeign:
		return "foreign"
	case eventlog.CategoryKernel:
		return "kernel"
	}
	return "unresolved"
}

// measure divides a piece's CPU time among the categories of its samples.
func (c *closer) measure(one *closing, by map[string]uint64) {
	counts := &one.log.Counts
	by["kernel"] += counts.InKernel
	var all uint64
	for _, n := range by {
		all += n
	}
	if c.metrics == nil || all == 0 {
		return
	}
	times := make(map[string]time.Duration, len(by))
	for category, n := range by {
		if n > 0 {
			times[category] = time.Duration(float64(counts.CPUNs) * float64(n) / float64(all))
		}
	}
	c.metrics.AddCPU(one.service, one.user, times)
}

// finishNameless names a piece that is closed, or that a killed daemon has left.
func (c *closer) finishNameless(ctx context.Context, path string) {
	o := resymbolize.Options{Memory: symbolMemory, User: "root",
		End: &eventlog.CaptureEnd{Reason: eventlog.EndFailed, Detail: "ccagent daemon ended before it could close the log"}}
	if p, ok := segments.Parse(path); ok {
		// A process in a container that still runs has its files there.
		if root := fmt.Sprintf("/proc/%d/root", p.PID); exists(root) {
			o.Root = root
		}
	}
	_, err := resymbolize.Run(ctx, path, o)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, invoker.ErrReplaced) || ctx.Err() != nil {
		return // it was old enough to be removed, or the next daemon does it
	}
	if errors.Is(err, resymbolize.ErrNoSamples) {
		err = os.Remove(path)
	}
	c.mu.Lock()
	c.settled(path, noRoom(err), err)
	c.mu.Unlock()
	if err != nil {
		c.opts.Log(fmt.Sprintf("finish %s: %v", path, err))
		return
	}
	if c.opts.Closed != nil {
		c.opts.Closed(path)
	}
}

// seenOf lists what a log has seen of each module.
func (d *Daemon) seenOf(log *sink.Sink, owner credentials.Credentials) []symbols.Seen {
	addresses := log.Seen.ByModule()
	var seen []symbols.Seen
	for _, mod := range d.engine.Processes.Modules() {
		if list := addresses[mod.ID]; len(list) > 0 {
			seen = append(seen, symbols.Seen{Module: mod, Addresses: list, Reader: owner})
		}
	}
	return seen
}
