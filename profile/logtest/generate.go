package logtest

import (
	"fmt"
	"io"
	"math/rand/v2"

	"ccagent/eventlog"
)

// Generate writes a log of n samples on about the given number of distinct
// stacks, of depths around 30, in a program of 1000 bindings with notes.
func Generate(w io.Writer, n, stacks int, seed uint64) error {
	const (
		bindings = 1000
		blocks   = 4 * bindings
		base     = 0x400000
	)
	rng := rand.New(rand.NewPCG(seed, 1))
	g := &generator{w: eventlog.NewWriter(w, nil)}
	g.put(&eventlog.Capture{AgentVersion: "0.1.0", PID: 100, Program: "/bin/generated", GHCVersion: "9.0.2", Way: "rts_thr", CPUs: 4})
	g.put(&eventlog.EventDef{Index: 0, Requested: "cycles", Granted: "cycles", Unit: "cycles", Rate: 997})
	g.put(&eventlog.Module{ID: Module, Path: "/bin/generated"})

	// A random walk through a call graph gives stacks that share prefixes.
	var leaves []uint32
	var path []uint32
	next := uint32(1)
	for len(leaves) < stacks {
		for len(path) > 0 && (len(path) > 60 || rng.IntN(3) == 0) {
			path = path[:len(path)-1-rng.IntN(min(len(path), 4))]
		}
		ev := eventlog.Nodes{First: next}
		for range 1 + rng.IntN(6) {
			parent := uint32(0)
			if len(path) > 0 {
				parent = path[len(path)-1]
			}
			addr := base + 16*uint64(rng.IntN(blocks))
			kind := eventlog.FrameReturn
			if rng.IntN(8) == 0 {
				kind = eventlog.FrameUpdate
			}
			ev.Nodes = append(ev.Nodes, eventlog.Node{Parent: parent, Kind: kind, Module: Module, Addr: addr})
			path = append(path, next)
			next++
		}
		g.put(&ev)
		leaves = append(leaves, path[len(path)-1])
	}
	for i := range n {
		g.time += 1_000_000
		// The product of two random numbers makes a few stacks hot.
		at := int(float64(len(leaves)) * rng.Float64() * rng.Float64() * rng.Float64())
		g.put(&eventlog.Sample{CPU: uint32(i % 4), PID: 100, TID: 100 + uint32(i%4), Capability: uint32(i % 4), TSO: uint64(1 + i%100),
			Weight: 1_000_000 + uint64(rng.IntN(1000)), Node: leaves[at]})
	}
	g.put(&eventlog.CaptureEnd{})
	g.tables(rng, bindings, blocks, base)
	if g.err == nil {
		g.err = g.w.Close()
	}
	return g.err
}

type generator struct {
	w    *eventlog.Writer
	time uint64
	err  error
}

func (g *generator) put(ev eventlog.Event) {
	if g.err == nil {
		g.err = g.w.Write(g.time, eventlog.NoCap, ev)
	}
}

func (g *generator) tables(rng *rand.Rand, bindings, blocks int, base uint64) {
	const perFile = 50
	for i := range bindings / perFile {
		g.put(&eventlog.File{ID: uint32(i + 1), Path: fmt.Sprintf("src/M%d.hs", i)})
	}
	for i := range bindings {
		m := i / perFile
		g.put(&eventlog.Binding{ID: uint32(i + 1), Package: "main", Module: fmt.Sprintf("M%d", m), Name: fmt.Sprintf("f%d", i), Category: eventlog.CategoryHaskell})
	}
	const perBinding = 5
	for i := range bindings * perBinding {
		b := i / perBinding
		line := uint32(b%perFile*20 + i%perBinding + 1)
		g.put(&eventlog.Span{ID: uint32(i + 1), File: uint32(b/perFile + 1), Line: line, Col: 3, EndLine: line + 1, EndCol: 20, Binding: uint32(b + 1)})
	}
	for i := range blocks {
		b := i * bindings / blocks
		ev := eventlog.Block{ID: uint32(i + 1), Module: Module, Lo: base + 16*uint64(i), Hi: base + 16*uint64(i+1), Binding: uint32(b + 1)}
		for d := range 1 + rng.IntN(4) {
			span := b*perBinding + d
			if rng.IntN(4) == 0 {
				span = rng.IntN(bindings * perBinding) // inlined from elsewhere
			}
			ev.Causes = append(ev.Causes, eventlog.Cause{Span: uint32(span + 1), Distance: uint32(d)})
		}
		g.put(&ev)
	}
	for i := 0; i < blocks; i += 500 {
		ev := eventlog.Locations{Module: Module}
		for j := i; j < min(i+500, blocks); j++ {
			ev.Locations = append(ev.Locations, eventlog.Location{Addr: base + 16*uint64(j), Block: uint32(j + 1), Quality: eventlog.QualityExact, Category: eventlog.CategoryHaskell})
		}
		g.put(&ev)
	}
}
