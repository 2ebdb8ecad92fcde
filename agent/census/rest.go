package census

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// ErrFrozen is returned where a collection may be under way in a process that is frozen: there is no use in trying again until it is thawed.
var ErrFrozen = errors.New("the program is frozen where a collection may be under way, which moves what is alive: it has a census when its control group is thawed")

// restTries is how often a program is stopped for a census at rest at the least, lateTries how often besides that where not all of its threads stop in time, as on a
// busy machine, and restPause how long it runs between.
const (
	restTries = 60
	lateTries = 240
	restPause = 5 * time.Millisecond
)

// AtRest stops all threads of the program where they are, and counts what is in its heap, whether it
// is alive or garbage. No collection may be under way, so it lets them go on and tries again if one
// may be, or if one has moved what was to be copied beside the running program.
func (r *Reader) AtRest(ctx context.Context, o Options) (*Census, error) {
	return tried(ctx, o.Wait, func() (*Census, error) { return r.atRest(ctx, o) })
}

// tried tries a census again and again while a collection keeps it from being taken, for a time or as often as there are tries, whichever is more: some
// programs collect nearly all the time.
func tried(ctx context.Context, wait time.Duration, take func() (*Census, error)) (c *Census, err error) {
	until := time.Now().Add(wait)
	for tries, late := 0, 0; tries < restTries && late < lateTries || time.Now().Before(until); {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if c, err = take(); errors.Is(err, hold.ErrLate) {
			late++
		} else {
			tries++
		}
		if !errors.Is(err, ErrBusy) && !errors.Is(err, ErrContradiction) && !errors.Is(err, ErrCollected) && !errors.Is(err, hold.ErrThawed) {
			return c, err
		}
		rest(ctx)
	}
	return nil, err
}

// rest lets the program run before it is stopped again.
func rest(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(restPause):
	}
}

// stand stops all threads where no collection is under way, which is the census's time. Where it is to follow pointers, it reads
// what threads hold that run.
func (r *Reader) stand(s *hold.Still, census *Census, o Options) error {
	threads, err := r.stopAll(s, stopping(o.MaxPause))
	if err != nil {
		return err
	}
	running, err := r.noCollection(threads)
	if s.Frozen() && errors.Is(err, ErrBusy) {
		return ErrFrozen
	}
	if err != nil {
		return err
	}
	census.Time = perf.Monotonic()
	census.Running, census.Unknown = nil, len(running)
	if o.Keep > 0 {
		census.Running, census.Unknown = r.running(running, threads)
	}
	return nil
}

func (r *Reader) atRest(ctx context.Context, o Options) (*Census, error) {
	frozen := procfs.Frozen(r.PID)
	if frozen {
		o.MaxPause = 0 // it does not wait for the census
	}
	c, later, err := r.prepare(o)
	if err != nil {
		return nil, err
	}
	defer c.free()
	census := newCensus(r, o)
	census.AtRest = true
	for try := 1; ; try++ {
		census.Pause, err = standing(r.PID, frozen, func(s *hold.Still) error {
			if o.MaxPause > 0 {
				overhead.Hasten() // until this OS thread ends: it has to let the program go on, too
			}
			since := perf.Monotonic()
			if err := r.stand(s, census, o); err != nil {
				return err
			}
			if o.Keep > 0 && census.Unknown > 0 && try < knownTries && !r.run.never && !frozen {
				return errUnknown
			}
			later, err = c.look(ctx, r, census, o, since, later)
			return err
		})
		r.Stops.add(census.Pause, o.MaxPause)
		if !errors.Is(err, errUnknown) {
			break
		}
		if try == 1 { // before the program is stopped once more for it
			r.run.never = !r.run.can(r.Memory)
		}
		if rest(ctx); ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	if err != nil {
		return nil, err
	}
	if err := c.finish(ctx, r, census, o, later); err != nil {
		return nil, err
	}
	return census, nil
}

// standing is hold.Stilled, or for a process that is frozen hold.WhileFrozen, which stops nothing.
func standing(pid int, frozen bool, f func(*hold.Still) error) (pause time.Duration, err error) {
	if frozen {
		return 0, hold.WhileFrozen(pid, f)
	}
	return hold.Stilled(pid, f)
}

// knownTries bounds how often a program is stopped to learn what its running threads hold. That is read from their registers,
// which at some moments do not have it: while a thread begins to run, for example.
const knownTries = 5

var errUnknown = errors.New("what a thread that runs holds is not known")

// stopPart is the part of the pause in which all threads have to have stopped, and leastStopping how long they have at the least. Where
// they have not, they are let go on at once, and stopped again later: a thread that waits for a CPU may get it in some tens of milliseconds, for which the others
// would stand.
const (
	stopPart      = 0.5
	leastStopping = time.Millisecond
)

// stopping is for how long a pause of which the limit is given waits for threads to stop; 0 is no bound.
func stopping(limit time.Duration) time.Duration {
	if limit == 0 {
		return 0
	}
	return max(time.Duration(stopPart*float64(limit)), leastStopping)
}

// stopAll stops all threads, also those that others start meanwhile, within a time from the first on that is asked to, if that is not 0.
func (r *Reader) stopAll(s *hold.Still, within time.Duration) (all map[int]*stopped, err error) {
	all = map[int]*stopped{}
	for fresh := true; fresh; {
		fresh = false
		list, err := procfs.Threads(r.PID)
		if err != nil {
			return nil, fmt.Errorf("stop process %d: %w", r.PID, err)
		}
		var tids []int
		slept := map[int]bool{}
		for _, t := range list {
			if all[t.TID] != nil || t.State == 'Z' || t.State == 'X' {
				continue
			}
			if r.looked != nil {
				r.looked(t.TID)
			}
			tids, slept[t.TID] = append(tids, t.TID), t.State == 'S' || s.Frozen()
		}
		each, err := s.StopAll(tids, within)
		if traced := (*hold.TracedError)(nil); errors.As(err, &traced) {
			return nil, err
		}
		if err != nil && within > 0 {
			return nil, fmt.Errorf("%w: %w, as on a busy machine: allow a longer pause with --max-pause", ErrBusy, err)
		}
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrBusy, err)
		}
		for tid, registers := range each {
			// It may have gone on between the look at its state and its stop.
			all[tid], fresh = &stopped{registers, slept[tid] && registers.Waits}, true
		}
	}
	if len(all) == 0 {
		return nil, hold.ErrEnded
	}
	return all, nil
}

// noCollection makes sure that no collection is under way in a program whose threads are all stopped.
// One needs all capabilities, so none is if a capability runs Haskell code, or belongs to no OS
// thread; and none works if all threads waited. running are the BaseRegs of capabilities that run Haskell code, each once.
func (r *Reader) noCollection(threads map[int]*stopped) (running []uint64, err error) {
	all, err := r.capabilities()
	if err != nil {
		return nil, fmt.Errorf("read the run-time system's capabilities: %w", err)
	}
	free := false
	for _, c := range all {
		var in [1]byte
		if _, err := r.Memory.ReadAt(in[:], int64(c+ghc.BaseOfCapability+ghc.BaseInHaskell)); err != nil {
			return nil, err
		}
		task, err := r.Memory.Word(c + ghc.BaseOfCapability + ghc.BaseRunningTask)
		if err != nil {
			return nil, err
		}
		if in[0] != 0 {
			running = append(running, c+ghc.BaseOfCapability)
		}
		free = free || r.threaded && task == 0
	}
	slices.Sort(running)
	running = slices.Compact(running)
	if len(running) > 0 || free {
		return running, nil
	}
	for _, t := range threads {
		if !t.waited {
			return nil, ErrBusy
		}
	}
	return nil, nil
}

// A current is a list of blocks in which a capability allocates, and the one that it fills, by the addresses of their
// descriptors; last is 0 for a list that was filled and given up for another.
type current struct{ first, last uint64 }

// currents lists where capabilities allocate, and have since the last collection.
func (r *Reader) currents() ([]current, error) {
	capabilities, err := r.capabilities()
	if err != nil {
		return nil, err
	}
	all := make([]current, len(capabilities))
	used := map[uint64]bool{}
	for i, c := range capabilities {
		base := c + ghc.BaseOfCapability
		nursery, err := r.Memory.Word(base + ghc.BaseNursery)
		if err != nil {
			return nil, err
		}
		used[nursery] = true
		if all[i].last, err = r.Memory.Word(base + ghc.BaseCurrentNursery); err != nil {
			return nil, err
		}
		if all[i].first, err = r.Memory.Word(nursery + ghc.NurseryFirst); err != nil {
			return nil, err
		}
	}
	return r.givenUp(all, used)
}

// givenUp adds the nurseries that were filled and given up for others (+RTS -n): those before the one that is given out next which
// no capability has. With several NUMA nodes, which take turns in the array, none is added.
func (r *Reader) givenUp(all []current, used map[uint64]bool) ([]current, error) {
	if r.vars.NextNursery == 0 || r.vars.Nurseries == 0 {
		return all, nil
	}
	var next [2]uint64
	if err := r.Memory.Words(r.vars.NextNursery, next[:]); err != nil {
		return nil, err
	}
	array, err := r.Memory.Word(r.vars.Nurseries)
	if err != nil {
		return nil, err
	}
	lists, err := r.nurseries()
	if err != nil {
		return nil, err
	}
	if next[1] != 0 || next[0] > uint64(len(lists)) {
		return all, nil
	}
	for i, l := range lists[:next[0]] {
		if !used[array+nurserySize*uint64(i)] {
			all = append(all, current{first: l.First})
		}
	}
	return all, nil
}

// filled finds the blocks of nurseries that have been allocated in since the last collection, by their starts: of the
// list that each capability fills, those up to the current one. The blocks behind it still say what they had
// before. Only a collection changes the lists and what lies before the current blocks, so they can be followed
// when the program runs on, too. After a few megablocks it ends at a time, CLOCK_MONOTONIC in ns, with the error ErrPause, where
// that is not 0, and when ctx is done.
func (r *Reader) filled(ctx context.Context, d *Descriptors, lists []current, until uint64) (map[uint64]*heap.Group, error) {
	blocks := map[uint64]*heap.Group{}
	var known recent
	most := min(d.Megablocks*ghc.BlocksPerMegablock, maxGroups)
	for _, l := range lists {
		for at := l.first; at != 0 || l.last != 0; {
			start := heap.DescribedBy(at)
			reads := known.reads
			var g *heap.Group
			var err error
			if at != 0 && start >= d.Space[0] && start < d.Space[1] && uint64(len(blocks)) < most {
				if g, err = r.group(&known, start); err != nil {
					return nil, err
				}
			}
			if g == nil || blocks[start] != nil {
				return nil, fmt.Errorf("%w: its list of blocks does not lead to the one that is filled", ErrContradiction)
			}
			if known.reads > leastDrawn && known.reads != reads {
				if until != 0 && perf.Monotonic() > until {
					return nil, ErrPause
				}
				if ctx.Err() != nil {
					return nil, ctx.Err()
				}
			}
			blocks[start] = g
			if at == l.last {
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
		if d.Nonmoving && g == d.Oldest() {
			continue // it does not count what is in segments
		}
		if small, _ := d.words(g); small < g.Words || small-g.Words > slackBlocks*uint64(1+len(d.Filling))*ghc.BlockBytes/8 {
			return fmt.Errorf("%w: generation %d has %d words in small objects, where its blocks have %d", ErrContradiction, g.Number, g.Words, small)
		}
	}
	return nil
}
