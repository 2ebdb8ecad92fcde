package dump

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ccagent/agent/hold"
	"ccagent/agent/process"
	"ccagent/agent/procfs"
	"ccagent/heap/threads"
)

// Dump is what the threads of a process did at a moment.
type Dump struct {
	*threads.Reading
	OS []OSThread
	// Pause is for how long OS threads that ran Haskell code were stopped; Stopped is their number.
	Pause   time.Duration
	Stopped int
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
	ErrNoThreads  = errors.New("the run-time system's lists of threads were not found: it has no symbols, and no data that looks like its generations")
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
	t := &taker{ctx: ctx, im: im, d: &Dump{}, reader: Reader(im, threads.DefaultLimits)}
	var err error
	if t.generations, t.d.Searched, err = Generations(ctx, im, t.reader); err != nil {
		return nil, err
	}
	return t.take()
}

// Reader makes a reader of the threads of a process that has a run-time system.
func Reader(im *process.Image, l threads.Limits) *threads.Reader {
	b := &im.RTS.Binary
	return threads.New(threads.Program{
		Memory:     im.Memory,
		Code:       func(address uint64) bool { return im.MappingOf(address) != nil },
		GHCVersion: b.GHCVersion, Profiled: b.Profiled(), Threaded: b.Threaded(),
	}, l)
}

// taker is the reading of a process.
type taker struct {
	ctx         context.Context
	im          *process.Image
	reader      *threads.Reader
	generations uint64
	d           *Dump
}

// runningAttempts is how often a process is read without stopping any of its threads.
const runningAttempts = 2

// unknownAttempts is how often it is read with its threads stopped before those that run and whose stacks are not known are
// left without: a thread that allocates is in C code of the run-time system now and then.
const unknownAttempts = 4

func (t *taker) take() (*Dump, error) {
	pid := int(t.im.PID)
	begun := time.Now()
	wait, unknown := 200*time.Microsecond, 0
	for {
		if err := t.ctx.Err(); err != nil {
			return nil, err
		}
		t.d.Attempts++
		var err error
		if t.d.Attempts <= runningAttempts {
			var busy bool
			if busy, err = t.attempt(nil); err == nil && busy {
				err = errRuns
			}
		} else {
			var pause time.Duration
			pause, err = hold.Stilled(pid, func(s *hold.Still) error {
				busy, err := t.attempt(s)
				if unknown++; err == nil && busy && unknown < unknownAttempts {
					return errRuns
				}
				return err
			})
			t.d.Pause = max(t.d.Pause, pause)
			var traced *hold.TracedError
			if errors.As(err, &traced) {
				return nil, err
			}
		}
		switch {
		case err == nil:
			return t.d, nil
		case errors.Is(err, errStopped):
			return nil, ErrCollecting
		}
		list, listErr := procfs.Threads(pid)
		if listErr != nil || len(list) == 0 {
			return nil, fmt.Errorf("process %d has ended", pid)
		}
		if took := time.Since(begun); took > patience && t.d.Attempts >= leastAttempts || took > mostPatience {
			if errors.Is(err, threads.ErrMoving) || errors.Is(err, errRuns) {
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

// attempt reads the process once. Without s it stops nothing, and reports whether threads run
// whose stacks are not known for that.
func (t *taker) attempt(s *hold.Still) (busy bool, err error) {
	pid := int(t.im.PID)
	list, err := procfs.Threads(pid)
	if err != nil {
		return false, err
	}
	slices.SortFunc(list, func(a, b procfs.Thread) int { return a.TID - b.TID })
	var held []heldThread
	if s != nil {
		held = t.holdHaskell(s, list)
	}
	begun := time.Now()
	g, err := t.reader.Read(t.generations)
	if err != nil {
		return false, err
	}
	t.walkRunning(g, held)
	if err := t.reader.Check(g); err != nil {
		return false, err
	}
	if err := t.quiet(g, s, held, list); err != nil {
		return false, err
	}
	for _, h := range held { // they could not run
		if i := h.thread; i >= 0 {
			g.Threads[i].Stood = true
		}
	}
	t.d.Reading, t.d.Took, t.d.Stopped = g, time.Since(begun), len(held)
	t.d.OS = osThreads(t.im.Memory, g, list, held)
	t.d.Notes = t.d.Notes[:0]
	if t.d.Searched {
		t.d.Notes = append(t.d.Notes, "the program has no symbols: its threads were found by what its data point to")
	}
	if t.im.Assumed {
		t.d.Notes = append(t.d.Notes, fmt.Sprintf("GHC version %q is not one that is known: its threads are read by the newest known layout", t.im.RTS.Binary.GHCVersion))
	}
	for i := range g.Capabilities {
		if c := &g.Capabilities[i]; c.Current != 0 && !slices.ContainsFunc(held, func(h heldThread) bool { return h.base == c.Base() }) {
			busy = true
		}
	}
	return busy, nil
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

// holdHaskell stops the OS threads that run, and lets those go on that run no Haskell code.
func (t *taker) holdHaskell(s *hold.Still, list []procfs.Thread) (held []heldThread) {
	for _, os := range list {
		if os.State == 'S' || os.State == 'D' || len(held) == mostHeld {
			continue
		}
		r, err := s.Stop(os.TID)
		if err != nil {
			continue // it has ended, or cannot be stopped: what it runs has no stack then
		}
		m := t.im.MappingOf(r.PC)
		if m == nil || !t.reader.Running(r.Base) {
			s.Release(os.TID)
			continue
		}
		held = append(held, heldThread{Registers: r, tid: os.TID, base: r.Base, thread: -1})
	}
	return held
}

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

// quiet makes sure that no collection runs.
func (t *taker) quiet(g *threads.Reading, s *hold.Still, held []heldThread, before []procfs.Thread) error {
	if len(held) > 0 {
		return nil // it cannot begin, and did not run when they were stopped
	}
	t.reader.Refresh(g)
	for i := range g.Capabilities {
		if c := &g.Capabilities[i]; c.InHaskell || t.im.RTS.Binary.Threaded() && c.Task == 0 {
			return nil
		}
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
	if s == nil && slices.ContainsFunc(after, func(os procfs.Thread) bool { return os.State == 'T' }) {
		return errStopped
	}
	return threads.ErrMoving
}
