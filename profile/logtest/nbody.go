package logtest

import (
	"ccagent/eventlog"
)

// NBodySource is the source embedded in NBody's log.
const NBodySource = `module Physics (step) where

step :: Double -> State -> State
step dt (State ps) =
  State (zipWith (kick dt) ps fs)
  where
    fs = map (` + "`pairwise`" + ` ps) ps

pairwise :: P -> [P] -> V
pairwise p = foldl' (\a q -> a ^+^ force p q) zero
`

// pairwiseCore is the Core of pairwise's worker.
const pairwiseCore = `$wpairwise_r1a
  = \ ww_s1 qs_s2 ->
    src<src/Physics.hs:7:10-28> case qs_s2 of {
      [] -> zero;
      : q_a1 qs'_a2 ->
        src<src/Physics.hs:10:31-40>
        $wpairwise_r1a (+## ww_s1 (force p_s3 q_a1)) qs'_a2
    }
`

// NBody returns a small log with an example of everything: overlapping causes, a
// worker, library code with an exact and with a near name, GC, C, kernel and
// unresolved code, recursion, thunks, a truncated stack, context, lost samples.
// Its samples weigh 1 ms each.
//
// The 100 samples, counted by hand:
//
//	40  Physics.step > worker of pairwise: spans of pairwise (narrow) and step
//	20  Physics.step alone
//	10  GHC.Base.map, by symbol
//	 5  near GHC.List.foldl1
//	10  (GC), over the context of Physics.step
//	 5  (foreign) sin, called from pairwise
//	 3  (kernel), in the program's page fault under step
//	 2  (unresolved)
//	 5  (STG) stg_ap_pp_fast under step
func NBody() *Log {
	l := New()
	const ms = 1_000_000
	l.Write(0, &eventlog.Sampling{Event: 0, Method: eventlog.MethodOnCPUs, CPUs: 4, Others: 1234, CPUNs: 1000 * ms})
	phys := l.File("src/Physics.hs", NBodySource)
	mainFile := l.File("app/Main.hs", "")
	main := l.Binding("main", "Main", "main", 0)
	step := l.Binding("main", "Physics", "step", 0)
	pairwise := l.Binding("main", "Physics", "pairwise", 0)
	worker := l.Binding("main", "Physics", "$wpairwise", pairwise)
	mapB := l.Binding("base", "GHC.Base", "map", 0)
	foldl1 := l.Binding("base", "GHC.List", "foldl1", 0)
	sin := l.Function("sin", eventlog.CategoryForeign)
	gc := l.Function("evacuate", eventlog.CategoryGC)
	ap := l.Function("stg_ap_pp_fast", eventlog.CategorySTG)
	upd := l.Function("stg_upd_frame", eventlog.CategorySTG)

	spanMain := l.Span(mainFile, 10, 1, 12, 20, main)
	spanStep := l.Span(phys, 4, 1, 7, 29, step)
	spanFs := l.Span(phys, 7, 10, 7, 29, step)
	spanPair := l.Span(phys, 10, 1, 10, 51, pairwise)
	spanForce := l.Span(phys, 10, 31, 10, 41, pairwise)

	l.Core(worker, phys, "$wpairwise_r1a", pairwiseCore,
		eventlog.CoreNote{Span: spanFs, Line: 3, Col: 33, EndLine: 8, EndCol: 6},
		eventlog.CoreNote{Span: spanForce, Line: 7, Col: 9, EndLine: 7, EndCol: 55})

	inMain := l.Block(main, spanMain)
	inStep := l.Block(step, spanStep)
	inFs := l.Block(step, spanFs, spanStep)
	inPair := l.Block(worker, spanForce, spanPair, spanFs, spanStep)
	inMap := l.Code(mapB, eventlog.QualityExact, eventlog.CategoryHaskell)
	inNear := l.Code(foldl1, eventlog.QualityNear, eventlog.CategoryHaskell)
	inSin := l.Code(sin, eventlog.QualityExact, eventlog.CategoryForeign)
	inGC := l.Code(gc, eventlog.QualityExact, eventlog.CategoryGC)
	inAp := l.Code(ap, eventlog.QualityExact, eventlog.CategorySTG)
	update := l.Code(upd, eventlog.QualityExact, eventlog.CategorySTG).As(eventlog.FrameUpdate)
	stop := l.Unknown().As(eventlog.FrameStop)

	at := uint64(0)
	run := func(n int, s eventlog.Sample) {
		s.Weight, s.TSO = ms, 1
		for range n {
			at += ms
			l.SampleOf(at, s)
		}
	}
	run(40, eventlog.Sample{Node: l.Stack(stop, inMain, inStep, update, inPair, inPair, inPair)})
	run(20, eventlog.Sample{Node: l.Stack(stop, inMain, inStep)})
	run(10, eventlog.Sample{Node: l.Stack(stop, inMain, inStep, inMap), Capability: 1})
	run(5, eventlog.Sample{Node: l.Stack(stop, inMain, inNear)})
	run(10, eventlog.Sample{Node: l.Stack(stop, inMain, inStep, Mark(eventlog.FrameContext), inGC), Stop: eventlog.StopNoHaskell, Flags: eventlog.SampleContext})
	run(5, eventlog.Sample{Node: l.Stack(stop, inMain, inStep, inPair, inSin), Flags: eventlog.SampleViaC})
	run(3, eventlog.Sample{Node: l.Stack(stop, inMain, inFs), Flags: eventlog.SampleInKernel})
	run(1, eventlog.Sample{Node: l.Stack(l.Unknown()), Stop: eventlog.StopUnreadableStack})
	run(1, eventlog.Sample{Stop: eventlog.StopNoUserContext})
	run(5, eventlog.Sample{Node: l.Stack(stop, inMain, Mark(eventlog.FrameSkipped), inStep, inAp), Stop: eventlog.StopRecovered, SkippedWords: 1200})
	l.Write(at, &eventlog.Loss{CPU: 1, Event: 0, Reason: eventlog.LossRingFull, Count: 7})
	l.Write(at, &eventlog.Loss{CPU: 0, Event: 0, Reason: eventlog.LossThrottled, Count: 2})
	l.Write(at, &eventlog.AgentCost{CPUNs: ms, RSS: 20 << 20, BPFRuns: 102, BPFNs: 102 * 1400, Samples: 100})
	return l
}
