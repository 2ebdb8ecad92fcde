package threads

import (
	"encoding/binary"

	"ccagent/internal/ghc"
)

// Stop says why the walk of a stack ended.
type Stop uint8

const (
	StopRoot     Stop = iota // at the stop frame
	StopBudget               // Limits.StackWords or the number of chunks was spent
	StopMemory               // memory could not be read
	StopNoStack              // the thread's stack is no stack object, or Sp is not in it
	StopNoFrame              // a word in a frame's place is no info pointer of a frame
	StopOverrun              // a frame reaches beyond its chunk
	StopNoTop                // no frame at or near a running thread's Sp
	StopNotTaken             // the thread runs, and its registers were not to be had
	StopMoved                // the thread ran on before it was read
)

// Frame is a frame of a stack.
type Frame struct {
	Info uint64 // its info pointer
	Kind ghc.ClosureType
}

// Stack is a thread's stack.
type Stack struct {
	// Frames are leaf first. If Skipped is not 0, so many words of the stack lie between
	// Frames[:Leaf] and the rest, and are not in it.
	Frames  []Frame
	Leaf    int
	Skipped uint64
	Stop    Stop
	Chunks  int
	Bytes   uint64 // of all chunks
	Used    uint64 // bytes of them that hold frames
}

// maxChunks bounds the chunks of one stack; at 32 KB each they are more than the default limit of
// stacks, 80 % of the memory of a large machine.
const maxChunks = 1 << 20

// maxChunkWords bounds a chunk: a frame that needs more makes a larger one.
const maxChunkWords = 1 << 27

// pieceWords is how much of a stack is read at a time.
const pieceWords = 4 << 10

// chunk is a stack object.
type chunk struct {
	lo, hi, sp uint64 // of its words; sp as it is saved
}

func (r *Reader) chunk(at uint64) (c chunk, ok bool) {
	if r.kindOf(at) != ghc.Stack {
		return c, false
	}
	size, err := r.half(at + uint64(r.layout.StackSize))
	if err != nil || size > maxChunkWords {
		return c, false
	}
	c.lo = at + uint64(r.layout.StackFirst)
	c.hi = c.lo + 8*uint64(size)
	c.sp, err = r.word(at + uint64(r.layout.StackSp))
	return c, err == nil && c.contains(c.sp)
}

func (c *chunk) contains(sp uint64) bool { return sp >= c.lo && sp < c.hi && sp%8 == 0 }

// stack walks the saved stack of a thread.
func (r *Reader) stack(g *Reading, i int, budget *int) {
	t := &g.Threads[i]
	c, ok := r.chunk(binary.LittleEndian.Uint64(t.raw[r.layout.TSOStackObj:]))
	if !ok {
		t.Stack = Stack{Stop: StopNoStack}
		return
	}
	r.walk(g, i, c, budget)
}

// topWords is how far above a running thread's Sp its first frame may be: what is on top of it are
// arguments.
const topWords = 32

// WalkRunning walks the stack of a thread that is held while it runs Haskell code, from its Sp. Thread.Late is then of that stack,
// not of the one that was saved when it was suspended.
func (r *Reader) WalkRunning(g *Reading, i int, sp uint64) {
	r.pages.forget()
	t, late := &g.Threads[i], r.pages.lateUses
	r.walkRunning(g, i, sp, r.limits.StackWords)
	t.Late = t.lateSelf || r.pages.lateUses != late
}

// walkRunning walks that of a thread that runs, at most so many words.
func (r *Reader) walkRunning(g *Reading, i int, sp uint64, words int) {
	t := &g.Threads[i]
	stack, err := r.word(t.Address + uint64(r.layout.TSOStackObj))
	if err != nil {
		t.Stack = Stack{Stop: StopMemory}
		return
	}
	c, ok := r.chunk(stack)
	if !ok || !c.contains(sp) {
		t.Stack = Stack{Stop: StopNoStack}
		return
	}
	for n := 0; n < topWords && c.contains(sp); n++ {
		pointer, err := r.word(sp)
		if err == nil && isFrame(r.info(pointer).kind) {
			budget := words
			c.sp = sp
			r.walk(g, i, c, &budget)
			if t.Stack.Stop == StopRoot || t.Stack.Stop == StopBudget {
				return
			}
		}
		sp += 8
	}
	t.Stack = Stack{Stop: StopNoTop}
}

func isFrame(k ghc.ClosureType) bool {
	return k.In(ghc.RetBCO, ghc.StopFrame) || k.In(ghc.AtomicallyFrame, ghc.CatchSTMFrame) || k == ghc.AnnFrame
}

// walk walks a stack from a chunk's sp on.
func (r *Reader) walk(g *Reading, i int, c chunk, budget *int) {
	w := walker{r: r, g: g, thread: i, budget: budget}
	s := &w.stack
	for {
		s.Chunks++
		s.Bytes += c.hi - c.lo
		s.Used += c.hi - c.sp
		next, done := w.chunk(c)
		if done {
			break
		}
		var ok bool
		if c, ok = r.chunk(next); !ok {
			s.Stop = StopNoStack
			break
		}
		if s.Chunks >= maxChunks {
			s.Stop = StopBudget
			break
		}
	}
	w.finish()
	g.Threads[i].Stack = *s
}

// walker is the walk of one stack.
type walker struct {
	r      *Reader
	g      *Reading
	thread int
	stack  Stack
	budget *int

	words []byte // a piece of the chunk
	at    uint64 // its address
	// root is a ring of the frames that follow the first, with the words that each takes.
	root    []Frame
	sizes   []uint64
	dropped uint64 // words of frames that have left the ring
	n       int    // frames that ever were in it
	above   Frame  // the frame before

	thunk uint64   // whose update frame is looked for; 0 for none
	found [2]Frame // that frame, after the one on it
}

// evaluates notes the code that runs for a black hole that others wait for, if an update frame is that of one.
func (w *walker) evaluates(c *chunk, sp uint64) {
	updatee, ok := w.word(c, sp+uint64(w.r.layout.Header))
	if !ok || !w.above.Kind.In(ghc.RetBCO, ghc.RetFun) {
		return // nothing is on it, or the evaluation of another thunk
	}
	if updatee == w.thunk {
		if pointer, ok := w.word(c, sp); ok {
			w.found = [2]Frame{w.above, {pointer, ghc.UpdateFrame}}
		}
		return
	}
	if n, known := w.g.objects[updatee]; known && w.g.Objects[n].Kind == BlackHole && w.g.Objects[n].Owner == w.thread {
		w.g.Objects[n].Code = w.above.Info
	}
}

// word reads a word of the chunk.
func (w *walker) word(c *chunk, at uint64) (uint64, bool) {
	if !c.contains(at) {
		return 0, false
	}
	if at < w.at || at+8 > w.at+uint64(len(w.words)) {
		n := min(c.hi-at, 8*pieceWords)
		if uint64(cap(w.words)) < n {
			w.words = make([]byte, n)
		}
		w.words, w.at = w.words[:n], at
		if w.r.pages.read(at, w.words) != nil {
			w.words = w.words[:0]
			return 0, false
		}
	}
	return binary.LittleEndian.Uint64(w.words[at-w.at:]), true
}

// chunk walks the frames of a chunk. It returns the stack object below it, or done.
func (w *walker) chunk(c chunk) (next uint64, done bool) {
	r, s := w.r, &w.stack
	w.words = w.words[:0]
	for sp := c.sp; ; {
		if *w.budget <= 0 {
			s.Stop = StopBudget
			return 0, true
		}
		pointer, ok := w.word(&c, sp)
		if !ok {
			s.Stop = StopMemory
			if !c.contains(sp) {
				s.Stop = StopOverrun
			}
			return 0, true
		}
		i := r.info(pointer)
		if !isFrame(i.kind) {
			s.Stop = StopNoFrame
			return 0, true
		}
		size, ok := w.size(&c, sp, pointer, i)
		if !ok || size > (c.hi-sp)/8 {
			s.Stop = StopOverrun
			return 0, true
		}
		if i.kind == ghc.UpdateFrame {
			w.evaluates(&c, sp)
		}
		w.above = Frame{pointer, i.kind}
		w.add(w.above, size)
		w.scan(&c, sp, size, i.kind)
		*w.budget -= int(size)
		switch i.kind {
		case ghc.StopFrame:
			s.Stop = StopRoot
			return 0, true
		case ghc.UnderflowFrame:
			next, ok = w.word(&c, sp+8)
			if !ok {
				s.Stop = StopMemory
			}
			return next, !ok
		}
		sp += 8 * size
	}
}

// size is the number of words of a frame (stack_frame_sizeW).
func (w *walker) size(c *chunk, sp, pointer uint64, i info) (uint64, bool) {
	switch i.kind {
	case ghc.RetFun:
		size, ok := w.word(c, sp+8)
		return 3 + size, ok && size < maxChunkWords
	case ghc.RetBig:
		size, err := w.r.word(pointer + uint64(int64(int32(uint32(i.layout)))))
		return 1 + size, err == nil && size < maxChunkWords
	case ghc.RetBCO:
		bco, ok := w.word(c, sp+8)
		if !ok {
			return 0, false
		}
		size, err := w.r.field(untag(bco), ghc.BCOBitmap)
		return 2 + size, err == nil && size < maxChunkWords
	}
	return 1 + i.layout&ghc.BitmapSize, true
}

// add keeps a frame, if it is one of the first or of the last.
func (w *walker) add(f Frame, words uint64) {
	s, most := &w.stack, w.r.limits.Frames
	switch {
	case len(s.Frames) < most:
		s.Frames = append(s.Frames, f)
		s.Leaf = len(s.Frames)
		return
	case len(w.root) < most:
		w.root, w.sizes = append(w.root, f), append(w.sizes, words)
	default:
		w.dropped += w.sizes[w.n%most]
		w.root[w.n%most], w.sizes[w.n%most] = f, words
	}
	w.n++
}

// finish puts the parts of the stack together.
func (w *walker) finish() {
	if len(w.root) == 0 {
		return
	}
	at := 0
	if w.n > len(w.root) {
		at = w.n % len(w.root)
	}
	w.stack.Frames = append(append(w.stack.Frames, w.root[at:]...), w.root[:at]...)
	w.stack.Skipped = w.dropped
}
