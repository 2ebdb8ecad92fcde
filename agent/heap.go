package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"ccagent/agent/census"
	"ccagent/agent/engine"
	"ccagent/agent/invoker"
	"ccagent/agent/process"
	"ccagent/agent/rtsites"
	"ccagent/agent/sink"
	"ccagent/agent/target"
	"ccagent/eventlog"
)

// HeapOptions describe one census of a running process's heap.
type HeapOptions struct {
	PID    int
	Output string // the log's name; empty for PROG.PID.eventlog
	User   string // trace and own as this user; empty for the invoking one
	NoArgs bool   // leaves the program's arguments out of the log
	// Wait is how long to wait for a major collection, MaxPause for how long the program may be
	// stopped; 0 is no bound.
	Wait, MaxPause time.Duration

	AgentVersion string
	// Warn takes what the user should know at once, a line without newline.
	Warn func(line string)
}

// HeapSummary is what a census has found.
type HeapSummary struct {
	Log    string
	Manner census.Manner
	Pause  time.Duration
	Bytes  uint64 // of all bands
	Bands  int
	// Pinned is how many bytes the blocks with byte arrays have that are not moved; they are in
	// Bytes. Slop is what closures have left behind, which is not.
	Pinned, Slop uint64
}

// errNoHaskell is returned for a process whose heap is no Haskell program's.
var errNoHaskell = errors.New("it runs no Haskell program compiled by GHC")

// Heap takes one census of a process's heap, and writes it as a log.
func Heap(ctx context.Context, o HeapOptions) (_ *HeapSummary, err error) {
	who, err := invoker.Find(o.User)
	if err != nil {
		return nil, err
	}
	t, err := target.Attach(o.PID)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if err := target.MayTrace(o.PID, who); err != nil {
		return nil, err
	}
	im, done, err := process.Inspect(o.PID)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	if im.RTS == nil {
		return nil, fmt.Errorf("count the heap of process %d: %w", o.PID, errNoHaskell)
	}
	log := sink.New(sink.Config{Who: who, Warn: o.Warn})
	defer func() { err = errors.Join(err, log.Close()) }()
	name := t.Path
	if len(t.Args) > 0 {
		name = t.Args[0]
	}
	if err := log.Create(o.Output, name, o.PID); err != nil {
		return nil, err
	}
	c, r, err := takeCensus(ctx, im, o)
	if err != nil {
		return nil, fmt.Errorf("count the heap of process %d: %w", o.PID, err)
	}
	args := t.Args
	if o.NoArgs {
		args = []string{t.Path}
	}
	head := &eventlog.Capture{
		AgentVersion: o.AgentVersion, Mode: eventlog.CaptureAttach, PID: uint32(o.PID), UID: who.UID, Program: t.Path, Args: args,
		GHCVersion: im.RTS.Binary.GHCVersion, Way: string(im.RTS.Binary.Way),
	}
	if err := engine.WriteHead(log, head, nil); err != nil {
		return nil, err
	}
	sum := &HeapSummary{Manner: c.Manner, Pause: c.Pause, Pinned: 8 * c.Tally.PinnedWords}
	for _, n := range c.Tally.Counts() {
		sum.Slop += 8 * n.Slop
	}
	bands := c.Bands(r.Profiled, r.Tables.Name)
	sum.Bands = len(bands)
	if err := writeBands(log, c.Time, bands, &sum.Bytes); err != nil {
		return nil, err
	}
	err = errors.Join(log.Emit(sink.Now, &eventlog.CaptureEnd{Reason: eventlog.EndDuration}), log.Flush(), log.FileLost(), log.Finish())
	sum.Log = log.File().Path
	return sum, err
}

// takeCensus takes the census that the process allows.
func takeCensus(ctx context.Context, im *process.Image, o HeapOptions) (*census.Census, *census.Reader, error) {
	symbols, err := im.RTS.RTSSymbols()
	if err != nil {
		return nil, nil, err
	}
	at, err := rtsites.FindCensus(symbols)
	if err != nil {
		return nil, nil, err
	}
	site, ok := census.SiteOf(im.RTS, at)
	if !ok {
		return nil, nil, errors.New("the functions of its run-time system are in no file")
	}
	r := census.NewReader(im, &at.Heap)
	for until := time.Now().Add(o.Wait); ; {
		c, err := r.AtCollection(ctx, site, census.Options{Wait: o.Wait, MaxPause: o.MaxPause})
		switch {
		case errors.Is(err, census.ErrCollected) && time.Now().Before(until):
			continue
		case errors.Is(err, census.ErrNoCollection):
			return nil, nil, fmt.Errorf("%w within %v: give it longer with --wait (an idle process of the threaded way makes one when it has run again)", err, o.Wait)
		}
		return c, r, err
	}
}

// writeBands writes a census as the standard's events of a heap profile by closure type, the largest
// band first.
func writeBands(log *sink.Sink, at uint64, bands map[string]uint64, total *uint64) error {
	events := []eventlog.Event{
		&eventlog.HeapProfBegin{Breakdown: eventlog.BreakdownClosureType},
		&eventlog.HeapSampleBegin{Era: 1},
	}
	names := slices.SortedFunc(maps.Keys(bands), func(a, b string) int {
		return cmp.Or(cmp.Compare(bands[b], bands[a]), cmp.Compare(a, b))
	})
	for _, name := range names {
		*total += bands[name]
		events = append(events, &eventlog.HeapSampleString{Bytes: bands[name], Label: eventlog.CleanName(name)})
	}
	for _, e := range append(events, &eventlog.HeapSampleEnd{Era: 1}) {
		if err := log.Emit(at, e); err != nil {
			return err
		}
	}
	return nil
}
