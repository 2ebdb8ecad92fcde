package graph

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"testing"

	"ccagent/heap"
	"ccagent/internal/ghc"
)

// made is a made program: info tables in code, static closures in data, and one block of heap.
type made struct {
	code, data []byte
	words      []uint64
	next       uint64 // offset in code of the next info table's end
}

const (
	codeAt = 0x400000
	dataAt = 0x600000
	heapAt = 0x4200104000
)

type bytesAt []byte

func (b bytesAt) ReadAt(p []byte, at int64) (int, error) {
	if at < 0 || at >= int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[at:])
	if n < len(p) {
		return n, io.ErrUnexpectedEOF
	}
	return n, nil
}

func newMade() *made {
	return &made{code: make([]byte, 4096), data: make([]byte, 4096), next: 64}
}

// table makes an info table and gives its pointer; srt is a static closure, 0 for none.
func (m *made) table(t ghc.ClosureType, layout, srt uint64) uint64 {
	at := m.next
	m.next += 32
	binary.LittleEndian.PutUint64(m.code[at-16:], layout)
	binary.LittleEndian.PutUint32(m.code[at-8:], uint32(t))
	if srt != 0 {
		binary.LittleEndian.PutUint32(m.code[at-4:], uint32(int32(int64(srt)-int64(codeAt+at))))
	}
	return codeAt + at
}

// closure makes a closure of words, and gives its address.
func (m *made) closure(words ...uint64) uint64 {
	at := uint64(heapAt + 8*len(m.words))
	m.words = append(m.words, words...)
	return at
}

func (m *made) static(at uint64, words ...uint64) uint64 {
	for i, w := range words {
		binary.LittleEndian.PutUint64(m.data[at+8*uint64(i):], w)
	}
	return dataAt + at
}

func (m *made) snapshot() *Snapshot {
	return &Snapshot{
		GHCVersion: "9.0.2", Threaded: true,
		Regions: []Region{
			{Start: codeAt, Length: uint64(len(m.code)), Memory: bytesAt(m.code)},
			{Start: dataAt, Length: uint64(len(m.data)), Memory: bytesAt(m.data), Data: true},
		},
		Blocks: []Block{{heap.Group{Start: heapAt, Free: heapAt + 8*uint64(len(m.words)), Blocks: uint32(len(m.words)/512 + 1), Flags: ghc.BlockEvacuated}, m.words}},
	}
}

// A CAF is a root if code of a stack that is alive refers to it; what a key keeps alive by a weak
// pointer is the key's.
func TestRoots(t *testing.T) {
	m := newMade()
	constr2, mutVar := m.table(ghc.Constr20, 2, 0), m.table(ghc.MutVar, 1, 0)
	indStatic, caf := m.table(ghc.IndStatic, 0, 0), m.table(ghc.ThunkStatic, 0, 0)
	tso, stack, weak, stop := m.table(ghc.TSO, 0, 0), m.table(ghc.Stack, 0, 0), m.table(ghc.Weak, 5, 0), m.table(ghc.StopFrame, 0, 0)
	used, unused := m.static(64, 0), m.static(128, 0)
	ret := m.table(ghc.RetSmall, 2|0b10<<6, used) // a pointer, and a word that is none

	held := m.closure(mutVar, 0)
	pair := m.closure(constr2, held, held)
	dead := m.closure(mutVar, 0)
	value := m.closure(mutVar, 0)
	key := m.closure(mutVar, 0)
	m.closure(weak, 0, key, value, 0, 0)
	l, _ := ghc.LayoutOf("9.0.2", false, true)
	frames := []uint64{ret, key | 1, dead, stop}
	at := m.closure(append([]uint64{stack, uint64(len(frames)) + 1, 0, 0xdead}, frames...)...)
	m.words[(at-heapAt)/8+2] = at + 8*4
	thread := make([]uint64, l.TSOWords)
	thread[0], thread[l.TSOStackObj/8], thread[l.TSOID/8] = tso, at, 42
	m.closure(thread...)
	m.static(64, indStatic, pair, 0, caf)
	m.static(128, indStatic, dead, 0, caf)
	_ = unused

	r, err := Analyse(m.snapshot(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	if r.Closures != 8 || r.Unreached != 1 || r.UnreachedBytes != 16 || r.Dangling != 0 || r.BadFrames != 0 {
		t.Errorf("the result is %+v", r)
	}
	if r.AllRoots != [rootKinds]uint64{CAF: 1, Thread: 1, WeakPointer: 1} {
		t.Errorf("the roots are %v", r.AllRoots)
	}
	for _, root := range r.Roots {
		want := map[RootKind]uint64{CAF: 24 + 16, Thread: 8 * (uint64(l.TSOWords) + 8 + 2 + 2), WeakPointer: 48}[root.Kind]
		if root.Retained != want || root.Kind == Thread && root.ID != 42 || root.Kind == CAF && root.Pointer != caf {
			t.Errorf("a root is %+v, want %d bytes", root, want)
		}
	}
}

// What a thread waits for that waits for a file or a time is a closure with the I/O manager that development releases add for programs
// that are not threaded (scavengeTSOIOManager in rts/IOManager.c); with all others it is a number.
func TestOperationsOfTheIOManager(t *testing.T) {
	for _, c := range []struct {
		version   string
		threaded  bool
		operation bool // block_info is the operation, not a number
		reached   bool
	}{
		{"9.15.20251020", false, true, true},
		{"9.15.20251020", false, false, false},
		{"9.15.20251020", true, true, false},
		{"9.14.1", false, true, false},
	} {
		for _, why := range []ghc.WhyBlocked{ghc.BlockedOnRead, ghc.BlockedOnWrite, ghc.BlockedOnDelay} {
			m := newMade()
			prim, mutVar := m.table(ghc.Prim, 2|4<<32, 0), m.table(ghc.MutVar, 1, 0)
			tso, stack, stop := m.table(ghc.TSO, 0, 0), m.table(ghc.Stack, 0, 0), m.table(ghc.StopFrame, 0, 0)
			live := m.closure(mutVar, 0)
			operation := m.closure(prim, 0, live, 1, 2, 3, 4)
			at := m.closure(stack, 2, 0, 0xdead, stop)
			m.words[(at-heapAt)/8+2] = at + 8*4
			l, _ := ghc.LayoutOf(c.version, false, c.threaded)
			thread := make([]uint64, l.TSOWords)
			thread[0], thread[l.TSOStackObj/8], thread[l.TSOBlockInfo/8] = tso, at, 7
			if c.operation {
				thread[l.TSOBlockInfo/8] = operation
			}
			thread[l.WhyBlocked/8] = uint64(why) << (l.WhyBlocked % 8 * 8)
			m.words[(operation-heapAt)/8+1] = m.closure(thread...)
			s := m.snapshot()
			s.GHCVersion, s.Threaded = c.version, c.threaded
			r, err := Analyse(s, 0)
			if err != nil {
				t.Fatal(err)
			}
			if reached := r.Unreached == 0; reached != c.reached || r.Dangling != 0 || !reached && r.Unreached != 2 {
				t.Errorf("%+v, waiting %d: %d closures are not reached, %d dangle", c, why, r.Unreached, r.Dangling)
			}
		}
	}
}

// Dominators are what removing each node in turn shows.
func TestDominators(t *testing.T) {
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		n := 2 + rnd.IntN(30)
		e := &edges{first: make([]uint32, n+1)}
		for i := range n {
			for range rnd.IntN(4) {
				e.to = append(e.to, uint32(rnd.IntN(n)))
			}
			e.first[i+1] = uint32(len(e.to))
		}
		o := depthFirst(e, 0)
		idom := dominators(e, o)
		// without[i] has the nodes that are not reached without node i.
		without := make([]map[uint32]bool, n)
		for i := range n {
			without[i] = map[uint32]bool{}
			reached := reach(e, uint32(i))
			for node := range n {
				if o.number[node] != none && !reached[node] {
					without[i][uint32(node)] = true
				}
			}
		}
		for k := 1; k < len(o.node); k++ {
			got := map[uint32]bool{o.node[k]: true}
			for i := uint32(k); i != 0; i = idom[i] {
				got[o.node[idom[i]]] = true
			}
			for i := range n {
				if want := without[i][o.node[k]]; want != got[uint32(i)] {
					t.Fatalf("seed %d: node %d dominates %d: %v, want %v", seed, i, o.node[k], got[uint32(i)], want)
				}
			}
		}
	}
}

// reach are the nodes that are reached from node 0 without one.
func reach(e *edges, without uint32) map[int]bool {
	seen := map[int]bool{}
	todo := []uint32{0}
	for len(todo) > 0 {
		at := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if at == without || seen[int(at)] {
			continue
		}
		seen[int(at)] = true
		todo = append(todo, e.of(at)...)
	}
	return seen
}

// An analysis that would take more than it may is refused.
func TestLimit(t *testing.T) {
	m := newMade()
	constr := m.table(ghc.Constr20, 2, 0)
	for range 1000 {
		m.closure(constr, heapAt, heapAt)
	}
	var need *NeedError
	if _, err := Analyse(m.snapshot(), 1000); !errors.As(err, &need) {
		t.Errorf("the error is %v", err)
	}
}

// runningFrom makes what a thread holds that runs of any bytes; nothing if they are too few.
func runningFrom(b []byte) []heap.Running {
	var w []uint64
	for len(b) >= 8 && len(w) < 512 {
		w = append(w, binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	if len(w) < 9 {
		return nil
	}
	n := min(w[8], uint64(len(w)-9))
	return []heap.Running{{
		TSO: w[0], Stack: w[1], Sp: w[2], Exact: w[3]%2 == 1, At: w[4], Code: []uint64{w[5]}, Filling: [2]uint64{w[6], w[7]},
		Words: w[9 : 9+n], Held: w[9+n:],
	}}
}

// What trial frames at wrong offsets name is not taken: a function's arguments near Sp may resemble frames.
func TestTriedFramesHoldNothing(t *testing.T) {
	m := newMade()
	indStatic, caf := m.table(ghc.IndStatic, 0, 0), m.table(ghc.ThunkStatic, 0, 0)
	mutVar, stop := m.table(ghc.MutVar, 1, 0), m.table(ghc.StopFrame, 0, 0)
	named := m.static(64, 0)
	wrong := m.table(ghc.RetSmall, 1, named) // its size leads to a word that is no frame
	dead := m.closure(mutVar, 0)
	m.static(64, indStatic, dead, 0, caf)
	tso, stack := m.table(ghc.TSO, 0, 0), m.table(ghc.Stack, 0, 0)
	frames := []uint64{wrong, 1, 2, stop}
	at := m.closure(append([]uint64{stack, uint64(len(frames)) + 1, 0, 0xdead}, frames...)...)
	l, _ := ghc.LayoutOf("9.0.2", false, true)
	thread := make([]uint64, l.TSOWords)
	thread[0], thread[l.TSOStackObj/8] = tso, at
	running := m.closure(thread...)
	s := m.snapshot()
	s.AtRest = true
	s.Running = []heap.Running{{TSO: running, Stack: at, Sp: at + 32, Exact: true, At: at + 32, Words: frames}}
	r, err := Analyse(s, 0)
	if err != nil {
		t.Fatal(err)
	}
	if r.AllRoots[CAF] != 0 || r.Unreached != 1 || r.BadFrames != 0 {
		t.Errorf("the result is %+v", r)
	}
}

// FuzzAnalyse analyses any words: it ends, and its result refers to nothing that it does not have and has no
// more bytes than there are.
func FuzzAnalyse(f *testing.F) {
	m := newMade()
	tables := map[ghc.ClosureType]uint64{}
	for _, k := range []ghc.ClosureType{ghc.Constr20, ghc.TSO, ghc.Stack, ghc.Weak, ghc.PAP, ghc.AP, ghc.APStack, ghc.SmallArr, ghc.MutArr, ghc.BCO, ghc.TRecChunk, ghc.RetBCO, ghc.RetFun, ghc.Compact} {
		tables[k] = m.table(k, 2, dataAt+64)
	}
	seed := func(words ...uint64) {
		var b []byte
		for _, w := range words {
			b = binary.LittleEndian.AppendUint64(b, w)
		}
		f.Add(b, []byte(m.data[:256]), []byte(m.code), uint16(0), []byte(nil))
	}
	seed(tables[ghc.Constr20], heapAt, heapAt)
	seed(tables[ghc.Stack], 5, heapAt+24, tables[ghc.RetFun], 1, heapAt, 7, tables[ghc.RetBCO])
	seed(tables[ghc.PAP], 1<<32, heapAt, heapAt)
	seed(tables[ghc.SmallArr], 1, heapAt, tables[ghc.Weak], 0, heapAt, heapAt, heapAt, 0)
	seed(tables[ghc.BCO], heapAt, heapAt, heapAt, 7<<32, 1, 1)
	frames := m.table(ghc.RetSmall, 1, dataAt+64)
	var thread, run []byte
	for _, w := range []uint64{tables[ghc.Constr20], heapAt, heapAt, tables[ghc.TSO], heapAt + 40, tables[ghc.Stack], 5, heapAt + 56, frames, heapAt, frames, heapAt} {
		thread = binary.LittleEndian.AppendUint64(thread, w)
	}
	for _, w := range []uint64{heapAt + 24, heapAt + 40, heapAt + 64, 1, heapAt + 64, codeAt + 512, heapAt, heapAt + 8, 4, frames, heapAt, frames, heapAt, heapAt, dataAt + 64} {
		run = binary.LittleEndian.AppendUint64(run, w)
	}
	f.Add(thread, []byte(m.data[:256]), []byte(m.code), uint16(0), run)
	f.Fuzz(func(t *testing.T, words, data, code []byte, flags uint16, run []byte) {
		m := newMade()
		copy(m.code, code)
		copy(m.data, data)
		for len(words) >= 8 && len(m.words) < 4096 {
			m.words = append(m.words, binary.LittleEndian.Uint64(words))
			words = words[8:]
		}
		s := m.snapshot()
		s.Blocks[0].Flags |= flags
		s.Stable = append(s.Stable, m.words[:min(4, len(m.words))]...)
		s.AtRest, s.Running = len(run) > 0, runningFrom(run)
		r, err := Analyse(s, 0)
		if (r == nil) == (err == nil) {
			t.Fatalf("%v and %v", r, err)
		}
		if err != nil {
			return
		}
		if err := r.Check(); err != nil {
			t.Error(err)
		}
		text, err := json.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range r.Tree {
			if b.Retained > r.Bytes || b.Bytes > b.Retained {
				t.Errorf("a branch has %+v of %d bytes: %s", b, r.Bytes, text)
			}
		}
		if flags&(ghc.BlockCompact|ghc.BlockPinned) == 0 && r.Bytes > 8*uint64(len(m.words)) {
			t.Errorf("%d bytes of %d words", r.Bytes, len(m.words))
		}
	})
}

// A thread that waits counts as alive once what it waits for is reached, and one that stood in no queue any more runs.
func TestStuck(t *testing.T) {
	m := newMade()
	tso, mvar, link, indStatic, caf := m.table(ghc.TSO, 0, 0), m.table(ghc.MVar, 3, 0), m.table(ghc.Prim, 2, 0), m.table(ghc.IndStatic, 0, 0), m.table(ghc.ThunkStatic, 0, 0)
	stack, stop := m.table(ghc.Stack, 0, 0), m.table(ghc.StopFrame, 0, 0)
	used := m.static(64, 0)
	ret := m.table(ghc.RetSmall, 1, used) // a frame with a pointer, whose code refers to the CAF
	l, _ := ghc.LayoutOf("9.0.2", false, true)
	thread := func(id uint64, why ghc.WhyBlocked, on, queue, holds uint64) uint64 {
		frames := []uint64{ret, holds, stop}
		at := m.closure(append([]uint64{stack, uint64(len(frames)) + 1, 0, 0}, frames...)...)
		m.words[(at-heapAt)/8+2] = at + 8*4
		w := make([]uint64, l.TSOWords)
		w[0], w[1], w[l.TSOStackObj/8], w[l.TSOID/8], w[l.TSOBlockInfo/8] = tso, queue, at, id, on
		w[l.WhyBlocked/8] |= uint64(why) << (l.WhyBlocked % 8 * 8)
		return m.closure(w...)
	}
	queue := m.closure(link, 0, 0)
	global, chained, lost, apart := m.closure(mvar, 0, 0, 0), m.closure(mvar, 0, 0, 0), m.closure(mvar, 0, 0, 0), m.closure(mvar, 0, 0, 0)
	thread(1, ghc.BlockedOnMVar, global, queue, chained) // the CAF leads to what it waits for
	thread(2, ghc.BlockedOnMVar, chained, queue, 0)      // the first has what it waits for
	third := thread(3, ghc.BlockedOnMVar, lost, queue, lost)
	thread(4, ghc.BlockedOnMVarRead, lost, queue, 0)
	thread(5, ghc.BlockedOnMVar, apart, 0, 0) // it has left the queue
	thread(6, ghc.NotBlocked, 0, 0, third)    // it has the ThreadId of the third
	m.static(64, indStatic, global, 0, caf)
	r, err := Analyse(m.snapshot(), 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Check(); err != nil {
		t.Error(err)
	}
	want := []Stuck{{ID: 3, Why: ghc.BlockedOnMVar, Held: true}, {ID: 4, Why: ghc.BlockedOnMVarRead}}
	if !slices.Equal(r.Stuck, want) || r.StuckThreads != 2 {
		t.Errorf("stuck are %+v; they are %+v", r.Stuck, want)
	}
}
