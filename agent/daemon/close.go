package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"ccagent/agent/sink"
	"ccagent/agent/symbols"
	"ccagent/eventlog"
	"ccagent/internal/credentials"
)

// closing is a piece that is to be closed.
type closing struct {
	log    *sink.Sink
	reason eventlog.EndReason
	seen   []symbols.Seen
	done   chan<- struct{} // closed when it is; no piece, but a mark, if log is nil
}

// closer closes pieces, one at a time and in their order, beside the loop: names of code are looked
// up, which may take seconds for the first piece of a build.
type closer struct {
	opts   Options
	store  *symbols.Store
	cancel context.CancelFunc
	ended  chan struct{}

	mu     sync.Mutex
	more   *sync.Cond
	queue  []closing
	over   bool
	open   map[string]bool // paths
	failed uint64
	closed uint64 // samples
	lost   uint64
}

func newCloser(o Options, store *symbols.Store) *closer {
	ctx, cancel := context.WithCancel(context.Background())
	c := &closer{opts: o, store: store, cancel: cancel, ended: make(chan struct{}), open: map[string]bool{}}
	c.more = sync.NewCond(&c.mu)
	go c.work(ctx)
	return c
}

func (c *closer) add(one closing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if one.log != nil {
		c.open[one.log.File().Path] = true
	}
	c.queue = append(c.queue, one)
	c.more.Signal()
}

// paths returns the pieces that are not closed yet.
func (c *closer) paths() map[string]bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := make(map[string]bool, len(c.open))
	for path := range c.open {
		all[path] = true
	}
	return all
}

// stop waits until all is closed.
func (c *closer) stop() {
	c.mu.Lock()
	c.over = true
	c.more.Signal()
	c.mu.Unlock()
	<-c.ended
	c.cancel()
}

func (c *closer) work(ctx context.Context) {
	defer close(c.ended)
	for {
		c.mu.Lock()
		for len(c.queue) == 0 && !c.over {
			c.more.Wait()
		}
		if len(c.queue) == 0 {
			c.mu.Unlock()
			return
		}
		one := c.queue[0]
		c.queue = c.queue[1:]
		c.mu.Unlock()
		if one.log != nil {
			c.finish(ctx, &one)
		}
		if one.done != nil {
			close(one.done)
		}
	}
}

// finish names and closes a piece. An empty one is removed.
func (c *closer) finish(ctx context.Context, one *closing) {
	path := one.log.File().Path
	samples := one.log.Counts.Samples
	lost, _ := one.log.Losses()
	var err error
	if samples == 0 {
		err = one.log.File().Remove()
	} else {
		err = c.write(ctx, one)
	}
	err = errors.Join(err, one.log.Close())
	c.mu.Lock()
	delete(c.open, path)
	c.closed, c.lost = c.closed+samples, c.lost+lost
	if err != nil {
		c.failed++
	}
	c.mu.Unlock()
	if err != nil {
		c.opts.Log(fmt.Sprintf("close %s: %v", path, err))
		return
	}
	if samples > 0 && c.opts.Closed != nil {
		c.opts.Closed(path)
	}
}

func (c *closer) write(ctx context.Context, one *closing) error {
	log := one.log
	if err := log.Emit(sink.Now, &eventlog.CaptureEnd{Reason: one.reason}); err != nil {
		return err
	}
	if err := log.Flush(); err != nil { // whole, though without names, whatever happens
		return err
	}
	resolveErr := c.store.Resolve(ctx, one.seen)
	if resolveErr != nil {
		resolveErr = fmt.Errorf("names are missing: %w", resolveErr)
	}
	emit := func(e eventlog.Event) error { return log.Emit(sink.Now, e) }
	return errors.Join(resolveErr, c.store.Write(one.seen, emit), log.Finish())
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
