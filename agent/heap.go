package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"ccagent/agent/census"
	"ccagent/agent/closures"
	"ccagent/agent/dump"
	"ccagent/agent/footprint"
	"ccagent/agent/process"
	"ccagent/agent/retained"
	"ccagent/agent/rtsites"
	"ccagent/agent/sink"
	"ccagent/eventlog"
	"ccagent/heap/graph"
	"ccagent/heap/threads"
)

// HeapOptions describe one census of a running process's heap. Of Options those of look are used.
type HeapOptions struct {
	Options
	// Wait is how long to wait for a major collection, MaxPause for how long the program may be
	// stopped; 0 is no bound.
	Wait, MaxPause time.Duration
	// Graph has the pointers of the heap followed too. The analysis, and the copy of the heap, may
	// take GraphMemory bytes each.
	Graph       bool
	GraphMemory uint64
}

// HeapSummary is what a census has found.
type HeapSummary struct {
	Log string
	// SymbolProblems are why symbols are missing, a line a reason.
	SymbolProblems []string
	Manner         census.Manner
	AtRest         bool // it made no major collection: garbage was counted too
	// Stops tells how often and for how long the program was stopped: for this census, and for tries before it that had to be given
	// up.
	Stops census.Stops
	Bytes uint64 // of all bands
	Bands int
	// Pinned is how many bytes the blocks with byte arrays have that are not moved; they are in
	// Bytes. Slop is what closures have left behind, which is not.
	Pinned, Slop uint64
	// Graph is what was found of pointers; nil if that was not asked for.
	Graph *eventlog.HeapGraph
	// Draw says which part of the heap was counted; nil if all of it was.
	Draw *census.Draw
}

// atRest is what a log says of a census between collections.
const atRest = "the program made no major collection while one was waited for, and was counted where it was: what it does not use any more is counted as well, until it is collected"

// errNoHaskell is returned for a process whose heap is no Haskell program's.
var errNoHaskell = errors.New("it runs no Haskell program compiled by GHC")

// Heap takes one census of a process's heap, and writes it as a log.
func Heap(ctx context.Context, o HeapOptions) (*HeapSummary, error) {
	sum := &HeapSummary{}
	of, err := look(ctx, o.Options, func(c *capture, im *process.Image) error {
		err := c.heap(ctx, im, &o, sum)
		if err != nil {
			return fmt.Errorf("count the heap of process %d: %w", o.PID, explainGone(im, err))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	sum.Log, sum.SymbolProblems = of.Log, of.SymbolProblems
	return sum, nil
}

// explainGone replaces the error of a program that has ended, or has executed another one, by one that says so: the first step
// that fails then is any, and its error explains nothing.
func explainGone(im *process.Image, err error) error {
	switch gone := im.Memory.Gone(); {
	case errors.Is(gone, process.ErrExecuted):
		return fmt.Errorf("%w meanwhile: run ccagent heap again, for the one that it runs now", gone)
	case gone != nil:
		return fmt.Errorf("%w before that was done: ccagent record -e heap -- PROGRAM takes censuses of one from its beginning on", gone)
	}
	return err
}

// heap takes a census and writes it.
func (c *capture) heap(ctx context.Context, im *process.Image, o *HeapOptions, sum *HeapSummary) error {
	if im.RTS == nil {
		return errNoHaskell
	}
	taken, r, err := takeCensus(ctx, c.log, im, o)
	if err != nil {
		return err
	}
	sum.Manner, sum.AtRest, sum.Stops, sum.Pinned = taken.Manner, taken.AtRest, r.Stops, 8*taken.Tally.PinnedWords
	for _, n := range taken.Tally.Counts() {
		sum.Slop += 8 * n.Slop
	}
	sum.Draw = taken.Draw
	bands := taken.Detailed(r.Profiled, r.Tables.Name)
	sum.Bands = len(bands)
	registry := closures.NewRegistry()
	emit := func(e eventlog.Event) error { return c.log.Emit(taken.Time, e) }
	if err := taken.Kinds(r.Profiled).Write(census.KindLog{Emit: emit, Code: c.log.Seen.AddCode, Registry: registry}, im.PID, r.Tables); err != nil {
		return err
	}
	if err := writeBands(c.log, taken, im.PID, bands, &sum.Bytes); err != nil {
		return err
	}
	where := footprint.Of(taken)
	if err := c.describeStacks(ctx, im, where); err != nil {
		return err
	}
	if err := writeFootprint(c.log, taken.Time, im.PID, where); err != nil || taken.Copy == nil {
		return err
	}
	defer taken.Copy.Close()
	begun := time.Now()
	found, err := retained.Analyse(ctx, im, taken.Copy, o.GraphMemory)
	if err != nil {
		return fmt.Errorf("follow its pointers: %w", err)
	}
	beside := taken.Manner == census.Beside
	sum.Graph = &eventlog.HeapGraph{
		PID: im.PID, Closures: found.Closures, Pointers: found.Pointers, Bytes: found.Bytes, Unreached: found.Unreached, UnreachedBytes: found.UnreachedBytes,
		Dangling: found.Dangling, PauseNs: uint64(r.Stops.Longest), TookNs: uint64(time.Since(begun)), Beside: beside,
		CAFs: found.AllRoots[graph.CAF], Threads: found.AllRoots[graph.Thread], StablePtrs: found.AllRoots[graph.StablePointer],
		Weaks: found.AllRoots[graph.WeakPointer], Notes: notesOf(found, beside), AtRest: taken.AtRest,
		Complete: !taken.AtRest || taken.Unknown == 0, Stuck: found.StuckThreads,
	}
	if !r.StableKnown() {
		sum.Graph.Notes = append(sum.Graph.Notes, "stable pointers are not found without symbols of the run-time system: what they alone hold, as what is bound in GHCi, counts as unreached")
	}
	sum.Graph.StuckKnown = r.StableKnown() && !beside && sum.Graph.Complete && found.BadFrames == 0 && !found.Cut
	w := graphWriter{c: c, im: im, tables: r.Tables, registry: registry, time: taken.Time}
	return w.write(sum.Graph, found)
}

// takeCensus takes the census that the process allows.
func takeCensus(ctx context.Context, log *sink.Sink, im *process.Image, o *HeapOptions) (*census.Census, *census.Reader, error) {
	taken, r, err := takeMoving(ctx, log, im, o)
	if errors.Is(err, census.ErrNonmoving) {
		log.Warn(census.NonmovingGarbage + "; --graph tells what is alive")
		r.CountSegments()
		taken, err = r.AtRest(ctx, censusOptions(o))
	}
	return taken, r, err
}

func censusOptions(o *HeapOptions) census.Options {
	how := census.Options{Wait: o.Wait, MaxPause: o.MaxPause, Residence: true}
	if o.Graph {
		how.Keep = o.GraphMemory
	}
	return how
}

// takeMoving takes the census that the process allows, of a heap without segments.
func takeMoving(ctx context.Context, log *sink.Sink, im *process.Image, o *HeapOptions) (*census.Census, *census.Reader, error) {
	how := censusOptions(o)
	symbols, err := im.RTS.RTSSymbols()
	if err != nil {
		return nil, nil, err
	}
	at, err := rtsites.FindCensus(symbols)
	if errors.Is(err, rtsites.ErrMachine) {
		return nil, nil, err
	}
	if err != nil {
		r, findErr := findHeap(ctx, im, symbols)
		if findErr != nil {
			return nil, nil, fmt.Errorf("%w; %w", err, findErr)
		}
		log.Warn(fmt.Sprintf("the end of a collection is not seen, as %v: the heap is counted as it is, with garbage", err))
		c, err := r.AtRest(ctx, how)
		return c, r, err
	}
	site, ok := census.SiteOf(im.RTS, at)
	if !ok {
		return nil, nil, errors.New("the functions of its run-time system are in no file")
	}
	r := census.NewReader(im, &at.Heap)
	for until := time.Now().Add(o.Wait); ; {
		c, err := r.AtCollection(ctx, site, how)
		switch {
		case errors.Is(err, census.ErrCollected) && time.Now().Before(until):
			how.Hurry = !o.Graph
			continue
		case errors.Is(err, census.ErrNoCollection):
			if c, err = r.AtRest(ctx, how); err == nil {
				log.Warn(atRest)
			}
		}
		if errors.Is(err, census.ErrCollected) && o.Graph && o.MaxPause > 0 {
			err = explainCollected(r, o, err)
		}
		return c, r, err
	}
}

// explainCollected says of a heap that had to be copied whole, and was collected again, for how long the program would
// have to stand.
func explainCollected(r *census.Reader, o *HeapOptions, err error) error {
	bytes, pause, sizeErr := r.CopyPause()
	if sizeErr != nil {
		return err
	}
	return fmt.Errorf("%w: --graph needs all of its %.1f MiB at once, and gave up after --wait %v; --max-pause %v is enough to copy them while the program stands, and --max-pause 0 is no bound",
		err, float64(bytes)/(1<<20), o.Wait, pause)
}

// findHeap finds a heap where the functions of the run-time system have no symbols: by its variables, or if these have
// none either, by what the program's data point to.
func findHeap(ctx context.Context, im *process.Image, symbols *rtsites.Symbols) (*census.Reader, error) {
	if at, err := rtsites.FindHeap(symbols); err == nil && at.Known() {
		return census.NewReader(im, at), nil
	}
	reader := dump.Reader(im, threads.DefaultLimits)
	for try := 1; ; try++ {
		var all *threads.Reading
		generations, _, err := dump.Generations(ctx, im, reader)
		if err == nil {
			all, err = reader.Read(generations)
		}
		if err == nil && len(all.Capabilities) > 0 {
			f := &census.Found{Generations: generations}
			for i := range all.Capabilities {
				f.Capabilities = append(f.Capabilities, all.Capabilities[i].Base())
			}
			return census.NewReaderOf(im, f), nil
		}
		if try == findTries || ctx.Err() != nil {
			return nil, errors.Join(errors.New("its heap was not found by its threads"), err)
		}
		time.Sleep(findPause) // a collection moves threads
	}
}

// findTries is how often threads are read to find a heap by, and findPause how long apart.
const (
	findTries = 20
	findPause = 5 * time.Millisecond
)

// writeBands writes a census as the standard's events of a heap profile by closure type, the largest
// band first.
func writeBands(log *sink.Sink, c *census.Census, pid uint32, bands []census.Band, total *uint64) error {
	slices.SortFunc(bands, func(a, b census.Band) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	events := []eventlog.Event{&eventlog.HeapProfBegin{Breakdown: eventlog.BreakdownClosureType}, c.How(pid, bands)}
	if c.Draw != nil {
		events = append(events, c.Draw.Event(pid, bands))
	}
	events = append(events, &eventlog.HeapSampleBegin{Era: 1})
	for i := range bands {
		*total += bands[i].Bytes
		events = append(events, &eventlog.HeapSampleString{Bytes: bands[i].Bytes, Label: eventlog.CleanName(bands[i].Name)})
	}
	for _, e := range append(events, &eventlog.HeapSampleEnd{Era: 1}) {
		if err := log.Emit(c.Time, e); err != nil {
			return err
		}
	}
	return nil
}

// writeFootprint writes where the memory of a process is.
func writeFootprint(log *sink.Sink, at uint64, pid uint32, f *footprint.Footprint) error {
	f.PID = pid
	events := []eventlog.Event{&f.Footprint}
	for i := range f.Parts {
		events = append(events, &f.Parts[i])
	}
	for i := range f.Pins {
		events = append(events, &f.Pins[i])
	}
	for i := range f.Stacks {
		events = append(events, &f.Stacks[i])
	}
	for _, e := range events {
		if err := log.Emit(at, e); err != nil {
			return err
		}
	}
	return nil
}
