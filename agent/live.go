package agent

import (
	"context"
	"maps"
	"time"

	"ccagent/agent/sink"
	"ccagent/eventlog"
	"ccagent/symbolize"
	"ccagent/symbolize/worker"
)

// liveSymbols finds names while the capture runs, beside it: of what was seen
// since the last time, so that each address is looked up once and each table
// continues the one before it.
type liveSymbols struct {
	asked    map[sink.Address]bool
	resolved map[sink.Address]bool // of those, what has a category
	ids      symbolize.IDs         // the last ones used
	files    map[string]uint32
	renamed  map[uint32]uint32 // files that were defined before, by their later ids
	modules  map[uint32]bool
	cores    map[coreKey]bool
	skipping bool // the text of a file or Core that is there already

	running chan liveResult // nil when nothing is under way
	cancel  context.CancelFunc
	ended   time.Time // of the last run
	took    time.Duration
}

type coreKey struct {
	dump, name string
	line       uint32
}

type liveResult struct {
	events []eventlog.Event
	sum    worker.Summary
	err    error
	took   time.Duration
}

// After a run there is a rest of liveShare times its length, which bounds what of
// one CPU looking up names takes; but no longer than liveRest.
const (
	liveShare = 5
	liveRest  = 5 * time.Second
)

func newLiveSymbols() *liveSymbols {
	return &liveSymbols{
		asked: map[sink.Address]bool{}, resolved: map[sink.Address]bool{}, files: map[string]uint32{}, renamed: map[uint32]uint32{},
		modules: map[uint32]bool{}, cores: map[coreKey]bool{},
	}
}

// step writes the names that were found, and has more looked for if the
// time has come. It is called about once a second.
func (n *names) step() error {
	l := n.live
	if l == nil {
		return nil
	}
	if l.running != nil {
		select {
		case r := <-l.running:
			return n.tookLive(r)
		default:
			return nil
		}
	}
	if time.Since(l.ended) < max(flushInterval, min(liveShare*l.took, liveRest)) {
		return nil
	}
	job, done := n.job(context.Background(), nil) // servers are asked at the end
	if len(job.Modules) == 0 && len(job.Kernel) == 0 {
		done()
		return nil
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.running, l.cancel = make(chan liveResult, 1), cancel
	go func() {
		defer done()
		var r liveResult
		begun := time.Now()
		r.sum, r.err = worker.Run(ctx, job, func(e eventlog.Event) error {
			r.events = append(r.events, eventlog.CloneSymbol(e))
			return nil
		})
		r.took = time.Since(begun)
		l.running <- r
	}()
	return nil
}

// tookLive writes a run's tables.
func (n *names) tookLive(r liveResult) error {
	l := n.live
	l.cancel()
	l.running, l.ended, l.took = nil, time.Now(), r.took
	if r.sum.After != (symbolize.IDs{}) {
		l.ids = r.sum.After
	}
	if r.err != nil { // to be asked again; what a child failed on is not
		l.asked = maps.Clone(l.resolved)
	}
	for _, e := range r.events {
		if err := n.write(e); err != nil {
			return err
		}
	}
	return n.log.Flush()
}

// endLive waits for what is under way: its tables come before the last ones.
func (n *names) endLive(ctx context.Context) error {
	l := n.live
	if l == nil || l.running == nil {
		return nil
	}
	select {
	case r := <-l.running:
		return n.tookLive(r)
	case <-ctx.Done():
		l.cancel()
		return n.tookLive(<-l.running)
	}
}

// write writes an event of the symbol tables, in a live capture without
// what was written before.
func (n *names) write(e eventlog.Event) error {
	if n.live != nil && !n.live.admit(e) {
		return nil
	}
	return n.log.EmitSymbol(e)
}

// close ends what is under way in a capture that was not finished.
func (n *names) close() {
	if n.live != nil && n.live.running != nil {
		n.live.cancel()
		<-n.live.running
	}
}

// admit reports whether an event is new, and makes its files those that were
// defined first.
func (l *liveSymbols) admit(e eventlog.Event) bool {
	file := func(id *uint32) {
		if to, ok := l.renamed[*id]; ok {
			*id = to
		}
	}
	switch e := e.(type) {
	case *eventlog.ModuleSymbols:
		if l.modules[e.Module] {
			return false
		}
		l.modules[e.Module] = true
	case *eventlog.File:
		first, known := l.files[e.Path]
		l.skipping = known
		if known {
			l.renamed[e.ID] = first
			return false
		}
		l.files[e.Path] = e.ID
	case *eventlog.Core:
		k := coreKey{e.Dump, e.Name, e.Line}
		if l.skipping = l.cores[k]; l.skipping {
			return false
		}
		l.cores[k] = true
		file(&e.File)
	case *eventlog.FileText, *eventlog.CoreText:
		return !l.skipping
	case *eventlog.Span:
		file(&e.File)
	case *eventlog.Locations:
		for i := range e.Locations {
			loc := &e.Locations[i]
			for j := range loc.Lines {
				file(&loc.Lines[j].File)
			}
			if loc.Category != eventlog.CategoryUnresolved {
				l.resolved[sink.Address{Module: e.Module, Addr: loc.Addr}] = true
			}
		}
	}
	return true
}
