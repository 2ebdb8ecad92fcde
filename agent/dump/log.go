package dump

import (
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/heap/threads"
	"ccagent/internal/ghc"
)

// This file says in the log's terms what package threads has read.

// State says what a thread does; current is set if it is the one that its capability runs.
func State(t *threads.Thread, current bool) eventlog.ThreadState {
	switch {
	case t.WhatNext == ghc.ThreadComplete:
		return eventlog.StateFinished
	case t.WhatNext == ghc.ThreadKilled:
		return eventlog.StateDied
	}
	switch t.Why {
	case ghc.NotBlocked:
		if current {
			return eventlog.StateRunning
		}
		return eventlog.StateRunnable
	case ghc.BlockedOnMVar:
		return eventlog.StateMVar
	case ghc.BlockedOnMVarRead:
		return eventlog.StateMVarRead
	case ghc.BlockedOnBlackHole:
		return eventlog.StateBlackHole
	case ghc.BlockedOnSTM:
		return eventlog.StateSTM
	case ghc.BlockedOnDelay:
		return eventlog.StateDelay
	case ghc.BlockedOnRead:
		return eventlog.StateRead
	case ghc.BlockedOnWrite:
		return eventlog.StateWrite
	case ghc.BlockedOnCCall, ghc.BlockedOnCCallInterruptible:
		return eventlog.StateForeign
	case ghc.BlockedOnMsgThrowTo:
		return eventlog.StateThrowTo
	case ghc.ThreadMigrating:
		return eventlog.StateMigrating
	}
	return eventlog.StateUnknown
}

// Frames is a stack as the log takes it: leaf first, each frame with its kind in the top byte, and why
// it ends.
func Frames(s *threads.Stack) ([]uint64, eventlog.StopReason) {
	frames := make([]uint64, 0, len(s.Frames)+1)
	for n, f := range s.Frames {
		if n == s.Leaf && s.Skipped > 0 {
			frames = append(frames, uint64(eventlog.FrameSkipped)<<bpf.FrameKindShift)
		}
		frames = append(frames, f.Info&bpf.FrameAddressMask|uint64(frameKind(f.Kind))<<bpf.FrameKindShift)
	}
	stop := stopReasons[s.Stop]
	if s.Skipped > 0 && stop == eventlog.StopRoot {
		stop = eventlog.StopRecovered
	}
	return frames, stop
}

// frameKind is how the log names a frame's closure type.
func frameKind(k ghc.ClosureType) eventlog.FrameKind {
	switch k {
	case ghc.RetBCO:
		return eventlog.FrameRetBCO
	case ghc.RetFun:
		return eventlog.FrameRetFun
	case ghc.UpdateFrame:
		return eventlog.FrameUpdate
	case ghc.CatchFrame:
		return eventlog.FrameCatch
	case ghc.UnderflowFrame:
		return eventlog.FrameUnderflow
	case ghc.StopFrame:
		return eventlog.FrameStop
	case ghc.AtomicallyFrame, ghc.CatchRetryFrame, ghc.CatchSTMFrame:
		return eventlog.FrameSTM
	case ghc.AnnFrame:
		return eventlog.FrameAnn
	}
	return eventlog.FrameReturn
}

var stopReasons = map[threads.Stop]eventlog.StopReason{
	threads.StopRoot: eventlog.StopRoot, threads.StopBudget: eventlog.StopBudget, threads.StopMemory: eventlog.StopUnreadableStack,
	threads.StopNoStack: eventlog.StopUnreadableTSO, threads.StopNoFrame: eventlog.StopImplausibleInfo, threads.StopOverrun: eventlog.StopOutsideChunk,
	threads.StopNoTop: eventlog.StopTopAmbiguous, threads.StopNotTaken: eventlog.StopNoUserContext,
	threads.StopMoved: eventlog.StopMoved,
}
