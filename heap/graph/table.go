package graph

import (
	"encoding/binary"

	"ccagent/heap"
	"ccagent/internal/ghc"
)

// table is an info table, with what the collector needs of it.
type table struct {
	pointer uint64
	kind    ghc.ClosureType // 0 is none
	layout  uint64
	srt     uint64 // static closure that the code refers to; 0 for none
	inHeap  bool   // closures of the heap can have it
	info    heap.Info
	fun     function
	index   uint32 // of its nodes' type, from 1; 0 until it has one
}

// function says how the arguments of a function lie in a partial application, or on the stack.
type function struct {
	read   bool
	kind   uint32 // fun_type
	bitmap uint64
}

// maxTables bounds how many info tables are distinguished.
const maxTables = 1 << 18

// tables reads and remembers info tables.
type tables struct {
	modules  *modules
	profiled bool
	known    map[uint64]*table
	last     *table
}

var noTable = &table{}

func (t *tables) of(pointer uint64) *table {
	if t.last != nil && t.last.pointer == pointer {
		return t.last
	}
	k := t.known[pointer]
	if k == nil {
		k = t.read(pointer)
		if len(t.known) >= maxTables {
			return k
		}
		t.known[pointer] = k
	}
	t.last = k
	return k
}

// hasSRT reports whether the last word of an info table of the type leads to static closures. Of a
// constructor it is its tag.
func hasSRT(k ghc.ClosureType) bool {
	return k.In(ghc.Fun, ghc.ThunkStatic) || isFrame(k)
}

func isFrame(k ghc.ClosureType) bool {
	return k.In(ghc.RetBCO, ghc.StopFrame) || k.In(ghc.AtomicallyFrame, ghc.CatchSTMFrame) || k == ghc.AnnFrame
}

func (t *tables) read(pointer uint64) *table {
	if pointer%heap.InfoAlignment != 0 || pointer < ghc.InfoLayout || pointer > 1<<62 {
		return noTable
	}
	region := t.modules.find(pointer - ghc.InfoLayout)
	if region == nil || region.Data { // code has it next to it
		return noTable
	}
	var b [ghc.InfoLayout]byte
	if _, err := t.modules.ReadAt(b[:], int64(pointer-ghc.InfoLayout)); err != nil {
		return noTable
	}
	k := &table{
		pointer: pointer,
		layout:  binary.LittleEndian.Uint64(b[:]),
		kind:    ghc.ClosureType(binary.LittleEndian.Uint32(b[8:])),
	}
	if k.kind == 0 || k.kind > ghc.AnnFrame {
		return noTable
	}
	if offset := int32(binary.LittleEndian.Uint32(b[12:])); offset != 0 && hasSRT(k.kind) {
		k.srt = (pointer + uint64(int64(offset))) &^ pointerTag
	}
	k.info, k.inHeap = heap.ReadInfo(t.modules, pointer)
	return k
}

// function reads the description of a function's arguments.
func (t *tables) function(k *table) *function {
	if !k.fun.read {
		k.fun.read = true
		k.fun.kind = ghc.ArgGen
		at := k.pointer
		if t.profiled {
			at -= ghc.InfoProfiled
		}
		var b [4]byte
		if _, err := t.modules.ReadAt(b[:], int64(at-ghc.FunArgs)); err == nil {
			k.fun.kind = binary.LittleEndian.Uint32(b[:])
		}
		k.fun.bitmap, _ = t.modules.word(at - ghc.FunBitmap)
	}
	return &k.fun
}

// pointerTag masks what a pointer says about its closure.
const pointerTag = 7
