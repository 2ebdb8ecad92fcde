package heap

import "ccagent/internal/ghc"

// Tables looks info tables up. It returns false for a word that is no info pointer of a closure
// in the heap.
type Tables func(pointer uint64) (Info, bool)

// Closure is a closure that a walk has come to.
type Closure struct {
	Pointer uint64 // to its info table
	Info    Info
	// At is the word at which it begins.
	At int
	// Words is the closure's size. Slop counts words behind it that belong to no closure now:
	// what was overwritten was larger, or an array was shrunk.
	Words, Slop int
}

// LeavesSlop reports whether a closure of the type may be all that is left of a larger one: an
// evaluated thunk, or an array that was shrunk.
func LeavesSlop(t ghc.ClosureType) bool {
	return t == ghc.Blackhole || t == ghc.Ind || t == ghc.ArrWords || t.In(ghc.SmallArr, ghc.SmallArrFrozen)
}

// Walk visits the closures that words hold, one after another, from the first word on. It
// returns how many words it could not read as closures: from one whose end is beyond the words,
// or where no info pointer is, to the next info pointer.
//
// A word of what an evaluated thunk held is taken for slop unless it is an info pointer, which
// no closure holds as a value. Memory that a shrunk array has given back may hold closures from
// before, which are then visited as if they were new.
func (l *Layout) Walk(words []uint64, tables Tables, visit func(Closure)) (unread int) {
	var last Closure // not yet visited: the slop behind it is being counted
	flush := func() {
		if last.Words > 0 {
			visit(last)
		}
		last = Closure{}
	}
	for at := 0; at < len(words); {
		info, ok := tables(words[at])
		size := 0
		if ok {
			size, ok = l.Size(info, words[at:])
			ok = ok && size > 0 && size <= len(words)-at
		}
		switch {
		case ok:
			flush()
			last = Closure{Pointer: words[at], Info: info, At: at, Words: size}
			at += size
			continue
		case last.Words > 0 && (words[at] == 0 || LeavesSlop(last.Info.Type)):
			last.Slop++
		default:
			flush()
			unread++
		}
		at++
	}
	flush()
	return unread
}
