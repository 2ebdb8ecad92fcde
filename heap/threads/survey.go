package threads

import (
	"encoding/binary"
	"fmt"
	"slices"

	"ccagent/internal/ghc"
)

// A Survey looks at the states of all threads while the program runs. It takes a fraction of a
// Reading's time: lists are read in large pieces, and what a thread does now, and its stack, only where
// visit asks for it.
type Survey struct {
	// Threads counts those that have not ended.
	Threads int

	r           *Reader
	generations uint64
	collections uint64
	slept       bool   // all OS threads did when it began
	ahead       pages  // of lists; the reader's own are of one thread
	end         uint64 // the closure that ends lists
	caps        []uint64
	thread      Thread
	scratch     Reading
}

// Survey calls visit with each thread that had not ended when its list was read; the thread is valid
// during the call. asleep reports whether all OS threads of the program sleep; it is asked where the
// capabilities do not show that no collection runs. What was visited is to be believed once Confirm
// says so; an error says that memory could not be read, or holds no lists, as while a collection runs.
func (r *Reader) Survey(s *Survey, generations uint64, asleep func() bool, visit func(t *Thread)) error {
	s.r, s.generations, s.Threads, s.end = r, generations, 0, 0
	s.slept = r.program.Threaded && !s.mutates() && asleep()
	s.caps = s.caps[:0]
	s.ahead.memory, s.ahead.ahead, r.pages.ahead = r.program.Memory, true, false
	s.ahead.forget()
	r.pages.forget()
	heads, collections, err := r.lists(generations)
	if err != nil {
		return err
	}
	s.collections = collections
	left := r.limits.Threads
	for _, head := range heads {
		if err := s.list(head, &left, visit); err != nil {
			return err
		}
	}
	if s.Threads == 0 {
		return ErrMoving // a program has its main thread at least
	}
	return nil
}

// Confirm reports whether no collection has run since the survey began. A collection is counted at its
// end: so none has, if the count is what it was at a moment at which none runs. Where it is not sure
// that none does, it may be later: a busy capability is in the scheduler for moments. ErrMoving says
// that one has run.
func (s *Survey) Confirm(asleep func() bool) (sure bool, err error) {
	s.r.pages.forget()
	if _, now, err := s.r.lists(s.generations); err != nil || now != s.collections {
		return false, ErrMoving
	}
	// The only thread of a collection does not sleep; where there are several, all may for a moment.
	return s.mutates() || (s.slept || !s.r.program.Threaded) && asleep(), nil
}

// mutates reports whether no collection runs: it needs all capabilities, and one of those that were
// seen last runs Haskell code or is nobody's.
func (s *Survey) mutates() bool {
	s.r.pages.forget()
	return slices.ContainsFunc(s.caps, func(at uint64) bool {
		c, err := s.r.capability(at)
		return err == nil && (c.InHaskell || s.r.program.Threaded && c.Task == 0)
	})
}

// list visits the threads of a generation's list. A list that comes back to itself is found by
// Brent's method, with one address remembered.
func (s *Survey) list(at uint64, left *int, visit func(t *Thread)) error {
	r, t := s.r, &s.thread
	for n, mark, known := 1, 2, uint64(0); ; n++ {
		if at%8 != 0 || s.ahead.read(at, t.raw[:8]) != nil {
			return ErrMoving
		}
		kind := r.info(binary.LittleEndian.Uint64(t.raw[:])).kind
		if kind.In(ghc.Constr, ghc.ConstrNoCAF) && (s.end == 0 || s.end == at) {
			s.end = at
			return nil
		}
		if kind != ghc.TSO || at == known {
			return ErrMoving
		}
		if n == mark {
			known, mark = at, 2*mark
		}
		if *left--; *left < 0 {
			return nil
		}
		if err := s.ahead.read(at, t.raw[:r.tsoBytes()]); err != nil {
			return fmt.Errorf("read thread at %#x: %w", at, err)
		}
		next := binary.LittleEndian.Uint64(t.raw[r.layout.Header+ghc.TSOGlobalLink:])
		t.Address, t.On, t.Cap = at, -1, -1
		r.fields(t)
		if c := binary.LittleEndian.Uint64(t.raw[r.layout.TSOCap:]); len(s.caps) < maxCapabilities && !slices.Contains(s.caps, c) {
			s.caps = append(s.caps, c)
		}
		if !t.Ended() {
			s.Threads++
			visit(t)
		}
		at = next
	}
}

// now reads the TSO at an address into t as it is now.
func (s *Survey) now(t *Thread, at uint64) bool {
	t.Address = at
	s.r.pages.forget()
	if s.r.pages.read(at, t.raw[:s.r.tsoBytes()]) != nil {
		return false
	}
	s.r.fields(t)
	return true
}

// Look reads the thread that is visited again: what a list's thread says may be of some moments
// before, since lists are read in large pieces. It reports false if it cannot be read any more.
func (s *Survey) Look() bool { return s.now(&s.thread, s.thread.Address) }

// maxStackWords bounds what is looked at of one stack.
const maxStackWords = 1 << 16

// Stack walks the stack of the thread that was looked at. It reports false if the thread has run since
// then: the stack is not that of its state.
func (s *Survey) Stack() (Stack, bool) {
	r := s.r
	object := s.stackObject(&s.thread)
	c, ok := r.chunk(object)
	if !ok {
		return Stack{Stop: StopNoStack}, s.stood(0)
	}
	s.scratch.Threads = append(s.scratch.Threads[:0], Thread{})
	budget := maxStackWords
	r.walk(&s.scratch, 0, c, &budget)
	return s.scratch.Threads[0].Stack, s.stood(c.sp)
}

func (s *Survey) stackObject(t *Thread) uint64 {
	return binary.LittleEndian.Uint64(t.raw[s.r.layout.TSOStackObj:])
}

// stood reports whether the thread is as it was when it was looked at, and the sp of its stack as it
// was then; 0 where that was not known.
func (s *Survey) stood(sp uint64) bool {
	was := &s.thread
	var now Thread
	if !s.now(&now, was.Address) || now.ID != was.ID || now.Why != was.Why || now.BlockInfo != was.BlockInfo ||
		now.WhatNext != was.WhatNext || s.stackObject(&now) != s.stackObject(was) {
		return false
	}
	if sp == 0 {
		return true
	}
	again, err := s.r.word(s.stackObject(was) + uint64(s.r.layout.StackSp))
	return err == nil && again == sp
}

// evaluatorWords bounds what is looked at of the stack of a thread that evaluates what another waits for.
const evaluatorWords = 1 << 14

// Evaluated looks for the code that evaluates the thunk for which the thread that was looked at waits: the frame that the
// evaluating thread has on the thunk's update frame, and the update frame. Both are of the stack as it was saved when that thread left its
// capability: of one that runs now the update frame is still there, as long as the thunk has no value, and what is on it is code of that
// evaluation, of now or then. It reports false if there is none, as where nothing but another thunk is on the frame, or the wait is no
// longer for that thread.
func (s *Survey) Evaluated() (frames [2]Frame, ok bool) {
	r, t := s.r, &s.thread
	if t.Why != ghc.BlockedOnBlackHole {
		return frames, false
	}
	r.pages.forget()
	thunk, err := r.field(t.BlockInfo, ghc.MessageBH)
	if err != nil {
		return frames, false
	}
	owner, ok := r.evaluator(thunk)
	if !ok || r.kindOf(owner) != ghc.TSO {
		return frames, false
	}
	object, err := r.word(owner + uint64(r.layout.TSOStackObj))
	if err != nil {
		return frames, false
	}
	budget := evaluatorWords
	s.scratch.Threads = s.scratch.Threads[:0]
	w := walker{r: r, g: &s.scratch, budget: &budget, thunk: thunk}
	for w.found[0].Info == 0 {
		c, is := r.chunk(object)
		if !is {
			break
		}
		var done bool
		if object, done = w.chunk(c); done {
			break
		}
	}
	r.pages.forget()
	now, ok := r.evaluator(thunk)
	return w.found, ok && now == owner && w.found[0].Info != 0
}

// Label is the label of the visited thread, empty if it has none or the release keeps none there.
func (s *Survey) Label() string {
	if s.r.layout.TSOLabel == 0 {
		return ""
	}
	return s.r.label(binary.LittleEndian.Uint64(s.thread.raw[s.r.layout.TSOLabel:]))
}
