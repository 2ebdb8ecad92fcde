package series

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/cilium/ebpf"

	"ccagent/agent/census"
	"ccagent/agent/hold"
	"ccagent/agent/overhead"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// programOf gives the program of a probe.
type programOf func() *ebpf.Program

// worker takes one census beside the capture.
type worker struct {
	stop func() // waiting; what was copied is counted
	done chan taken
}

// taken is a census, or why there is none.
type taken struct {
	time    uint64 // at which the program was held, CLOCK_MONOTONIC
	begun   uint64 // when it was waited for, or held last
	bands   []census.Band
	kinds   *census.Kinds
	how     *eventlog.HeapCensus
	draw    *census.Draw                 // nil if all was counted
	missed  map[eventlog.HeapMiss]uint64 // collections that were tried before
	stood   time.Duration                // of all of these
	longest time.Duration
	stops   uint64 // how often the program was stopped for these
	over    uint64 // how often for longer than is allowed
	cpu     uint64 // of the agent, ns
	err     error
}

// room bounds how much of a heap is copied before it is counted. Of a larger one, parts are copied and
// counted in turn.
const room = 256 << 20

// hostRoom is room where the processes of a host are counted, by a daemon that is to stay small.
const hostRoom = 32 << 20

// start has a census taken at the next major collection.
func (s *series) start(i *image) *worker {
	ctx, cancel := context.WithCancel(context.Background())
	programs := s.programs
	w := &worker{done: make(chan taken, 1), stop: func() {
		cancel()
		_ = programs.Wake() // who does not wait for a collection is not to be woken
	}}
	job := &job{programs: programs, reader: i.reader, site: i.site, pid: i.im.PID, maxPause: s.host.MaxPause, room: room, hurry: i.hurry, atRest: i.atRest}
	if i.budget != nil {
		job.room = hostRoom
	}
	go hold.OnOwnThread(func() {
		before := overhead.ThreadCPU()
		t := job.run(ctx)
		t.cpu = overhead.ThreadCPU() - before + job.holding.Load()
		cancel()
		w.done <- t
	})
	return w
}

// job is one census.
type job struct {
	programs *bpf.Leaders
	reader   *census.Reader
	site     census.Site
	pid      uint32
	maxPause time.Duration
	room     uint64
	hurry    bool // the heap was collected again before it was copied, the last time
	atRest   bool // the program is counted where it is stopped
	taken    taken
	holding  atomic.Uint64 // CPU time of threads of package hold, ns
}

func (j *job) run(ctx context.Context) taken {
	j.taken = taken{begun: perf.Monotonic(), missed: map[eventlog.HeapMiss]uint64{}}
	t := &j.taken
	o := census.Options{MaxPause: j.maxPause, Room: j.room, Strict: true, Hurry: j.hurry && j.maxPause > 0}
	c, err := j.take(ctx, o)
	if err != nil {
		t.err = err
		return *t
	}
	t.time = c.Time
	t.bands, t.kinds = c.Detailed(j.reader.Profiled, j.reader.Tables.Name), c.Kinds(j.reader.Profiled)
	slices.SortFunc(t.bands, func(a, b census.Band) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name)) })
	t.how, t.draw = c.How(j.pid, t.bands), c.Draw
	return *t
}

// take takes the census at the end of a collection, or where the program is.
func (j *job) take(ctx context.Context, o census.Options) (*census.Census, error) {
	if !j.atRest {
		return j.reader.Take(ctx, o, j.hold)
	}
	before := j.reader.Stops
	j.reader.Stops.Longest = 0
	c, err := j.reader.AtRest(ctx, o)
	after := j.reader.Stops
	j.taken.stood, j.taken.longest = after.Sum-before.Sum, after.Longest
	j.taken.stops, j.taken.over = uint64(after.Number-before.Number), uint64(after.Over-before.Over)
	return c, err
}

// lateMost is how many collections in a row may be over before their leaders are traced, until all
// threads are traced ahead of one; aheadFor is for how long.
const (
	lateMost = 3
	aheadFor = time.Second
)

// hold holds the leader of the next major collection that it can.
func (j *job) hold(ctx context.Context, held func(since uint64) error) error {
	oldest, err := j.reader.OldestGeneration()
	if err != nil {
		return fmt.Errorf("read the heap's generations: %w", err)
	}
	timed := func(since uint64) error {
		j.taken.begun = since
		err := held(since)
		pause := time.Duration(perf.Monotonic() - since)
		j.taken.stood += pause
		j.taken.longest = max(j.taken.longest, pause)
		j.taken.stops++
		if j.maxPause > 0 && pause > j.maxPause {
			j.taken.over++
		}
		return err
	}
	for late := 0; ; {
		if late < lateMost {
			err = j.holdLeader(ctx, oldest, timed)
		} else if err = j.holdAhead(ctx, oldest, timed); errors.Is(err, context.DeadlineExceeded) {
			late = 0
			continue
		}
		if !errors.Is(err, hold.ErrPassed) || ctx.Err() != nil {
			return err
		}
		late++
		j.taken.missed[eventlog.HeapMissLate]++
	}
}

// holdAhead traces all threads until one of them leads a collection.
func (j *job) holdAhead(ctx context.Context, oldest uint32, held func(since uint64) error) error {
	ctx, cancel := context.WithTimeout(ctx, aheadFor)
	defer cancel()
	gate := hold.Gate{Offset: j.site.Collect, Least: oldest, Hasten: overhead.Hasten}
	return hold.Gated(ctx, int(j.pid), j.site.Path, j.site.Resurrect, gate, func(_ int, since uint64) error {
		defer j.counted()()
		return held(since)
	})
}

// holdLeader waits for a major collection to begin, and traces the thread that leads it.
func (j *job) holdLeader(ctx context.Context, oldest uint32, held func(since uint64) error) error {
	signal, err := hold.SignalFor(int(j.pid))
	if err != nil {
		return err
	}
	wish := bpf.LeaderWish{Due: perf.Monotonic(), Least: oldest, Signal: signal}
	if err := j.programs.Wish(j.pid, wish); err != nil {
		return err
	}
	defer func() { _ = j.programs.Wish(j.pid, bpf.LeaderWish{Due: never, Least: oldest, Signal: signal}) }() // fails only for a process that is gone
	return hold.UnlessStuck(ctx, int(j.pid), func(begin func() error) error {
		defer j.counted()()
		// From here until it is let go, the program may stand because of this thread.
		defer overhead.Hasten()()
		return j.holdNext(ctx, wish, func(since uint64) error {
			if err := begin(); err != nil {
				return err
			}
			return held(since)
		})
	})
}

// counted begins to count what CPU time the calling thread uses for the census, and returns what ends it.
func (j *job) counted() (end func()) {
	before := overhead.ThreadCPU()
	return func() { j.holding.Add(overhead.ThreadCPU() - before) }
}

// holdNext holds the thread that leads the next major collection, by the wish that the programs have. Where the process is frozen, it goes
// on when nobody waits for it any more, and changes nothing then that others use.
func (j *job) holdNext(ctx context.Context, wish bpf.LeaderWish, held func(since uint64) error) (err error) {
	var leader bpf.Leader
	for leader.PID != j.pid {
		if leader, err = j.programs.Next(time.Time{}); ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil && !errors.Is(err, bpf.ErrNoLeader) {
			return err
		}
	}
	state := func() (bpf.LeaderState, error) { return j.programs.State(j.pid) }
	at := hold.Ambush{
		Signal: wish.Signal,
		Arm: func() error {
			wish.Armed = leader.Major
			return j.programs.Wish(j.pid, wish)
		},
		Come: func() (bool, bool, error) {
			st, err := state()
			return st.Held == leader.Major, st.Passed >= leader.Major, err
		},
	}
	return hold.Thread(ctx, int(j.pid), int(leader.TID), at, func() error {
		st, err := state()
		if err != nil {
			return err
		}
		return held(st.Time)
	})
}
