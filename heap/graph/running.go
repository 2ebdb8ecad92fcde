package graph

import (
	"encoding/binary"

	"ccagent/heap"
	"ccagent/internal/ghc"
)

// This file finds what a thread holds that ran when the program was stopped between collections. What its words mean nobody
// says, so one that is the address of a closure is taken for a pointer to it, and a little garbage may count as held. What is left out
// is in docs/memory.md.

// runs is the running thread for which is holds; nil if there is none.
func (a *analysis) runs(is func(*heap.Running) bool) *heap.Running {
	for i := range a.running {
		if is(&a.running[i]) {
			return &a.running[i]
		}
	}
	return nil
}

// unwritten reports whether a closure is where a running thread allocates: it may be none, and its words those of one that was there
// before.
func (a *analysis) unwritten(at uint64) bool {
	return a.runs(func(run *heap.Running) bool { return at >= run.Filling[0] && at < run.Filling[1] }) != nil
}

// maybe takes words that may be pointers.
func (a *analysis) maybe(words []uint64) {
	for _, p := range words {
		p &^= pointerTag
		if node := a.nodes.node(p); node != 0 {
			a.found(node)
		} else if r := a.modules.find(p); r != nil && r.Data {
			a.static(p)
		}
	}
}

// What lies near Sp may be arguments of a function, or a frame that is being pushed or popped: the frames on the stack are looked for
// from topWords behind Sp on at the latest, and what is up to looseWords behind it is taken for what may be pointers, too.
const (
	topWords   = 32
	looseWords = 64
)

// runningStack takes the stack of a running thread.
func (a *analysis) runningStack(run *heap.Running) {
	a.frame = 0
	top := (run.Sp - run.At) / 8
	if run.Exact && run.Sp >= run.At && top < uint64(len(run.Words)) {
		words := run.Words[top:]
		for i := range min(topWords, len(words)) {
			if a.areFrames(words[i:]) {
				a.frames(words[i:])
				a.maybe(run.Words[:min(int(top)+looseWords, len(run.Words))])
				return
			}
		}
	}
	a.maybe(run.Words)
	for _, w := range run.Words {
		a.codeOf(w)
	}
}

// codeOf takes what the code of a frame refers to, if a word is the info pointer of one. When the frame is returned to, its code uses
// static closures that perhaps nothing else refers to.
func (a *analysis) codeOf(word uint64) {
	if t := a.tables.of(word); isFrame(t.kind) && t.srt != 0 {
		if r := a.modules.find(t.srt); r != nil && r.Data { // else it is code that resembles a frame's
			a.static(t.srt)
		}
	}
}

// areFrames reports whether words are frames up to the end of a stack. It takes nothing of what they refer to.
func (a *analysis) areFrames(w []uint64) bool {
	if !isFrame(a.tables.of(w[0]).kind) {
		return false
	}
	found, dangling, bad := a.found, a.dangling, a.badFrames
	defer func() { a.found, a.dangling, a.badFrames, a.trial = found, dangling, bad, false }()
	a.found, a.trial = func(uint32) {}, true
	a.frames(w)
	return a.badFrames == bad
}

// maxCode bounds the bytes of code that are looked through for the beginning of a procedure.
const maxCode = 64 << 10

// code takes what the code at an address may refer to, which no closure or frame says while it runs. What it refers to
// stands in the info tables of its procedure: of those before it up to that of a function or thunk.
func (a *analysis) code(at uint64) {
	r := a.modules.find(at)
	if r == nil || r.Data {
		return
	}
	from := max(r.Start, at-min(at, maxCode))
	from += -from % heap.InfoAlignment
	if from >= at {
		return
	}
	text := make([]byte, at-from)
	if _, err := a.modules.ReadAt(text, int64(from)); err != nil {
		return
	}
	for p := at &^ (heap.InfoAlignment - 1); p >= from+ghc.InfoLayout; p -= heap.InfoAlignment {
		b := text[p-ghc.InfoLayout-from:]
		kind := ghc.ClosureType(binary.LittleEndian.Uint32(b[8:]))
		head := kind.In(ghc.Fun, ghc.ThunkStatic)
		if !head && !isFrame(kind) {
			continue
		}
		t := a.tables.of(p)
		if t.srt != 0 {
			if d := a.modules.find(t.srt); d == nil || !d.Data {
				continue // these bytes are code
			}
			a.static(t.srt)
		}
		if head && a.isHead(t) {
			return
		}
	}
}

// isHead reports whether an info table is that of a function or thunk, and not code that resembles one.
func (a *analysis) isHead(t *table) bool {
	const most = 1 << 10 // words of a closure
	if uint32(t.layout) > most || t.layout>>32 > most {
		return false
	}
	if !t.kind.In(ghc.Fun, ghc.FunStatic) {
		return true
	}
	f := a.tables.function(t)
	_, fixed := ghc.ArgWords(f.kind)
	return fixed || f.kind <= ghc.ArgBCO
}
