//go:build linux && cgo

package replay

/*
#include "walker.h"
*/
import "C"

import "strconv"

// Kind is C's enum frame_kind.
type Kind uint8

const (
	KindPC        Kind = C.FRAME_PC
	KindReturn    Kind = C.FRAME_RETURN
	KindUpdate    Kind = C.FRAME_UPDATE
	KindCatch     Kind = C.FRAME_CATCH
	KindSTM       Kind = C.FRAME_STM
	KindRetFun    Kind = C.FRAME_RET_FUN
	KindRetBCO    Kind = C.FRAME_RET_BCO
	KindUnderflow Kind = C.FRAME_UNDERFLOW
	KindStop      Kind = C.FRAME_STOP
	KindC         Kind = C.FRAME_C
	KindKernel    Kind = C.FRAME_KERNEL
	KindSkipped   Kind = C.FRAME_SKIPPED
	KindContext   Kind = C.FRAME_CONTEXT
	KindAnn       Kind = C.FRAME_ANN
	KindFolded    Kind = C.FRAME_FOLDED
)

var kindNames = [...]string{
	KindPC: "pc", KindReturn: "return", KindUpdate: "update", KindCatch: "catch", KindSTM: "stm",
	KindRetFun: "ret_fun", KindRetBCO: "ret_bco", KindUnderflow: "underflow", KindStop: "stop",
	KindC: "c", KindKernel: "kernel", KindSkipped: "skipped", KindContext: "context", KindAnn: "ann",
	KindFolded: "folded",
}

func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return "kind " + strconv.Itoa(int(k))
}

// Stop is C's enum stop_reason.
type Stop uint8

const (
	StopRoot      Stop = C.STOP_ROOT
	StopRecovered Stop = C.STOP_RECOVERED
	StopBudget    Stop = C.STOP_BUDGET
	StopNoHaskell Stop = C.STOP_NO_HASKELL
	// StopLast is the last of the reasons.
	StopLast Stop = C.STOP_NO_USER_CONTEXT
)

var stopNames = [...]string{
	C.STOP_ROOT: "root", C.STOP_RECOVERED: "recovered", C.STOP_BUDGET: "budget", C.STOP_NO_HASKELL: "no haskell",
	C.STOP_TOP_AMBIGUOUS: "top ambiguous", C.STOP_UNREADABLE_STACK: "unreadable stack",
	C.STOP_UNREADABLE_INFO: "unreadable info", C.STOP_IMPLAUSIBLE_INFO: "implausible info",
	C.STOP_OUTSIDE_CHUNK: "outside chunk", C.STOP_UNREADABLE_TSO: "unreadable tso",
	C.STOP_CHUNK_LIMIT: "chunk limit", C.STOP_UNKNOWN_FRAME: "unknown frame", C.STOP_C_UNWIND: "c unwind",
	C.STOP_NO_USER_CONTEXT: "no user context",
}

func (s Stop) String() string {
	if int(s) < len(stopNames) && stopNames[s] != "" {
		return stopNames[s]
	}
	return "stop " + strconv.Itoa(int(s))
}

// Flags of a record, C's enum sample_flags.
const (
	FlagTopScanned = C.SAMPLE_TOP_SCANNED
	FlagTopCFI     = C.SAMPLE_TOP_CFI
	FlagViaC       = C.SAMPLE_VIA_C
	FlagContext    = C.SAMPLE_CONTEXT
	FlagFolded     = C.SAMPLE_FOLDED

	noCapability = C.NO_CAPABILITY
)
