package threads

import (
	"slices"

	"ccagent/internal/ghc"
)

// Kind is what threads wait for.
type Kind uint8

const (
	MVar      Kind = iota
	BlackHole      // a thunk that a thread evaluates
	Exception      // a thread that is to take an exception
	STM            // a change of the variables that a transaction has read
)

// Object is what threads wait for. Objects of the kind STM are of one thread each.
type Object struct {
	Kind    Kind
	Address uint64
	// Full is set of an MVar that has a value.
	Full bool
	// Owner is the thread that evaluates a black hole, or that is to take an exception: its
	// index in Reading.Threads, −1 if it is not known.
	Owner int
	// Code is the info pointer of the frame that the owner's stack has on the update frame of a black hole: the
	// code with which its evaluation goes on when what is above has its value. 0 if there is none.
	Code uint64
	// Queue are the threads that wait for an MVar, first come first, as indices.
	Queue []int
	// Holders are the threads that can be seen to be able to end the wait for an MVar; see Holder.
	Holders []Holder
	// Variables are the addresses of the variables that a transaction has read, at most
	// maxVariables; Entries is their number.
	Variables []uint64
	Entries   int
	// Stood is set by Check.
	Stood bool
}

// maxVariables bounds the variables that are kept of a transaction, maxEntries those that are read.
const (
	maxVariables = 64
	maxEntries   = 1 << 16
)

// object finds what a thread waits for.
func (r *Reader) object(g *Reading, i int) {
	t := &g.Threads[i]
	if t.Ended() {
		return
	}
	o := Object{Owner: -1}
	var err error
	switch t.Why {
	case ghc.BlockedOnMVar, ghc.BlockedOnMVarRead:
		o.Kind, o.Address = MVar, t.BlockInfo
	case ghc.BlockedOnBlackHole:
		o.Kind = BlackHole
		o.Address, err = r.field(t.BlockInfo, ghc.MessageBH)
	case ghc.BlockedOnMsgThrowTo:
		o.Kind = Exception
		o.Address, err = r.field(t.BlockInfo, ghc.MessageTarget)
	case ghc.BlockedOnSTM:
		o.Kind, o.Address = STM, t.trec
	default:
		return
	}
	if err != nil {
		return
	}
	if n, known := g.objects[o.Address]; known && g.Objects[n].Kind == o.Kind {
		t.On = n
		return
	}
	if !r.examine(g, &o) {
		return
	}
	t.On = len(g.Objects)
	g.objects[o.Address] = t.On
	g.Objects = append(g.Objects, o)
}

// examine reads the object at o.Address; false if it is none of its kind.
func (r *Reader) examine(g *Reading, o *Object) bool {
	o.Owner = -1
	switch o.Kind {
	case MVar:
		return r.mvar(g, o)
	case BlackHole:
		return r.blackHole(g, o)
	case Exception:
		o.Owner = g.Thread(o.Address)
		return o.Owner >= 0
	}
	return r.transaction(o)
}

// mvar reads an MVar with its queue.
func (r *Reader) mvar(g *Reading, o *Object) bool {
	if !r.kindOf(o.Address).In(ghc.MVar, ghc.MVarDirty) {
		return false // locked, or it has been freed
	}
	value, err := r.field(o.Address, ghc.MVarValue)
	if err != nil {
		return false
	}
	o.Full = value != g.end
	at, err := r.field(o.Address, ghc.MVarHead)
	// A thread that was thrown an exception leaves its place in the queue empty.
	for n := 0; err == nil && at != g.end && n < 2*len(g.Threads); n++ {
		var tso uint64
		if r.kindOf(at) == ghc.Prim {
			if tso, err = r.field(at, ghc.MVarQueueTSO); err != nil {
				break
			}
			if i := g.Thread(tso); i >= 0 {
				o.Queue = append(o.Queue, i)
			}
		}
		at, err = r.field(at, ghc.MVarQueueLink)
	}
	return true
}

// blackHole reads who evaluates a thunk.
func (r *Reader) blackHole(g *Reading, o *Object) bool {
	to, ok := r.evaluator(o.Address)
	if ok && to != 0 {
		o.Owner = g.Thread(to)
	}
	return ok
}

// evaluator returns the address of the thread that evaluates a thunk, 0 if the thunk has its value. It reports false if it is no black hole.
func (r *Reader) evaluator(thunk uint64) (tso uint64, ok bool) {
	if k := r.kindOf(thunk); k != ghc.Blackhole && k != ghc.Ind {
		return 0, false
	}
	to, err := r.field(thunk, ghc.Indirectee)
	if err != nil {
		return 0, false
	}
	if to&pointerTag != 0 {
		return 0, true
	}
	if r.kindOf(to) == ghc.BlockingQueue {
		if to, err = r.field(to, ghc.QueueOwner); err != nil {
			return 0, false
		}
	}
	return to, true
}

// transaction reads which variables a transaction has read.
func (r *Reader) transaction(o *Object) bool {
	chunk, err := r.field(o.Address, ghc.TRecCurrent)
	entry := uint64(24)
	if r.program.Threaded {
		entry = 32
	}
	for n := 0; err == nil && r.kindOf(chunk) == ghc.TRecChunk && n < maxEntries; {
		var used uint64
		if used, err = r.field(chunk, ghc.TRecNextEntry); err != nil {
			break
		}
		used = min(used, ghc.TRecChunkEntries)
		for e := range used {
			variable, err := r.field(chunk, ghc.TRecEntries+int(e*entry))
			if err == nil && r.kindOf(variable) == ghc.TVar {
				o.Entries++
				if len(o.Variables) < maxVariables {
					o.Variables = append(o.Variables, variable)
				}
			}
			n++
		}
		n++
		chunk, err = r.field(chunk, ghc.TRecPrevChunk)
	}
	return o.Entries > 0
}

// same reports whether an object is as it was.
func (o *Object) same(now *Object) bool {
	return o.Full == now.Full && o.Owner == now.Owner && o.Entries == now.Entries && slices.Equal(o.Queue, now.Queue) &&
		slices.Equal(o.Variables, now.Variables)
}
