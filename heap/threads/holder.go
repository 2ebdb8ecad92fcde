package threads

import "ccagent/internal/ghc"

// Holder is a thread that can be seen to be able to end the wait for an MVar: its stack refers to
// the MVar, and it does not wait for it itself; or, if Handler is set, does so in vain. An MVar does not know who took its value.
type Holder struct {
	Thread int // index in Reading.Threads
	// Handler is set when a handler of exceptions on the thread's stack refers to the MVar: it
	// is to put the value back if the thread is thrown an exception, as withMVar, modifyMVar,
	// bracket and finally do. Without it the thread may as well be one that will wait for the MVar.
	Handler bool
}

// How far a handler is followed to the MVar that it puts a value into: bracket's has it two closures
// away.
const (
	handlerDepth    = 3
	handlerClosures = 64
	handlerWords    = 32 // of one closure
)

// scan looks for MVars that threads wait for in a frame of a stack.
func (w *walker) scan(c *chunk, sp, size uint64, kind ghc.ClosureType) {
	if len(w.g.objects) == 0 || size > handlerWords*8 {
		return
	}
	for n := uint64(1); n < size; n++ {
		word, ok := w.word(c, sp+8*n)
		if !ok {
			return
		}
		if kind == ghc.CatchFrame {
			left := handlerClosures
			w.follow(word, handlerDepth, &left)
		} else if !w.hold(word, false) {
			w.box(word)
		}
	}
}

// box looks for an MVar in the constructor that programs have around it.
func (w *walker) box(word uint64) {
	if word&pointerTag != 1 || word < pageBytes || *w.budget <= 0 {
		return
	}
	*w.budget--
	at := untag(word)
	pointer, err := w.r.word(at)
	if err != nil || !w.r.info(pointer).kind.In(ghc.Constr, ghc.ConstrNoCAF) {
		return
	}
	if inside, err := w.r.field(at, 0); err == nil {
		w.hold(inside, false)
	}
}

// follow looks for MVars that a closure refers to.
func (w *walker) follow(word uint64, depth int, left *int) {
	at := untag(word)
	if *left--; *left < 0 || at < pageBytes || w.r.program.Code(at) {
		return
	}
	if w.hold(word, true) || depth == 0 {
		return
	}
	pointer, err := w.r.word(at)
	if err != nil {
		return
	}
	n, skip := payload(w.r.info(pointer))
	at += uint64(w.r.layout.Header) + 8*skip
	if n == partial {
		// A partial application says itself how many arguments follow its arity and function.
		head, err := w.r.word(at)
		if err != nil {
			return
		}
		n, at = 1+head>>32, at+8
	}
	for k := range min(n, handlerWords) {
		next, err := w.r.word(at + 8*k)
		if err != nil {
			return
		}
		w.follow(next, depth-1, left)
	}
}

// partial stands for a payload whose length is in the closure.
const partial = ^uint64(0)

// payload says how many words of a closure may be pointers, and how many behind the header come
// before them. Closures that change are not followed: what they hold is not the handler's own.
func payload(i info) (n, skip uint64) {
	n = uint64(uint32(i.layout))
	switch {
	case i.kind.In(ghc.Constr, ghc.Fun02):
		return n, 0
	case i.kind.In(ghc.Thunk, ghc.Thunk02):
		return n, 1
	case i.kind == ghc.AP:
		return partial, 1
	case i.kind == ghc.PAP:
		return partial, 0
	}
	return 0, 0
}

// hold notes that the thread refers to what may be an MVar that others wait for.
func (w *walker) hold(word uint64, handler bool) bool {
	n, known := w.g.objects[word]
	if !known || w.g.Objects[n].Kind != MVar {
		return false
	}
	o := &w.g.Objects[n]
	if !handler && w.g.Threads[w.thread].On == n {
		return true // it refers to what it waits for
	}
	for k := range o.Holders {
		if h := &o.Holders[k]; h.Thread == w.thread {
			h.Handler = h.Handler || handler
			return true
		}
	}
	if len(o.Holders) < maxHolders {
		o.Holders = append(o.Holders, Holder{w.thread, handler})
	}
	return true
}

// maxHolders bounds the holders that are kept of an MVar.
const maxHolders = 1 << 10
