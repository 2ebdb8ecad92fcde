package columns

import (
	"maps"
	"slices"
)

// snapshot returns a Log of the records added so far. The builder remains usable: the Log
// shares slices that only grow, up to their current length, and has copies of everything
// that the builder may still change.
func (b *builder) snapshot() *Log {
	c := *b
	c.on(b.p.soFar())
	if n := len(c.p.Chunks); n > 0 && c.p.Chunks[n-1].N < ChunkSize {
		last := *c.p.Chunks[n-1]
		if last.wide != nil {
			wide := *last.wide
			last.wide = &wide
		}
		c.p.Chunks[n-1] = &last
	}
	c.columns.contexts.list = slices.Clip(b.columns.contexts.list)
	c.stacks.nodes.Nodes = Nodes{slices.Clip(b.stacks.nodes.Parent), slices.Clip(b.stacks.nodes.Kind), slices.Clip(b.stacks.nodes.Place)}
	c.stacks.nodes.places = slices.Clip(b.stacks.nodes.places)
	c.stacks.sites.sites = slices.Clip(b.stacks.sites.sites)
	if len(b.stacks.exact.samples) > 0 {
		c.stacks.sites.sites = slices.Clone(b.stacks.sites.sites) // finish resolves their cost-centre stacks in place
	}
	c.stacks.sites.words, c.stacks.sites.folded = maps.Clone(b.stacks.sites.words), maps.Clone(b.stacks.sites.folded)
	c.symbols.modules = maps.Clone(b.symbols.modules)
	for _, t := range []*ids{&c.symbols.bindings, &c.symbols.spans, &c.symbols.files, &c.symbols.blocks, &c.symbols.cores, &c.nurseries.closures} {
		t.sparse = maps.Clone(t.sparse)
	}
	c.symbols.locations = slices.Clip(b.symbols.locations)
	c.rts.runState = b.rts.runState.soFar()
	c.rts.threads.threads = maps.Clone(b.rts.threads.threads) // finish ends runs in progress
	return c.finish()
}

// soFar copies the fields of a Log that finish still changes.
func (p *Log) soFar() *Log {
	return &Log{
		Capture: p.Capture, HaveCapture: p.HaveCapture, End: p.End, HaveEnd: p.HaveEnd,
		Events: slices.Clone(p.Events), Threads: slices.Clone(p.Threads), Modules: slices.Clone(p.Modules),
		Mappings: slices.Clip(p.Mappings), Processes: slices.Clip(p.Processes), Losses: slices.Clip(p.Losses),
		Costs: slices.Clip(p.Costs), GCs: slices.Clip(p.GCs), Heap: slices.Clip(p.Heap), Markers: slices.Clip(p.Markers),
		Overheads: slices.Clip(p.Overheads), Warnings: slices.Clip(p.Warnings), Import: p.Import, Exact: p.Exact, Gaps: slices.Clip(p.Gaps),
		Accounting: p.Accounting.soFar(), Duration: p.Duration, Symbolised: p.Symbolised,
		RTS: p.RTS, RTSLog: p.RTSLog.soFar(),
		HeapProfiles: heapSoFar(p.HeapProfiles), InfoTables: slices.Clone(p.InfoTables), Ticky: slices.Clone(p.Ticky),
		nsamples: p.nsamples, Chunks: slices.Clone(p.Chunks), Totals: p.Totals,
		Symbols: p.Symbols.soFar(), Nurseries: p.Nurseries.soFar(), Transactions: p.Transactions, Search: p.Search, Attempts: slices.Clip(p.Attempts), Dumps: slices.Clone(p.Dumps), HeapGraphs: slices.Clone(p.HeapGraphs),
		Footprints: slices.Clone(p.Footprints), HeapSeries: slices.Clone(p.HeapSeries),
	}
}

// soFar copies all tables, because finish resolves references in them.
func (s Symbols) soFar() Symbols {
	s.Bindings, s.Spans, s.Files = slices.Clone(s.Bindings), slices.Clone(s.Spans), slices.Clone(s.Files)
	s.Blocks, s.causes, s.enclosing = slices.Clone(s.Blocks), slices.Clone(s.causes), slices.Clone(s.enclosing)
	s.lines, s.Cores, s.coreNotes = slices.Clone(s.lines), slices.Clone(s.Cores), slices.Clone(s.coreNotes)
	return s
}

func (n Nurseries) soFar() Nurseries {
	n.Blocks, n.Closures, n.counts = slices.Clip(n.Blocks), slices.Clip(n.Closures), slices.Clip(n.counts)
	return n
}

func (a Accounting) soFar() Accounting {
	a.Damage = slices.Clip(a.Damage)
	return a
}

func (r RTS) soFar() RTS {
	r.Collections, r.Concurrent = slices.Clone(r.Collections), slices.Clip(r.Concurrent)
	r.Threads = slices.Clone(r.Threads)
	for i := range r.Threads {
		r.Threads[i].Stops = maps.Clone(r.Threads[i].Stops)
	}
	return r
}

func heapSoFar(hs []HeapProfile) []HeapProfile {
	hs = slices.Clone(hs)
	for i := range hs {
		h := &hs[i]
		h.Censuses, h.Bands, h.cells = slices.Clone(h.Censuses), slices.Clone(h.Bands), slices.Clip(h.cells)
	}
	return hs
}
