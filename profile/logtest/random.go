package logtest

import (
	"fmt"
	"math/rand/v2"

	"ccagent/eventlog"
)

// Random returns a log of a program with random stacks, causes and kinds of frames:
// recursion, shared and inlined spans, workers, near and unknown code, context,
// kernel, hidden roots.
func Random(rng *rand.Rand) []byte {
	l := New()
	l.Write(0, &eventlog.EventDef{Index: 1, Requested: "alloc", Granted: "alloc", Unit: "bytes"})
	files := []uint32{l.File("A.hs", "a\nb\n"), l.File("B.hs", ""), l.File("C.hs", "")}
	var bindings, spans []uint32
	for i := range 8 {
		parent := uint32(0)
		if len(bindings) > 0 && rng.IntN(3) == 0 {
			parent = bindings[rng.IntN(len(bindings))]
		}
		m := rng.IntN(3)
		bindings = append(bindings, l.Binding([]string{"main", "base"}[m/2], fmt.Sprintf("M%d", m), fmt.Sprintf("f%d", i), parent))
	}
	pick := func(v []uint32) uint32 { return v[rng.IntN(len(v))] }
	for range 12 {
		line := uint32(1 + rng.IntN(20))
		b := pick(bindings)
		if rng.IntN(6) == 0 {
			b = 0
		}
		spans = append(spans, l.Span(pick(files), line, 1, line+uint32(rng.IntN(5)), 9, b))
	}
	var code []Frame
	for range 15 {
		var causes []uint32
		for range rng.IntN(4) {
			causes = append(causes, pick(spans))
		}
		code = append(code, l.Block(pick(bindings), causes...))
	}
	for c := range eventlog.CategoryKernel + 1 {
		code = append(code, l.Code(l.Function(fmt.Sprintf("c%d", c), c), eventlog.QualityExact, c), l.Code(0, eventlog.QualityNone, c))
	}
	code = append(code, l.Code(pick(bindings), eventlog.QualityNear, eventlog.CategoryHaskell), l.Unknown())
	kinds := []eventlog.FrameKind{eventlog.FrameUpdate, eventlog.FrameCatch, eventlog.FrameContext, eventlog.FrameSkipped, eventlog.FrameKernel, eventlog.FrameC, eventlog.FrameFolded}
	for i := range 200 {
		var stack []Frame
		for range rng.IntN(12) {
			f := code[rng.IntN(len(code))]
			if rng.IntN(5) == 0 {
				f = f.As(kinds[rng.IntN(len(kinds))])
			}
			stack = append(stack, f)
		}
		s := eventlog.Sample{Event: uint32(rng.IntN(2)), Weight: uint64(rng.IntN(1000)), Node: l.Stack(stack...),
			Stop: eventlog.StopReason(rng.IntN(12)), Capability: uint32(rng.IntN(3)), TSO: uint64(rng.IntN(4))}
		if rng.IntN(10) == 0 {
			s.Flags |= eventlog.SampleInKernel
		}
		l.SampleOf(uint64(i), s)
	}
	return l.End()
}
