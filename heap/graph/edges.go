package graph

import (
	"ccagent/heap"
	"ccagent/internal/ghc"
)

// edges are the pointers between closures: those of node n stand from first[n] to first[n+1].
type edges struct {
	first []uint32
	to    []uint32
}

func (e *edges) of(node uint32) []uint32 { return e.to[e.first[node]:e.first[node+1]] }

// maxEdges bounds the pointers of a heap.
const maxEdges = 1<<32 - 1

// follow finds the pointers of a closure, as the collector does (rts/sm/Scav.c).
func (a *analysis) follow(t *table, w []uint64) {
	h := a.layout.header
	switch k := t.kind; {
	case k.In(ghc.Thunk, ghc.Thunk02):
		a.fields(w, h+1, int(t.info.Ptrs))
	case k == ghc.ThunkSelector:
		a.fields(w, h+1, 1)
	case k == ghc.AP && len(w) >= h+3:
		a.fields(w, h+2, 1)
		a.arguments(w[h+2], w[h+3:])
	case k == ghc.PAP && len(w) >= h+2:
		a.fields(w, h+1, 1)
		a.arguments(w[h+1], w[h+2:])
	case k == ghc.APStack && len(w) >= h+3:
		a.fields(w, h+2, 1)
		a.frames(w[h+3:])
	case k == ghc.Ind, k == ghc.Blackhole:
		a.fields(w, h, 1)
	case k == ghc.BCO: // instructions, literals, pointers
		a.fields(w, h, 3)
	case k == ghc.ArrWords, k == ghc.Compact, k == ghc.Whitehole:
	case k.In(ghc.MutArr, ghc.MutArrFrozen) && len(w) >= h+2:
		a.fields(w, h+2, int(min(w[h], uint64(len(w)))))
	case k.In(ghc.SmallArr, ghc.SmallArrFrozen) && len(w) >= h+1:
		a.fields(w, h+1, int(min(w[h], uint64(len(w)))))
	case k == ghc.TVar: // the value and its watchers
		a.fields(w, h, 2)
	case k == ghc.Weak: // a key holds what is weak of it: see ephemerons
		a.fields(w, h, 1)
	case k == ghc.TSO:
		a.thread(w)
		if run := a.runs(func(run *heap.Running) bool { return run.TSO == a.here }); run != nil {
			a.maybe(run.Held)
		}
	case k == ghc.Stack:
		if run := a.runs(func(run *heap.Running) bool { return run.Stack == a.here }); run != nil {
			a.runningStack(run)
		} else if frames := a.stackOf(w); frames != nil {
			a.frames(frames)
		}
	case k == ghc.TRecChunk && len(w) >= h+2:
		a.fields(w, h, 1)
		size := 3 // variable, expected and new value
		if a.threaded {
			size = 4 // number of updates
		}
		for i := 0; i < int(min(w[h+1], ghc.TRecChunkEntries)); i++ {
			a.fields(w, h+2+i*size, 3)
		}
	case k == ghc.Continuation && len(w) >= h+3:
		a.frames(w[h+3:])
	default: // pointers come first
		a.fields(w, h, int(t.info.Ptrs))
	}
	a.static(t.srt)
}

// fields takes n words as pointers.
func (a *analysis) fields(w []uint64, at, n int) {
	for _, p := range w[min(at, len(w)):min(at+max(n, 0), len(w))] {
		a.pointer(p)
	}
}

// thread finds what a TSO refers to. The lists in which it stands are none of its own.
func (a *analysis) thread(w []uint64) {
	l := &a.layout
	field := func(offset uint16) {
		if i := int(offset) / 8; i < len(w) {
			a.pointer(w[i])
		}
	}
	field(l.TSOStackObj)
	field(l.TSOTRec)
	field(l.TSOTRec + 8) // blocked_exceptions
	field(l.TSOTRec + 16)
	if l.TSOLabel != 0 {
		field(l.TSOLabel)
	}
	switch a.whyOf(w) {
	case ghc.BlockedOnMVar, ghc.BlockedOnMVarRead, ghc.BlockedOnBlackHole, ghc.BlockedOnMsgThrowTo, ghc.BlockedOnSTM:
		field(l.TSOBlockInfo)
	case ghc.BlockedOnRead, ghc.BlockedOnWrite, ghc.BlockedOnDelay:
		// A number, of a file or a time, is none of the heap's addresses.
		if i := int(l.TSOBlockInfo) / 8; l.IOClosures && i < len(w) && a.nodes.node(w[i]) != 0 {
			field(l.TSOBlockInfo)
		}
	}
}

// whyOf is why a thread does not run.
func (a *analysis) whyOf(w []uint64) ghc.WhyBlocked {
	l := &a.layout
	i := int(l.WhyBlocked) / 8
	if i >= len(w) {
		return ghc.NotBlocked
	}
	why := w[i] >> (l.WhyBlocked % 8 * 8)
	if l.WhyBlockedWide {
		return ghc.WhyBlocked(why & (1<<32 - 1))
	}
	return ghc.WhyBlocked(why & (1<<16 - 1))
}

// stackOf returns a stack object's words in use; nil if it contradicts itself.
func (a *analysis) stackOf(w []uint64) []uint64 {
	first, at := int(a.layout.StackFirst)/8, int(a.layout.StackSp)/8
	if len(w) < first {
		return nil
	}
	// Sp is an address within the object itself.
	used := (w[at] - a.here) / 8
	if w[at]%8 != 0 || used < uint64(first) || used > uint64(len(w)) {
		return nil
	}
	return w[used:]
}

// frames takes the frames of a stack, the youngest first.
func (a *analysis) frames(w []uint64) {
	defer func(outer uint64) { a.frame = outer }(a.frame)
	for len(w) > 0 {
		t := a.tables.of(w[0])
		if !isFrame(t.kind) {
			a.badFrames++
			return
		}
		a.frame = t.pointer
		size := 0
		switch t.kind {
		case ghc.RetBig:
			n, bitmap, ok := a.largeBitmap(t.pointer + uint64(int64(int32(uint32(t.layout)))))
			if ok && n < uint64(len(w)) {
				a.masked(w[1:1+n], bitmap)
				size = 1 + int(n)
			}
		case ghc.RetFun: // size, function, arguments
			if len(w) >= 3 && w[1] <= uint64(len(w)-3) {
				a.pointer(w[2])
				a.arguments(w[2], w[3:3+w[1]])
				size = 3 + int(w[1])
			}
		case ghc.RetBCO:
			if len(w) >= 2 {
				a.pointer(w[1])
				if n, ok := a.bcoSize(w[1]); ok && n <= uint64(len(w)-2) {
					a.arguments(w[1], w[2:2+n])
					size = 2 + int(n)
				}
			}
		default:
			if n := int(t.layout & ghc.BitmapSize); n < len(w) {
				a.small(w[1:1+n], t.layout>>bitmapShift)
				size = 1 + n
			}
		}
		a.static(t.srt)
		if size == 0 {
			a.badFrames++
			return
		}
		w = w[size:]
	}
}

// bitmapShift is where the bits of a small bitmap begin, behind its size.
const bitmapShift = 6

// small takes the words whose bit is not set.
func (a *analysis) small(w []uint64, bits uint64) {
	for _, p := range w {
		if bits&1 == 0 {
			a.pointer(p)
		}
		bits >>= 1
	}
}

// masked takes the words whose bit in a large bitmap is not set.
func (a *analysis) masked(w []uint64, bitmap func(word int) uint64) {
	var bits uint64
	for i, p := range w {
		if i%64 == 0 {
			bits = bitmap(i / 64)
		}
		if bits&1 == 0 {
			a.pointer(p)
		}
		bits >>= 1
	}
}

// largeBitmap reads a StgLargeBitmap of a module. Words that cannot be read are taken for no
// pointers.
func (a *analysis) largeBitmap(at uint64) (size uint64, bitmap func(int) uint64, ok bool) {
	size, ok = a.modules.word(at)
	return size, func(i int) uint64 {
		if w, ok := a.modules.word(at + 8 + 8*uint64(i)); ok {
			return w
		}
		return ^uint64(0)
	}, ok
}

// bcoSize is how many words the bitmap of a byte code object describes.
func (a *analysis) bcoSize(bco uint64) (uint64, bool) {
	w := a.nodes.closure(bco &^ pointerTag)
	if at := a.layout.header + ghc.BCOBitmap/8; at < len(w) {
		return w[at], true
	}
	return 0, false
}

// arguments takes the arguments of a function, of which there may be fewer than it wants.
func (a *analysis) arguments(fun uint64, w []uint64) {
	fun &^= pointerTag
	var pointer uint64
	if own := a.nodes.closure(fun); own != nil {
		pointer = own[0]
	} else {
		pointer, _ = a.modules.word(fun)
	}
	t := a.tables.of(pointer)
	switch {
	case t.kind == ghc.BCO:
		own := a.nodes.closure(fun)
		first := a.layout.header + ghc.BCOBitmap/8 + 1
		a.masked(w, func(i int) uint64 {
			if first+i < len(own) {
				return own[first+i]
			}
			return ^uint64(0)
		})
		return
	case !t.kind.In(ghc.Fun, ghc.FunStatic):
		a.badFrames++
		return
	}
	f := a.tables.function(t)
	switch f.kind {
	case ghc.ArgGen:
		a.small(w, f.bitmap>>bitmapShift)
	case ghc.ArgGenBig:
		if _, bitmap, ok := a.largeBitmap(t.pointer + uint64(int64(int32(uint32(f.bitmap))))); ok {
			a.masked(w, bitmap)
		}
	default:
		if mask, ok := ghc.ArgPointers(f.kind); ok {
			a.small(w, ^mask)
		}
	}
}
