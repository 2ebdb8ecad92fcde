package census

import (
	"context"
	"errors"
	"fmt"
	"time"

	"ccagent/agent/hold"
	"ccagent/agent/overhead"
	"ccagent/agent/procfs"
	"ccagent/heap"
	"ccagent/internal/ghc"
	"ccagent/perf"
)

// ErrBusy is returned where a collection may have been under way whenever the program was stopped, or
// not all of its threads stopped in time.
var ErrBusy = errors.New("the program could not be stopped where no collection is under way: it runs C code for the run-time system, or is stopped itself (kill -CONT)")

// restTries is how often a program is stopped for a census at rest, and restPause how long it runs
// between.
const (
	restTries = 20
	restPause = 5 * time.Millisecond
)

// AtRest stops all threads of the program where they are, and counts what is in its heap, whether it
// is alive or garbage. No collection may be under way, so it lets them go on and tries again if one
// may be, or if one has moved what was to be copied beside the running program.
func (r *Reader) AtRest(ctx context.Context, o Options) (*Census, error) {
	return tried(ctx, func() (*Census, error) { return r.atRest(ctx, o) })
}

// Blocks is like AtRest, of any heap, and counts no closures: it finds out of what blocks are, and which of them are in memory.
func (r *Reader) Blocks(ctx context.Context) (*Census, error) {
	return tried(ctx, func() (*Census, error) {
		census := newCensus(r, Options{Residence: true})
		census.AtRest = true
		var err error
		census.Pause, err = hold.Stilled(r.PID, func(s *hold.Still) error {
			if err := r.stand(s, census); err != nil {
				return err
			}
			var err error
			if census.Descriptors, err = r.anyDescriptors(); err != nil {
				return err
			}
			census.Residence, err = r.residence(census.Descriptors)
			return err
		})
		return census, err
	})
}

// tried tries a census again and again while a collection keeps it from being taken.
func tried(ctx context.Context, take func() (*Census, error)) (c *Census, err error) {
	for range restTries {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if c, err = take(); !errors.Is(err, ErrBusy) && !errors.Is(err, ErrContradiction) && !errors.Is(err, ErrCollected) {
			return c, err
		}
		time.Sleep(restPause)
	}
	return nil, err
}

// stand stops all threads where no collection is under way, which is the census's time.
func (r *Reader) stand(s *hold.Still, census *Census) error {
	waiting, err := r.stopAll(s)
	if err != nil {
		return err
	}
	if err := r.noCollection(waiting); err != nil {
		return err
	}
	census.Time = perf.Monotonic()
	return nil
}

func (r *Reader) atRest(ctx context.Context, o Options) (*Census, error) {
	c, later, err := r.prepare(o)
	if err != nil {
		return nil, err
	}
	defer c.free()
	census := newCensus(r, o)
	census.AtRest = true
	census.Pause, err = hold.Stilled(r.PID, func(s *hold.Still) error {
		if o.MaxPause > 0 {
			defer overhead.Hasten()()
		}
		since := perf.Monotonic()
		if err := r.stand(s, census); err != nil {
			return err
		}
		later, err = c.look(r, census, o, since, later)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := c.finish(ctx, r, census, o, later); err != nil {
		return nil, err
	}
	return census, nil
}

// stopAll stops all threads, also those that others start meanwhile, and says which of them waited in
// the kernel.
func (r *Reader) stopAll(s *hold.Still) (waiting map[int]bool, err error) {
	waiting = map[int]bool{}
	for fresh := true; fresh; {
		fresh = false
		list, err := procfs.Threads(r.PID)
		if err != nil {
			return nil, fmt.Errorf("stop process %d: %w", r.PID, err)
		}
		for _, t := range list {
			if _, known := waiting[t.TID]; known || t.State == 'Z' || t.State == 'X' {
				continue
			}
			if _, err := s.Stop(t.TID); err != nil {
				var traced *hold.TracedError
				switch {
				case errors.Is(err, hold.ErrEnded):
					continue
				case errors.As(err, &traced):
					return nil, err
				}
				return nil, fmt.Errorf("%w: %w", ErrBusy, err) // on a busy machine it may not get its turn in time
			}
			waiting[t.TID], fresh = t.State == 'S', true
		}
	}
	if len(waiting) == 0 {
		return nil, hold.ErrEnded
	}
	return waiting, nil
}

// noCollection makes sure that no collection is under way in a program whose threads are all stopped.
// One needs all capabilities, so none is if a capability runs Haskell code, or belongs to no OS
// thread; and none works if all threads waited.
func (r *Reader) noCollection(waiting map[int]bool) error {
	all, err := r.capabilities()
	if err != nil {
		return fmt.Errorf("read the run-time system's capabilities: %w", err)
	}
	for _, c := range all {
		var in [1]byte
		if _, err := r.Memory.ReadAt(in[:], int64(c+ghc.BaseOfCapability+ghc.BaseInHaskell)); err != nil {
			return err
		}
		task, err := r.Memory.Word(c + ghc.BaseOfCapability + ghc.BaseRunningTask)
		if err != nil {
			return err
		}
		if in[0] != 0 || r.threaded && task == 0 {
			return nil
		}
	}
	for _, w := range waiting {
		if !w {
			return ErrBusy
		}
	}
	return nil
}

// filled finds the blocks of nurseries that have been allocated in since the last collection, by their starts: of the
// list that each capability fills, those up to the current one. The blocks behind it still say what they had
// before. A list that was filled to its end and given up for another (+RTS -n) is not known from one that was not
// begun, and not counted. The program stands: blocks in more than a few megablocks are found until a time at the most, CLOCK_MONOTONIC in ns;
// 0 is no bound.
func (r *Reader) filled(d *Descriptors, until uint64) (map[uint64]*heap.Group, error) {
	capabilities, err := r.capabilities()
	if err != nil {
		return nil, err
	}
	blocks := map[uint64]*heap.Group{}
	known := map[uint64]map[uint64]*heap.Group{}
	most := min(d.Megablocks*ghc.BlocksPerMegablock, maxGroups)
	for _, c := range capabilities {
		base := c + ghc.BaseOfCapability
		nursery, err := r.Memory.Word(base + ghc.BaseNursery)
		if err != nil {
			return nil, err
		}
		current, err := r.Memory.Word(base + ghc.BaseCurrentNursery)
		if err != nil {
			return nil, err
		}
		at, err := r.Memory.Word(nursery + ghc.NurseryFirst)
		if err != nil {
			return nil, err
		}
		for at != 0 {
			start := heap.DescribedBy(at)
			var g *heap.Group
			if start >= d.Space[0] && start < d.Space[1] && uint64(len(blocks)) < most {
				if g, err = r.group(known, start); err != nil {
					return nil, err
				}
			}
			if g == nil || blocks[start] != nil {
				return nil, fmt.Errorf("%w: its list of blocks does not lead to the one that is filled", ErrContradiction)
			}
			if len(known) > leastDrawn && until != 0 && perf.Monotonic() > until {
				return nil, ErrPause
			}
			blocks[start] = g
			if at == current {
				break
			}
			at = g.Link
		}
	}
	return blocks, nil
}

// Nursery finds the blocks of nurseries, by their starts, along the links of their descriptors. A block is
// in one nursery at the most, so that a list that leads back to itself ends.
func (d *Descriptors) Nursery(lists []Nursery) map[uint64]bool {
	blocks := map[uint64]bool{}
	for _, n := range lists {
		at := n.First
		for range n.Blocks {
			start := heap.DescribedBy(at)
			g := d.Group(start)
			if at == 0 || g == nil || blocks[start] {
				break
			}
			blocks[start] = true
			at = g.Link
		}
	}
	return blocks
}

// checkRest compares groups of blocks with what the generations but the youngest say, between
// collections: only large objects come to them meanwhile.
func (d *Descriptors) checkRest() error {
	for i := 1; i < len(d.Generations); i++ {
		g := &d.Generations[i]
		if small, _ := d.words(g); small < g.Words || small-g.Words > slackBlocks*uint64(1+len(d.Filling))*ghc.BlockBytes/8 {
			return fmt.Errorf("%w: generation %d has %d words in small objects, where its blocks have %d", ErrContradiction, g.Number, g.Words, small)
		}
	}
	return nil
}
