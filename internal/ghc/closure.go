package ghc

import "fmt"

// ClosureType says what an info table is of (rts/include/rts/storage/ClosureTypes.h).
type ClosureType uint32

// Closure types. Of types that the run-time system numbers in groups, by how many pointers and
// other words a closure has or by how the collector has marked it, the first and last stand
// here.
const (
	Constr          ClosureType = 1
	Constr10        ClosureType = 2 // one pointer, no other word; so on to Constr02
	Constr01        ClosureType = 3
	Constr20        ClosureType = 4
	Constr11        ClosureType = 5
	Constr02        ClosureType = 6
	ConstrNoCAF     ClosureType = 7
	Fun             ClosureType = 8
	Fun10           ClosureType = 9
	Fun02           ClosureType = 13
	FunStatic       ClosureType = 14
	Thunk           ClosureType = 15
	Thunk10         ClosureType = 16
	Thunk02         ClosureType = 20
	ThunkStatic     ClosureType = 21
	ThunkSelector   ClosureType = 22
	BCO             ClosureType = 23
	AP              ClosureType = 24
	PAP             ClosureType = 25
	APStack         ClosureType = 26
	Ind             ClosureType = 27
	IndStatic       ClosureType = 28
	RetBCO          ClosureType = 29
	RetSmall        ClosureType = 30
	RetBig          ClosureType = 31
	RetFun          ClosureType = 32
	UpdateFrame     ClosureType = 33
	CatchFrame      ClosureType = 34
	UnderflowFrame  ClosureType = 35
	StopFrame       ClosureType = 36
	BlockingQueue   ClosureType = 37
	Blackhole       ClosureType = 38
	MVar            ClosureType = 39
	MVarDirty       ClosureType = 40
	TVar            ClosureType = 41
	ArrWords        ClosureType = 42
	MutArr          ClosureType = 43
	MutArrFrozen    ClosureType = 46
	MutVar          ClosureType = 47
	MutVarDirty     ClosureType = 48
	Weak            ClosureType = 49
	Prim            ClosureType = 50
	MutPrim         ClosureType = 51
	TSO             ClosureType = 52
	Stack           ClosureType = 53
	TRecChunk       ClosureType = 54
	AtomicallyFrame ClosureType = 55
	CatchRetryFrame ClosureType = 56
	CatchSTMFrame   ClosureType = 57
	Whitehole       ClosureType = 58
	SmallArr        ClosureType = 59
	SmallArrFrozen  ClosureType = 62
	Compact         ClosureType = 63
	Continuation    ClosureType = 64 // from 9.6
	AnnFrame        ClosureType = 65 // from 9.14
)

// closureTypeNames are the run-time system's own names, by number (rts/include/rts/storage/ClosureTypes.h).
var closureTypeNames = [...]string{
	"INVALID_OBJECT", "CONSTR", "CONSTR_1_0", "CONSTR_0_1", "CONSTR_2_0", "CONSTR_1_1", "CONSTR_0_2", "CONSTR_NOCAF",
	"FUN", "FUN_1_0", "FUN_0_1", "FUN_2_0", "FUN_1_1", "FUN_0_2", "FUN_STATIC",
	"THUNK", "THUNK_1_0", "THUNK_0_1", "THUNK_2_0", "THUNK_1_1", "THUNK_0_2", "THUNK_STATIC", "THUNK_SELECTOR",
	"BCO", "AP", "PAP", "AP_STACK", "IND", "IND_STATIC",
	"RET_BCO", "RET_SMALL", "RET_BIG", "RET_FUN", "UPDATE_FRAME", "CATCH_FRAME", "UNDERFLOW_FRAME", "STOP_FRAME",
	"BLOCKING_QUEUE", "BLACKHOLE", "MVAR_CLEAN", "MVAR_DIRTY", "TVAR", "ARR_WORDS",
	"MUT_ARR_PTRS_CLEAN", "MUT_ARR_PTRS_DIRTY", "MUT_ARR_PTRS_FROZEN_DIRTY", "MUT_ARR_PTRS_FROZEN_CLEAN",
	"MUT_VAR_CLEAN", "MUT_VAR_DIRTY", "WEAK", "PRIM", "MUT_PRIM", "TSO", "STACK", "TREC_CHUNK",
	"ATOMICALLY_FRAME", "CATCH_RETRY_FRAME", "CATCH_STM_FRAME", "WHITEHOLE",
	"SMALL_MUT_ARR_PTRS_CLEAN", "SMALL_MUT_ARR_PTRS_DIRTY", "SMALL_MUT_ARR_PTRS_FROZEN_DIRTY", "SMALL_MUT_ARR_PTRS_FROZEN_CLEAN",
	"COMPACT_NFDATA", "CONTINUATION", "ANN_FRAME",
}

// String is the run-time system's name of the type.
func (t ClosureType) String() string {
	if int(t) < len(closureTypeNames) {
		return closureTypeNames[t]
	}
	return fmt.Sprintf("closure type %d", uint32(t))
}

// In reports whether a type is in the group of types from first to last.
func (t ClosureType) In(first, last ClosureType) bool { return t >= first && t <= last }

// Kind names what closures of the type are, for those that have code of the program's
// own; it is empty for all others.
func (t ClosureType) Kind() string {
	switch {
	case t.In(Constr, ConstrNoCAF):
		return "constructor"
	case t.In(Fun, FunStatic):
		return "function"
	case t.In(Thunk, ThunkSelector):
		return "thunk"
	}
	return ""
}

// Where the fields of an info table lie below the info pointer, where the table's code
// begins (rts/include/rts/storage/InfoTables.h, tables next to code). Those of functions
// are InfoProfiled further down in the profiling way.
const (
	InfoType   = 8
	InfoLayout = 16

	FunArity     = 20
	FunArgs      = 24 // fun_type: how the arguments lie on the stack
	FunBitmap    = 32
	ConstrDesc   = 24 // con_desc: where the constructor's name lies, from the info pointer
	InfoProfiled = 16
)

// BitmapSize masks the size of a frame's payload, in words, out of its layout word, where
// the layout is a small bitmap.
const BitmapSize = 0x3f

// BCOBitmap is where the size of a byte code object's bitmap lies, behind its header
// (StgBCO in rts/include/rts/storage/Closures.h).
const BCOBitmap = 32

// Function types whose arguments are not fixed (rts/include/rts/storage/FunTypes.h).
const (
	ArgGen    = 0 // by the bitmap of the function itself
	ArgGenBig = 1
	ArgBCO    = 2
)

// argWords holds the words of arguments of the function types ARG_NONE to ARG_PPPPPPPP.
var argWords = [...]int{3: 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3, 4, 5, 6, 7, 8}

// ArgWords is how many words on the stack the arguments of a function type take; false if
// there is no such type, or its arguments are not fixed.
func ArgWords(funType uint32) (words int, ok bool) {
	if funType <= ArgBCO || funType >= uint32(len(argWords)) {
		return 0, false
	}
	return argWords[funType], true
}

// argPointers has a bit for each of these words that is a pointer.
var argPointers = [...]uint64{3: 0, 0, 1, 0, 0, 0, 0, 0, 0, 0b00, 0b10, 0b01, 0b11, 0b000, 0b100, 0b010, 0b110, 0b001, 0b101, 0b011, 0b111,
	0xf, 0x1f, 0x3f, 0x7f, 0xff}

// ArgPointers says which of the words of arguments of a function type are pointers: the first is
// the lowest bit. It is false if there is no such type, or its arguments are not fixed.
func ArgPointers(funType uint32) (mask uint64, ok bool) {
	if _, ok := ArgWords(funType); !ok {
		return 0, false
	}
	return argPointers[funType], true
}
