package agent

import (
	"fmt"

	"ccagent/agent/closures"
	"ccagent/agent/process"
	"ccagent/eventlog"
	"ccagent/heap"
	"ccagent/heap/graph"
	"ccagent/internal/ghc"
)

// graphWriter writes what was found of a heap's pointers into a log.
type graphWriter struct {
	c        *capture
	im       *process.Image
	tables   *closures.Tables
	registry *closures.Registry
	time     uint64
}

// closure defines the info table at a run-time address, and returns its id; 0 if it is in no module.
func (w *graphWriter) closure(pointer uint64, kind ghc.ClosureType) (uint32, error) {
	module, addr, ok := w.im.Resolve(pointer)
	if !ok {
		return 0, nil
	}
	d := w.registry.Of(closures.Place{Module: module, Addr: addr}, heap.Info{Type: kind}, func() string { return w.tables.Name(pointer) })
	if d == nil {
		return 0, nil
	}
	return d.ID, d.Write(w.emit, w.c.log.Seen.AddCode)
}

func (w *graphWriter) emit(e eventlog.Event) error { return w.c.log.Emit(w.time, e) }

var rootKinds = map[graph.RootKind]eventlog.HeapRootKind{
	graph.CAF: eventlog.HeapRootCAF, graph.Thread: eventlog.HeapRootThread, graph.StablePointer: eventlog.HeapRootStable, graph.WeakPointer: eventlog.HeapRootWeak,
}

func (w *graphWriter) write(head *eventlog.HeapGraph, r *graph.Result) error {
	ids := make([]uint32, len(r.Types))
	for i := range r.Types {
		var err error
		if ids[i], err = w.closure(r.Types[i].Pointer, ghc.ClosureType(r.Types[i].Kind)); err != nil {
			return err
		}
	}
	if err := w.emit(head); err != nil {
		return err
	}
	for i := range r.Types {
		t := &r.Types[i]
		if err := w.emit(&eventlog.HeapBand{Closure: ids[i], Count: t.Count, Bytes: t.Bytes, Retained: t.Retained, Largest: t.Largest}); err != nil {
			return err
		}
	}
	for i := range r.Roots {
		if err := w.root(i, &r.Roots[i]); err != nil {
			return err
		}
	}
	for _, b := range r.Tree {
		e := &eventlog.HeapBranch{Parent: uint32(b.Parent), Root: uint32(b.Root + 1), Count: b.Count, Bytes: b.Bytes, Retained: b.Retained}
		if b.Type >= 0 {
			e.Closure = ids[b.Type]
		}
		if err := w.emit(e); err != nil {
			return err
		}
	}
	for i := range r.Paths {
		if err := w.path(&r.Paths[i], ids); err != nil {
			return err
		}
	}
	for i := range r.Stuck {
		s := &r.Stuck[i]
		e := &eventlog.HeapStuck{TSO: s.ID, Kind: stuckKinds[s.Why], Held: s.Held}
		if !w.c.opts.NoLabels {
			e.Label = eventlog.CleanName(s.Label)
		}
		if err := w.emit(e); err != nil {
			return err
		}
	}
	return nil
}

var stuckKinds = map[ghc.WhyBlocked]eventlog.BlockerKind{
	ghc.BlockedOnMVar: eventlog.BlockerMVar, ghc.BlockedOnMVarRead: eventlog.BlockerMVar, ghc.BlockedOnBlackHole: eventlog.BlockerBlackHole,
	ghc.BlockedOnMsgThrowTo: eventlog.BlockerException, ghc.BlockedOnSTM: eventlog.BlockerSTM,
}

func (w *graphWriter) root(i int, r *graph.Root) error {
	e := &eventlog.HeapRoot{ID: uint32(i + 1), Kind: rootKinds[r.Kind], TSO: r.ID, Number: r.Number, Retained: r.Retained}
	if !w.c.opts.NoLabels {
		e.Label = eventlog.CleanName(r.Label)
	}
	if r.Kind == graph.CAF {
		var err error
		if e.Closure, err = w.closure(r.Pointer, ghc.ThunkStatic); err != nil {
			return err
		}
	}
	return w.emit(e)
}

func (w *graphWriter) path(p *graph.Path, ids []uint32) error {
	e := &eventlog.HeapPath{Closure: ids[p.Type], Root: uint32(p.Root + 1), Count: p.Count, Bytes: p.Bytes, Retained: p.Retained}
	for _, s := range p.Steps {
		step := eventlog.HeapStep{Closure: ids[s.Type], Times: s.Times, Skipped: s.Skipped}
		if s.Frame != 0 {
			var err error
			if step.Frame, err = w.closure(s.Frame, ghc.RetSmall); err != nil {
				return err
			}
		}
		e.Steps = append(e.Steps, step)
	}
	return w.emit(e)
}

// notesOf says what of a heap's pointers is not known.
func notesOf(r *graph.Result, beside bool) (notes []string) {
	add := func(n uint64, one, several string) {
		switch n {
		case 0:
		case 1:
			notes = append(notes, one)
		default:
			notes = append(notes, fmt.Sprintf("%d %s", n, several))
		}
	}
	why := ""
	if beside {
		why = ": the program ran while its heap was copied"
	}
	add(r.Dangling, "1 pointer leads to no closure"+why, "pointers lead to no closure"+why)
	add(r.BadFrames, "1 stack or partial application could not be read to its end", "stacks or partial applications could not be read to their end")
	if r.Cut {
		notes = append(notes, "there are more roots than are kept")
	}
	return notes
}
