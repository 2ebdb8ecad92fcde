package dump

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ccagent/agent/hold"
	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/procfs"
	"ccagent/heap/threads"
)

// Dump is what the threads of a process did at a moment.
type Dump struct {
	*threads.Reading
	OS []OSThread
	// Stops is how often OS threads were stopped that ran, Stood for how long altogether. Pause is the longest of these times, and
	// Stopped how many threads stood at once at the most, also those that were found to run no Haskell code.
	Stops        int
	Stood, Pause time.Duration
	Stopped      int
	// Took is how long the reading took that is shown, Attempts how many there were.
	Took     time.Duration
	Attempts int
	// Searched is set when the lists of threads were found without symbols.
	Searched bool
	// Notes say in words what could not be read.
	Notes []string
}

// OSThread is an OS thread, with the Haskell thread that it works for.
type OSThread struct {
	procfs.Thread
	Role Role
	TSO  int // index in Reading.Threads; −1 for none
}

// Role is what an OS thread does for a Haskell thread.
type Role uint8

const (
	NoRole  Role = iota
	Runs         // runs it
	Calls        // is in a safe foreign call for it
	BoundTo      // runs no other, and waits
)

// Errors of a process that cannot be read.
var (
	ErrNotHaskell = errors.New("it is no Haskell program that GHC compiled, or its run-time system is not recognised")
	ErrBusy       = errors.New("a collection ran at each attempt to read it; try again, or while it has less to do")
	ErrCollecting = errors.New("the process is stopped, perhaps in the middle of a collection, when threads are moved; let it go on (kill -CONT) and try again")
	// ErrFrozenCollecting is ErrCollecting for a process that is frozen.
	ErrFrozenCollecting = errors.New("the process is frozen in the middle of a collection, when threads are moved; thaw its control group and try again")
	ErrNoThreads        = errors.New("the run-time system's lists of threads were not found: it has no symbols, and no data that looks like its generations")
)

// All attempts together may take patience, or longer until there were so many: on a machine that has
// much else to do, one attempt takes long.
const (
	patience      = 3 * time.Second
	leastAttempts = 8
	mostPatience  = 10 * patience
)

// Take reads the threads of a process.
func Take(ctx context.Context, im *process.Image) (*Dump, error) {
	if im.RTS == nil {
		return nil, ErrNotHaskell
	}
	t := newTaker(ctx, im)
	var err error
	if t.generations, t.d.Searched, err = Generations(ctx, im, t.reader); err != nil {
		return nil, err
	}
	return t.take()
}

func newTaker(ctx context.Context, im *process.Image) *taker {
	t := &taker{ctx: ctx, im: im, d: &Dump{}, moment: moment{live: im.Memory}, copying: mostCopying}
	program := programOf(im)
	program.Memory = &t.moment
	program.Late = func(page uint64) bool { return t.moment.late(page) && !program.Code(page) }
	t.reader = threads.New(program, threads.DefaultLimits)
	return t
}

// Reader makes a reader of the threads of a process that has a run-time system.
func Reader(im *process.Image, l threads.Limits) *threads.Reader {
	return threads.New(programOf(im), l)
}

func programOf(im *process.Image) threads.Program {
	b := &im.RTS.Binary
	return threads.Program{
		Memory:     im.Memory,
		Code:       func(address uint64) bool { return im.MappingOf(address) != nil },
		GHCVersion: b.GHCVersion, Profiled: b.Profiled(), Threaded: b.Threaded(),
	}
}

// taker is the reading of a process.
type taker struct {
	ctx         context.Context
	im          *process.Image
	reader      *threads.Reader
	generations uint64
	moment      moment
	copying     time.Duration // for how long memory is copied while threads are stopped
	held        bool          // OS threads were held in the last attempt
	d           *Dump
}

// taken is what an attempt has read.
type taken struct {
	*threads.Reading
	os    []OSThread
	took  time.Duration
	busy  bool // threads run whose stacks are not known
	moved int  // threads that ran on before all of them was read, or that a collection has moved
}

// runningAttempts is how often a process is read without stopping any of its threads.
const runningAttempts = 2

// unknownAttempts is how often it is read with its threads stopped before those that run and whose stacks are not known are
// left without: a thread that allocates is in C code of the run-time system now and then.
const unknownAttempts = 4

// movedAttempts is how often it is read with its threads stopped before more than one in mostMoved threads may be left without a
// stack, because a collection has moved them. One of the young generation moves few; one of all generations, which is rare, moves every
// thread that was not copied in time.
const (
	movedAttempts = 24
	mostMoved     = 100
)

func (t *taker) take() (*Dump, error) {
	pid := int(t.im.PID)
	begun := time.Now()
	wait, held := 200*time.Microsecond, 0
	var best *taken // the one with the fewest threads that moved
	for {
		if err := t.ctx.Err(); err != nil {
			return nil, err
		}
		t.d.Attempts++
		var now *taken
		var err error
		if procfs.Frozen(int(t.im.PID)) {
			if now, err = t.frozen(); err == nil {
				return t.dump(now), nil
			} else if !errors.Is(err, hold.ErrThawed) {
				return nil, err
			}
		}
		if t.d.Attempts <= runningAttempts {
			now, err = t.running()
		} else {
			now, err = t.stopped(held+1 >= unknownAttempts)
			if t.held {
				held++
			}
			var traced *hold.TracedError
			if errors.As(err, &traced) {
				return nil, err
			}
		}
		switch {
		case err == nil && now.busy && held < unknownAttempts && t.d.Attempts < leastAttempts:
			err = errRuns
		case err == nil:
			if best == nil || now.moved < best.moved {
				best = now
			}
			few := len(best.Threads) / mostMoved
			if held >= unknownAttempts { // a single one, perhaps that which runs, is not worth more stops
				few = max(few, 1)
			}
			if best.moved <= few || held >= movedAttempts {
				return t.dump(best), nil
			}
			err = threads.ErrMoving
		case errors.Is(err, errStopped):
			return nil, ErrCollecting
		}
		list, listErr := procfs.Threads(pid)
		if listErr != nil || len(list) == 0 {
			return nil, fmt.Errorf("process %d has ended", pid)
		}
		if took := time.Since(begun); took > patience && t.d.Attempts >= leastAttempts || took > mostPatience {
			switch {
			case best != nil:
				return t.dump(best), nil
			case errors.Is(err, threads.ErrMoving), errors.Is(err, errRuns):
				return nil, ErrBusy
			}
			return nil, err
		}
		time.Sleep(wait) // a collection, most likely, which takes milliseconds
		wait = min(2*wait, 20*time.Millisecond)
	}
}

var (
	errRuns    = errors.New("threads run Haskell code")
	errStopped = errors.New("the process is stopped, perhaps in the middle of a collection")
)

// running reads the process without stopping anything.
func (t *taker) running() (*taken, error) {
	t.moment.drop()
	list, err := t.list()
	if err != nil {
		return nil, err
	}
	begun := time.Now()
	g, err := t.reader.Read(t.generations)
	if err != nil {
		return nil, err
	}
	t.walkRunning(g, nil)
	if err := t.reader.Check(g); err != nil {
		return nil, err
	}
	if err := t.quiet(g, list); err != nil {
		return nil, err
	}
	return t.took(g, list, nil, begun), nil
}

// mostCopying is for how long memory is copied while OS threads that run Haskell code are stopped. What is not copied by
// then is read when they run again.
const mostCopying = 4 * time.Millisecond

// stopped reads the process as it is while the OS threads are stopped that run Haskell code: the memory that a reading
// before has used is copied meanwhile, and read when they run again. What is read of other memory then counts only where it has
// not changed. If a collection has moved that it is to be tried again, unless this is the last attempt.
func (t *taker) stopped(last bool) (*taken, error) {
	t.moment.drop()
	before := t.before()
	pages := t.moment.prepare(t.reader.Used())
	rest, err := newRest(int(t.im.PID))
	if err != nil {
		return nil, err
	}
	var list []procfs.Thread
	var held []heldThread
	for try := 0; try < holdTries && len(held) == 0; try++ {
		if try > 0 {
			time.Sleep(holdWait)
		}
		if err := t.ctx.Err(); err != nil {
			return nil, err
		}
		if list, held, err = t.hold(before, pages); err != nil {
			return nil, err
		}
	}
	if t.held = len(held) > 0; !t.held {
		return t.running()
	}
	slept := rest.slept(held)
	begun := time.Now()
	g, err := t.reader.Read(t.generations)
	if err != nil {
		return nil, err
	}
	t.walkRunning(g, held)
	late := slices.ContainsFunc(g.Threads, func(th threads.Thread) bool { return th.Late })
	if late || !slept {
		t.moment.drop()
		if err := t.reader.Check(g); err != nil && (!last || !errors.Is(err, threads.ErrMoving)) {
			return nil, err
		}
	}
	if slept {
		for i := range g.Threads {
			g.Threads[i].Stood = g.Threads[i].Stood || !g.Threads[i].Late
		}
		for i := range g.Objects {
			g.Objects[i].Stood = g.Objects[i].Stood || !late
		}
	}
	for _, h := range held {
		// They could not run until their memory was copied; what was not, they may have changed since, also where the TSO is the same.
		if i := h.thread; i >= 0 {
			th := &g.Threads[i]
			if th.Stood = !th.Late; th.Late {
				th.Stack = threads.Stack{Stop: threads.StopMoved}
			}
		}
	}
	return t.took(g, list, held, begun), nil
}

// before reads the process to see which memory is to be copied. If a collection runs at each try there is only so much of it,
// and it returns nil.
func (t *taker) before() *threads.Reading {
	for range holdTries {
		if g, err := t.reader.Read(t.generations); err == nil {
			return g
		}
		time.Sleep(holdWait)
	}
	return nil
}

// How often it is tried to find OS threads running Haskell code, and how long to wait between: in programs that collect
// most of the time they seldom do.
const (
	holdTries = 64
	holdWait  = time.Millisecond
)

// hold copies memory while the OS threads are stopped that run Haskell code, if any do: pages, and what has come since the
// reading before.
func (t *taker) hold(before *threads.Reading, pages []uint64) (list []procfs.Thread, held []heldThread, err error) {
	stopped := 0
	pause, err := hold.Stilled(int(t.im.PID), func(s *hold.Still) error {
		overhead.Hasten() // until this OS thread ends: it has to let the program go on, too
		var err error
		if list, err = t.list(); err != nil {
			return err
		}
		if held, stopped = t.holdHaskell(s, list); len(held) == 0 {
			return nil
		}
		run := make([]threads.Running, len(held))
		for i, h := range held {
			run[i] = threads.Running{Base: h.Base, Sp: h.Sp}
		}
		t.moment.until = s.Since().Add(t.copying)
		t.reader.RenewRunning(run, before, t.moment.over)
		if before == nil || !t.reader.Overtaken(before) {
			t.moment.copy(pages)
		}
		// If it fails, what it has not copied is found missing later.
		_ = t.reader.Renew(t.generations, before, t.moment.over)
		t.moment.until = time.Time{}
		return nil
	})
	if stopped > 0 {
		t.d.Stops++
		t.d.Stood += pause
		t.d.Pause, t.d.Stopped = max(t.d.Pause, pause), max(t.d.Stopped, stopped)
	}
	return list, held, err
}

// list lists the process's OS threads.
func (t *taker) list() ([]procfs.Thread, error) {
	list, err := procfs.Threads(int(t.im.PID))
	slices.SortFunc(list, func(a, b procfs.Thread) int { return a.TID - b.TID })
	return list, err
}

// took gives what an attempt has read.
func (t *taker) took(g *threads.Reading, list []procfs.Thread, held []heldThread, begun time.Time) *taken {
	now := &taken{Reading: g, os: osThreads(t.im.Memory, g, list, held), took: time.Since(begun)}
	for i := range g.Capabilities {
		if c := &g.Capabilities[i]; c.Current != 0 && !slices.ContainsFunc(held, func(h heldThread) bool { return h.base == c.Base() }) {
			now.busy = true
		}
	}
	for i := range g.Threads {
		if th := &g.Threads[i]; (th.Late || th.Moved) && !th.Stood && !th.Ended() {
			now.moved++
		}
	}
	return now
}

// dump makes the dump of what was read.
func (t *taker) dump(of *taken) *Dump {
	d := t.d
	d.Reading, d.OS, d.Took = of.Reading, of.os, of.took
	if d.Searched {
		d.Notes = append(d.Notes, "the program has no symbols: its threads were found by what its data point to")
	}
	if t.im.Assumed {
		d.Notes = append(d.Notes, fmt.Sprintf("GHC version %q is not one that is known: its threads are read by the newest known layout", t.im.RTS.Binary.GHCVersion))
	}
	if d.Stops > 1 {
		d.Notes = append(d.Notes, fmt.Sprintf("OS threads were stopped %d times, for %.1f ms altogether: the longest time is given", d.Stops, 1e3*d.Stood.Seconds()))
	}
	if of.moved*mostMoved > len(of.Threads) {
		d.Notes = append(d.Notes, fmt.Sprintf("%d of %d threads ran on, or a collection moved them, before their stacks were read; try again", of.moved, len(of.Threads)))
	}
	return d
}

// heldThread is an OS thread that is stopped while it runs Haskell code.
type heldThread struct {
	hold.Registers
	tid    int
	base   uint64 // BaseReg of its capability, once that is known
	thread int    // index of the Haskell thread; −1 while it is not known
}

// mostHeld bounds the OS threads that are stopped: no more run at a time than there are CPUs.
const mostHeld = 1024

// holdHaskell stops the OS threads that run, and lets those go on that run no Haskell code. stopped counts all of them.
func (t *taker) holdHaskell(s *hold.Still, list []procfs.Thread) (held []heldThread, stopped int) {
	var some []int
	for _, os := range list {
		if os.State != 'S' && os.State != 'D' && len(some) < mostHeld {
			some = append(some, os.TID)
		}
	}
	// One that has ended or cannot be stopped is left out: what it runs has no stack then.
	s.StopSome(some, togetherPatience, func(tid int, r hold.Registers) {
		stopped++
		if !t.reader.Running(r.Base) {
			s.Release(tid)
			return
		}
		held = append(held, heldThread{Registers: r, tid: tid, base: r.Base, thread: -1})
	})
	return held, stopped
}

// togetherPatience is how long the first thread that was stopped waits for others to stop.
const togetherPatience = time.Millisecond

// walkRunning walks the stacks of threads that are held, from their registers; those that run and
// are not held have none.
func (t *taker) walkRunning(g *threads.Reading, held []heldThread) {
	for i := range g.Capabilities {
		c := &g.Capabilities[i]
		n := g.Thread(c.Current)
		if n < 0 {
			continue
		}
		g.Threads[n].Stack = threads.Stack{Stop: threads.StopNotTaken}
		for k := range held {
			if h := &held[k]; h.base == c.Base() {
				h.thread = n
				t.reader.WalkRunning(g, n, h.Sp)
			}
		}
	}
}

// mutates reports whether a capability shows that no collection runs: it runs Haskell code, or has no OS thread.
func (t *taker) mutates(g *threads.Reading) bool {
	return slices.ContainsFunc(g.Capabilities, func(c threads.Capability) bool {
		return c.InHaskell || t.im.RTS.Binary.Threaded() && c.Task == 0
	})
}

// quiet makes sure that no collection runs.
func (t *taker) quiet(g *threads.Reading, before []procfs.Thread) error {
	t.reader.Refresh(g)
	if t.mutates(g) {
		return nil
	}
	// All are in C code: of the scheduler, which waits, or of the collector, which works.
	after, err := procfs.Threads(int(t.im.PID))
	if err != nil {
		return err
	}
	waits := func(list []procfs.Thread) bool {
		return !slices.ContainsFunc(list, func(os procfs.Thread) bool { return os.State != 'S' })
	}
	if waits(before) && waits(after) {
		return nil
	}
	if slices.ContainsFunc(after, func(os procfs.Thread) bool { return os.State == 'T' }) {
		return errStopped
	}
	return threads.ErrMoving
}
