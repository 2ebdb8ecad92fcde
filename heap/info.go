package heap

import (
	"encoding/binary"
	"io"

	"ccagent/internal/ghc"
)

// Info is what an info table says of its closures.
type Info struct {
	Type ghc.ClosureType
	// Ptrs and NonPtrs count the words of the payload, for types whose payload is fixed.
	Ptrs, NonPtrs uint32
}

// maxPayload bounds the words of a fixed payload: the compiler asks for at most a block at once.
const maxPayload = ghc.BlockBytes / 8

// tableBytes is how much of an info table is read: layout, type and the reference to static
// closures, which end at the info pointer.
const tableBytes = ghc.InfoLayout

// InfoBytes is how many bytes before an info pointer ReadInfo reads.
const InfoBytes = tableBytes

// InfoAlignment is that of info pointers, in bytes: as of instructions on arm64, where they are not all
// aligned to 8 as those of x86-64 are.
const InfoAlignment = 4

// ReadInfo reads the info table of an info pointer from memory or a file in which that is its
// address. It returns false if it cannot be read, or is not one that closures in the heap may
// have.
func ReadInfo(memory io.ReaderAt, pointer uint64) (Info, bool) {
	var b [tableBytes]byte
	if pointer%InfoAlignment != 0 || pointer < tableBytes || pointer > 1<<62 {
		return Info{}, false
	}
	if _, err := memory.ReadAt(b[:], int64(pointer-tableBytes)); err != nil {
		return Info{}, false
	}
	return decodeInfo(&b)
}

func decodeInfo(b *[tableBytes]byte) (Info, bool) {
	i := Info{
		Type:    ghc.ClosureType(binary.LittleEndian.Uint32(b[tableBytes-ghc.InfoType:])),
		Ptrs:    binary.LittleEndian.Uint32(b[0:]),
		NonPtrs: binary.LittleEndian.Uint32(b[4:]),
	}
	return i, i.plausible()
}

// plausible reports whether closures of the heap can have the table. Static closures and stack
// frames are not in the heap.
func (i Info) plausible() bool {
	payload := [2]uint32{i.Ptrs, i.NonPtrs}
	switch t := i.Type; {
	case t == ghc.Constr, t == ghc.ConstrNoCAF, t == ghc.Fun, t == ghc.Thunk, t.In(ghc.MVar, ghc.TVar),
		t.In(ghc.MutVar, ghc.MutPrim), t == ghc.Blackhole, t == ghc.BlockingQueue:
		return i.Ptrs <= maxPayload && i.NonPtrs <= maxPayload
	case t.In(ghc.Constr10, ghc.Constr02):
		return payload == fixedPayloads[t-ghc.Constr10]
	case t.In(ghc.Fun10, ghc.Fun02):
		return payload == fixedPayloads[t-ghc.Fun10]
	case t.In(ghc.Thunk10, ghc.Thunk02):
		return payload == fixedPayloads[t-ghc.Thunk10]
	case t == ghc.ThunkSelector:
		return i.Ptrs <= maxPayload // the number of the field
	case t.In(ghc.BCO, ghc.Ind), t.In(ghc.ArrWords, ghc.MutArrFrozen), t.In(ghc.TSO, ghc.TRecChunk),
		t.In(ghc.Whitehole, ghc.Continuation):
		return true
	}
	return false
}

// fixedPayloads holds the pointers and other words of the types that are numbered by them.
var fixedPayloads = [...][2]uint32{{1, 0}, {0, 1}, {2, 0}, {1, 1}, {0, 2}}

// maxName bounds the description of a constructor, in bytes.
const maxName = 512

// ConstructorName reads the description that the info table of a constructor leads to:
// "containers-0.6.4.1:Data.Map.Internal.Bin". It is empty if it cannot be read.
func ConstructorName(memory io.ReaderAt, pointer uint64, profiled bool) string {
	at := uint64(ghc.ConstrDesc)
	if profiled {
		at += ghc.InfoProfiled
	}
	var b [4]byte
	if pointer < at || pointer > 1<<62 {
		return ""
	}
	if _, err := memory.ReadAt(b[:], int64(pointer-at)); err != nil {
		return ""
	}
	address := pointer + uint64(int64(int32(binary.LittleEndian.Uint32(b[:]))))
	if address > 1<<62 {
		return ""
	}
	var name [maxName]byte
	n, _ := memory.ReadAt(name[:], int64(address)) // as much as there is
	for i, c := range name[:n] {
		if c == 0 {
			return string(name[:i])
		}
		if c < ' ' {
			return ""
		}
	}
	return ""
}
