package graph

import (
	"cmp"
	"slices"

	"ccagent/internal/ghc"
)

// This file finds threads that nothing can wake. A thread that waits for an MVar goes on if another puts a value there, and no other
// can to which nothing leads: not from CAFs, stable and weak pointers, and not from threads that can run, or can be woken themselves. So threads
// count as alive from those on that do not wait, and one that waits becomes so when what it waits for is reached. The run-time
// system does the same at each major collection (tidyThreadList in rts/sm/MarkWeak.c), but for a thread whose ThreadId something
// has: it takes such a one for alive, and does not tell it (BlockedIndefinitelyOnMVar).
//
// What is not certain counts as reached: all CAFs that any code refers to, also that of a thread that cannot be woken.

// Stuck is a thread that only an exception can end or wake.
type Stuck struct {
	ID    uint64
	Label string         `json:",omitempty"`
	Why   ghc.WhyBlocked // what it waits for
	// Held is set if something alive has its ThreadId. If not, the next major collection throws it an exception.
	Held bool
}

// maxStuck bounds the threads that are named.
const maxStuck = 1000

// sleeper is a thread, with what says for what it waits.
type sleeper struct {
	Stuck
	node  uint32
	words []uint64
}

// waker follows what is alive.
type waker struct {
	*analysis
	reached []uint64 // a bit for each node
	alive   []bool   // by thread
	of      map[uint32]int
	// waiting are the threads that wait for a node, behind those that wait for what a thread does, by that thread's node.
	waiting, behind map[uint32][]int
	todo            []uint32
}

// stuck finds the threads that nothing can wake, by their ids.
func (a *analysis) stuck() []Stuck {
	w := &waker{
		analysis: a, reached: make([]uint64, len(a.edges.first)/64+1), alive: make([]bool, len(a.sleepers)),
		of: make(map[uint32]int, len(a.sleepers)), waiting: map[uint32][]int{}, behind: map[uint32][]int{},
	}
	for i := range a.sleepers {
		w.of[a.sleepers[i].node] = i
	}
	var ready []int
	for i := range a.sleepers {
		objects, owner, ok := a.awaits(&a.sleepers[i])
		_, known := w.of[owner]
		switch {
		case !ok || owner != 0 && !known: // what a thread does that was not looked at is not known
			ready = append(ready, i)
		case owner != 0:
			w.behind[owner] = append(w.behind[owner], i)
		default:
			for _, node := range objects {
				w.waiting[node] = append(w.waiting[node], i)
			}
		}
	}
	for _, i := range ready { // now that all who wait for them are known
		w.wake(i)
	}
	for i := range a.roots {
		if r := &a.roots[i]; r.Kind != Thread {
			w.reach(r.node)
		}
	}
	for _, node := range a.finalizers {
		w.reach(node)
	}
	for len(w.todo) > 0 {
		at := w.todo[len(w.todo)-1]
		w.todo = w.todo[:len(w.todo)-1]
		for _, to := range a.edges.of(at) {
			w.reach(to)
		}
	}
	var all []Stuck
	for i := range a.sleepers {
		if s := a.sleepers[i].Stuck; !w.alive[i] {
			s.Held = w.was(a.sleepers[i].node)
			all = append(all, s)
		}
	}
	slices.SortFunc(all, func(x, y Stuck) int { return cmp.Compare(x.ID, y.ID) })
	return all
}

func (w *waker) was(node uint32) bool { return w.reached[node/64]>>(node%64)&1 != 0 }

// reach takes a node to which something alive leads. That is not enough for a thread to run.
func (w *waker) reach(node uint32) {
	if w.was(node) {
		return
	}
	w.reached[node/64] |= 1 << (node % 64)
	for _, i := range w.waiting[node] {
		w.wake(i)
	}
	if _, is := w.of[node]; !is {
		w.todo = append(w.todo, node)
	}
}

// wake takes a thread that can run, or will.
func (w *waker) wake(i int) {
	if w.alive[i] {
		return
	}
	w.alive[i] = true
	node := w.sleepers[i].node
	w.todo = append(w.todo, node)
	for _, k := range w.behind[node] {
		w.wake(k)
	}
}

// awaits finds what a thread waits for: closures, of which it is enough that one is reached, or what another thread does.
// It reports false if the thread can run, if something beside Haskell code wakes it, or if it is being woken.
func (a *analysis) awaits(s *sleeper) (objects []uint32, owner uint32, ok bool) {
	l, h := &a.layout, a.layout.header
	word := func(w []uint64, i int) uint64 {
		if i < len(w) {
			return w[i]
		}
		return 0
	}
	info := word(s.words, int(l.TSOBlockInfo)/8) &^ pointerTag
	switch s.Why {
	case ghc.BlockedOnMVar, ghc.BlockedOnMVarRead:
		// One that was taken out of the queue, and is to be woken by its own capability, has no link any more.
		object, link := a.nodes.node(info), a.nodes.node(word(s.words, h)&^pointerTag)
		return []uint32{object}, 0, object != 0 && link != 0
	case ghc.BlockedOnSTM:
		objects = a.variables(word(s.words, int(l.TSOTRec)/8))
		return objects, 0, len(objects) > 0
	case ghc.BlockedOnBlackHole:
		hole := a.nodes.closure(word(a.nodes.closure(info), h+ghc.MessageBH/8) &^ pointerTag)
		if len(hole) <= h || a.tables.of(hole[0]).kind != ghc.Blackhole || hole[h]&pointerTag != 0 {
			return nil, 0, false // it has its value
		}
		owner := hole[h]
		if queue := a.nodes.closure(owner); len(queue) > 0 && a.tables.of(queue[0]).kind == ghc.BlockingQueue {
			owner = word(queue, h+ghc.QueueOwner/8)
		}
		return a.behind(owner)
	case ghc.BlockedOnMsgThrowTo:
		const fields = 4 // of a message that was not taken yet; one that was has one
		message := a.nodes.closure(info)
		if len(message) == 0 || a.tables.of(message[0]).info.Ptrs != fields {
			return nil, 0, false
		}
		return a.behind(word(message, h+ghc.MessageTarget/8))
	}
	return nil, 0, false
}

// behind is what a thread waits for that another has to do.
func (a *analysis) behind(owner uint64) ([]uint32, uint32, bool) {
	owner &^= pointerTag
	w := a.nodes.closure(owner)
	node := a.nodes.node(owner)
	return nil, node, node != 0 && len(w) > 0 && a.tables.of(w[0]).kind == ghc.TSO
}

// variables are those that a transaction has read and waits for; none if one has another value by now, or cannot be read: then it is woken.
func (a *analysis) variables(trec uint64) (nodes []uint32) {
	h := a.layout.header
	size := 3 // variable, expected and new value
	if a.threaded {
		size = 4 // number of updates
	}
	head := a.nodes.closure(trec &^ pointerTag)
	if len(head) <= h+ghc.TRecCurrent/8 {
		return nil
	}
	at := head[h+ghc.TRecCurrent/8]
	for range maxTRecChunks {
		if a.chunks++; a.chunks > maxChunks {
			return nil
		}
		chunk := a.nodes.closure(at &^ pointerTag)
		if len(chunk) < h+2 || a.tables.of(chunk[0]).kind != ghc.TRecChunk {
			return nodes // the last has none before it
		}
		for i := range int(min(chunk[h+1], ghc.TRecChunkEntries)) {
			e := h + ghc.TRecEntries/8 + i*size
			if e+1 >= len(chunk) {
				return nil
			}
			variable := a.nodes.closure(chunk[e] &^ pointerTag)
			node := a.nodes.node(chunk[e] &^ pointerTag)
			if node == 0 || len(variable) <= h || a.tables.of(variable[0]).kind != ghc.TVar || variable[h] != chunk[e+1] {
				return nil
			}
			nodes = append(nodes, node)
		}
		at = chunk[h]
	}
	return nil
}

// maxTRecChunks bounds the chunks of a transaction that are read, maxChunks those of all: of threads beyond that nothing is said.
const (
	maxTRecChunks = 1 << 12
	maxChunks     = 1 << 20
)
