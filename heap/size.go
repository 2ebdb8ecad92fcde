package heap

import "ccagent/internal/ghc"

// Layout has the sizes that differ between releases and ways, in words.
type Layout struct {
	Header    int // of a StgHeader
	TSO       int
	TRecChunk int

	tsoID, tsoStackTotal int // where a TSO has them, in bytes
}

// threadStack reads what a TSO says of its stack. It has all words that the layout says.
func (l *Layout) threadStack(tso []uint64) ThreadStack {
	var t ThreadStack
	if id := l.tsoID / 8; id < len(tso) {
		t.ID = tso[id]
	}
	if at := l.tsoStackTotal / 8; at < len(tso) {
		t.Words = tso[at] >> (8 * (l.tsoStackTotal % 8)) & (1<<32 - 1)
	}
	return t
}

// LayoutOf gives the sizes of a release and way. Of an unknown release they are those of the
// newest, and known is false.
func LayoutOf(version string, profiled, threaded bool) (l Layout, known bool) {
	g, known := ghc.LayoutOf(version, profiled, threaded)
	return Layout{Header: int(g.Header) / 8, TSO: int(g.TSOWords), TRecChunk: int(g.TRecChunkWords), tsoID: int(g.TSOID), tsoStackTotal: int(g.TSOStackTotal)}, known
}

// Size returns the words of the closure that words begin with, whose info table is i. It
// returns false if the closure's own length cannot be: it does not fit into an int, or into the
// words for a type that says its length in a word that is not there.
func (l *Layout) Size(i Info, words []uint64) (size int, ok bool) {
	h := l.Header
	// word and half read a length in the closure, which may be anything.
	word := func(at int) uint64 {
		if at >= len(words) {
			return maxWords + 1
		}
		return words[at]
	}
	low := func(at int) uint64 { return uint64(uint32(word(at))) }
	high := func(at int) uint64 { return word(at) >> 32 }
	fixed, more := 0, uint64(0)
	thunk := h + 1 // a thunk has a word for the result's address behind its header
	switch t := i.Type; {
	case t == ghc.ThunkSelector:
		fixed = thunk + 1
	case t.In(ghc.Thunk, ghc.Thunk02):
		fixed, more = thunk, uint64(i.Ptrs)+uint64(i.NonPtrs)
	case t == ghc.AP: // arity and arguments, the function, the arguments
		fixed, more = thunk+2, high(thunk)
	case t == ghc.PAP:
		fixed, more = h+2, high(h)
	case t == ghc.APStack: // size, the function, the stack
		fixed, more = thunk+2, word(thunk)
	case t == ghc.Ind:
		fixed = h + 1
	case t == ghc.BCO: // the fourth word has arity and size
		fixed, more = 0, high(h+3)
	case t == ghc.ArrWords: // bytes, then these
		fixed = h + 1
		if b := word(h); b <= 8*maxWords {
			more = (b + 7) / 8
		} else {
			more = maxWords + 1
		}
	case t.In(ghc.MutArr, ghc.MutArrFrozen): // elements, size with the card table
		fixed, more = h+2, word(h+1)
	case t.In(ghc.SmallArr, ghc.SmallArrFrozen):
		fixed, more = h+1, word(h)
	case t == ghc.TSO:
		fixed = l.TSO
	case t == ghc.Stack: // size and flags, sp
		fixed, more = h+2, low(h)
	case t == ghc.TRecChunk:
		fixed = l.TRecChunk
	case t == ghc.Continuation: // mask frame, its offset, size, then the stack
		fixed, more = h+3, word(h+2)
	case t == ghc.Compact, t == ghc.Whitehole:
		return 0, false // in blocks of their own; locked, so that its type is not known
	default:
		fixed, more = h, uint64(i.Ptrs)+uint64(i.NonPtrs)
	}
	if more > maxWords || fixed+int(more) < h {
		return 0, false
	}
	return fixed + int(more), true
}

// maxWords bounds the size of a closure: no heap is larger than the address space.
const maxWords = 1 << 44
