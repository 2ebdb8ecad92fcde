package threads

import (
	"encoding/binary"
	"errors"
	"io"
	"testing"

	"ccagent/internal/ghc"
)

// Where made memory lies: info tables first, then objects.
const (
	codeAt = 0x400000
	heapAt = 0x401000
	endAt  = 0x404000
)

// made is memory that a test has made: what lies elsewhere cannot be read.
type made []byte

func (m made) ReadAt(b []byte, at int64) (int, error) {
	if at < codeAt || at+int64(len(b)) > endAt {
		return 0, io.ErrUnexpectedEOF
	}
	return copy(b, m[at-codeAt:]), nil
}

func (m made) word(at, v uint64) { binary.LittleEndian.PutUint64(m[at-codeAt:], v) }

// maker makes objects one after another.
type maker struct {
	made
	code, heap uint64
	l          ghc.Layout
}

const madeVersion = "9.0.2"

func newMaker() *maker {
	m := &maker{made: make(made, endAt-codeAt), code: codeAt + 0x20, heap: heapAt}
	m.l, _ = ghc.LayoutOf(madeVersion, false, true)
	return m
}

// info makes an info table and gives its info pointer.
func (m *maker) info(t ghc.ClosureType, layout uint64) uint64 {
	m.word(m.code-ghc.InfoLayout, layout)
	m.word(m.code-ghc.InfoType, uint64(t))
	m.code += 0x20
	return m.code - 0x20
}

// object makes an object of words, the first of which is its info pointer.
func (m *maker) object(words ...uint64) uint64 {
	at := m.heap
	for i, w := range words {
		m.word(at+8*uint64(i), w)
	}
	m.heap += 8 * uint64(len(words))
	return at
}

// program is two threads: one waits for an MVar that a handler on the other's stack refers to,
// which waits for a black hole that the first owns.
type program struct {
	*maker
	generation, end, mvar, hole uint64
	threads                     [2]uint64
}

func newProgram() *program {
	p := &program{maker: newMaker()}
	constr, mvar, tso, stack := p.info(ghc.ConstrNoCAF, 0), p.info(ghc.MVarDirty, 3), p.info(ghc.TSO, 0), p.info(ghc.Stack, 0)
	queue, prim, hole, fun := p.info(ghc.Prim, 2), p.info(ghc.Prim, 3), p.info(ghc.Blackhole, 1), p.info(ghc.Fun, 1)
	catch, stop, ret := p.info(ghc.CatchFrame, 2), p.info(ghc.StopFrame, 0), p.info(ghc.RetSmall, 1)
	p.end = p.object(constr)
	p.mvar = p.object(mvar, 0, 0, p.end)
	p.hole = p.object(hole, 0)
	handler := p.object(fun, p.mvar)
	var stacks [2]uint64
	for i, frames := range [][]uint64{{ret, p.mvar, stop}, {ret, p.hole, catch, 0, handler | 1, stop}} {
		stacks[i] = p.object(append([]uint64{stack, uint64(len(frames)) + 2, 0, 0, 0}, frames...)...)
		p.word(stacks[i]+uint64(p.l.StackSp), stacks[i]+uint64(p.l.StackFirst)+16)
	}
	capability := p.heap
	p.heap += 1200
	link := p.end
	for i := range p.threads {
		at := p.object(make([]uint64, p.l.TSOWords)...)
		p.threads[i] = at
		p.word(at, tso)
		p.word(at+uint64(p.l.Header)+ghc.TSOGlobalLink, link)
		p.word(at+uint64(p.l.TSOStackObj), stacks[i])
		p.word(at+uint64(p.l.TSOID), uint64(i)+7)
		p.word(at+uint64(p.l.TSOCap), capability)
		link = at
	}
	p.why(0, ghc.BlockedOnMVar, p.mvar)
	p.why(1, ghc.BlockedOnBlackHole, p.object(prim, p.end, p.threads[1], p.hole))
	p.word(p.hole+8, p.threads[0])
	first := p.object(queue, p.end, p.threads[0])
	p.word(p.mvar+8, first)
	p.word(p.mvar+16, first)
	p.generation = p.heap
	p.heap += ghc.GenerationCollections + 8
	p.word(p.generation+ghc.GenerationThreads, link)
	p.word(p.generation+ghc.GenerationTo, p.generation)
	return p
}

func (p *program) why(i int, w ghc.WhyBlocked, info uint64) {
	at := p.threads[i] + uint64(p.l.TSOWhatNext)
	p.word(at, 1|uint64(w)<<16) // what_next, why_blocked, flags
	p.word(p.threads[i]+uint64(p.l.TSOBlockInfo), info)
}

func (p *program) reader() *Reader {
	return New(Program{
		Memory: p.made, Code: func(a uint64) bool { return a >= codeAt && a < heapAt }, GHCVersion: madeVersion, Threaded: true,
	}, Limits{Threads: 100, Frames: 8, StackWords: 1000})
}

func TestMadeThreads(t *testing.T) {
	p := newProgram()
	r := p.reader()
	g, err := r.Read(p.generation)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Check(g); err != nil {
		t.Fatal(err)
	}
	if len(g.Threads) != 2 || len(g.Objects) != 2 {
		t.Fatalf("%d threads, %d objects, want 2 and 2", len(g.Threads), len(g.Objects))
	}
	waits, owns := &g.Threads[g.Thread(p.threads[0])], &g.Threads[g.Thread(p.threads[1])]
	for _, th := range []*Thread{waits, owns} {
		if !th.Stood || th.Stack.Stop != StopRoot {
			t.Errorf("thread %d: stood %v, stack ends by %d", th.ID, th.Stood, th.Stack.Stop)
		}
	}
	mvar, hole := &g.Objects[waits.On], &g.Objects[owns.On]
	if mvar.Kind != MVar || mvar.Full || len(mvar.Queue) != 1 || len(mvar.Holders) != 1 || !mvar.Holders[0].Handler {
		t.Errorf("the MVar is %+v", mvar)
	}
	if hole.Kind != BlackHole || hole.Owner != g.Thread(p.threads[0]) {
		t.Errorf("the black hole is %+v", hole)
	}
	p.word(p.mvar+24, p.hole) // somebody gives a value
	if err := r.Check(g); err != nil || mvar.Stood || !hole.Stood {
		t.Errorf("the MVar has changed: %v, stood %v, the black hole %v", err, mvar.Stood, hole.Stood)
	}
	p.word(p.generation+ghc.GenerationCollections, 1)
	if err := r.Check(g); !errors.Is(err, ErrMoving) {
		t.Errorf("after a collection: %v, want %v", err, ErrMoving)
	}
}

// Lists that come back to themselves, or lead out of the heap, are no threads.
func TestListsOfGarbage(t *testing.T) {
	for name, damage := range map[string]func(*program){
		"cycle":     func(p *program) { p.word(p.threads[0]+8+ghc.TSOGlobalLink, p.threads[1]) },
		"nowhere":   func(p *program) { p.word(p.threads[0]+8+ghc.TSOGlobalLink, 0x123456789) },
		"unaligned": func(p *program) { p.word(p.threads[0]+8+ghc.TSOGlobalLink, p.threads[1]+4) },
		"forwarded": func(p *program) { p.word(p.threads[0], p.threads[1]|1) },
		"no end":    func(p *program) { p.word(p.threads[0]+8+ghc.TSOGlobalLink, p.hole) },
		"empty":     func(p *program) { p.word(p.generation+ghc.GenerationThreads, p.end) },
	} {
		p := newProgram()
		damage(p)
		if g, err := p.reader().Read(p.generation); !errors.Is(err, ErrMoving) {
			t.Errorf("%s: %+v, %v, want %v", name, g, err, ErrMoving)
		}
		var s Survey
		if err := p.reader().Survey(&s, p.generation, asleep, func(*Thread) {}); !errors.Is(err, ErrMoving) {
			t.Errorf("%s: surveyed with %v, want %v", name, err, ErrMoving)
		}
	}
	p := newProgram()
	p.word(p.generation+ghc.GenerationTo, p.generation+8)
	if _, err := p.reader().Read(p.generation); err == nil {
		t.Error("a generation that is none was read")
	}
}

// A queue of an MVar that comes back to itself ends.
func TestCyclicQueue(t *testing.T) {
	p := newProgram()
	first, _ := p.reader().field(p.mvar, ghc.MVarHead)
	p.word(first+8, first)
	g, err := p.reader().Read(p.generation)
	if err != nil || len(g.Objects) != 2 {
		t.Fatalf("%v, %d objects", err, len(g.Objects))
	}
}

// FuzzRead reads damaged memory. Whatever it holds, a reading ends, within its limits.
func FuzzRead(f *testing.F) {
	p := newProgram()
	f.Add([]byte(p.made), p.generation)
	for _, at := range []uint64{p.threads[0], p.threads[1], p.mvar, p.hole, p.generation} {
		q := newProgram()
		q.word(at+8, at)
		f.Add([]byte(q.made), q.generation)
	}
	f.Fuzz(func(t *testing.T, memory []byte, generations uint64) {
		m := make(made, endAt-codeAt)
		copy(m, memory)
		q := &program{maker: &maker{made: m}}
		r := q.reader()
		var s Survey
		if r.Survey(&s, generations, asleep, func(*Thread) { s.Look(); s.Stack(); s.Evaluated(); s.Label() }) == nil {
			_, _ = s.Confirm(asleep) // of what does not change
		}
		if s.Threads > r.limits.Threads {
			t.Errorf("%d threads surveyed", s.Threads)
		}
		g, err := r.Read(generations)
		if (g == nil) == (err == nil) {
			t.Fatalf("%v and %v", g, err)
		}
		if err != nil {
			return
		}
		if len(g.Threads) > r.limits.Threads {
			t.Errorf("%d threads", len(g.Threads))
		}
		for i := range g.Threads {
			th := &g.Threads[i]
			if len(th.Stack.Frames) > 2*r.limits.Frames || th.On >= len(g.Objects) || th.Cap >= len(g.Capabilities) {
				t.Errorf("thread %+v", th)
			}
			r.WalkRunning(g, i, th.BlockInfo)
		}
		never := func() bool { return false }
		var running []Running
		for i := range g.Capabilities {
			running = append(running, Running{Base: g.Capabilities[i].Base(), Sp: g.Threads[0].BlockInfo})
		}
		r.RenewRunning(running, g, never)
		_ = r.Renew(generations, g, never) // of what does not change
		if used := r.Used(); len(used) > maxUsed {
			t.Errorf("%d pages were used", len(used))
		}
		_ = r.Check(g) // of what does not change
		r.Refresh(g)
	})
}
