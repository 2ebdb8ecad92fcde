package profile

import (
	"maps"
	"slices"
)

// snapshot gives the Profile of what the builder has taken so far. The builder
// goes on: what it will append to is shared up to its present length, and what
// it will change is copied.
func (b *builder) snapshot() *Profile {
	c := *b
	c.p = b.p.soFar()
	if n := len(c.p.chunks); n > 0 && c.p.chunks[n-1].n < chunkSize {
		last := *c.p.chunks[n-1]
		c.p.chunks[n-1] = &last
	}
	c.nodes.nodes = nodes{slices.Clip(b.nodes.parent), slices.Clip(b.nodes.kind), slices.Clip(b.nodes.place)}
	c.nodes.places = slices.Clip(b.nodes.places)
	c.sites.sites = slices.Clip(b.sites.sites)
	c.sites.words = maps.Clone(b.sites.words)
	c.modules = maps.Clone(b.modules)
	for _, t := range []*ids{&c.bindings, &c.spans, &c.files, &c.blocks} {
		t.sparse = maps.Clone(t.sparse)
	}
	c.locations = slices.Clip(b.locations)
	c.running = maps.Clone(b.running)
	return c.finish()
}

// soFar copies what Load's caller sees of a Profile and finish still changes.
func (p *Profile) soFar() *Profile {
	s := &p.symbols
	return &Profile{
		Capture: p.Capture, HaveCapture: p.HaveCapture, End: p.End, HaveEnd: p.HaveEnd,
		Events: slices.Clone(p.Events), Threads: slices.Clone(p.Threads), Modules: slices.Clone(p.Modules),
		Mappings: slices.Clip(p.Mappings), Processes: slices.Clip(p.Processes), Losses: slices.Clip(p.Losses),
		Costs: slices.Clip(p.Costs), GCs: slices.Clip(p.GCs), Heap: slices.Clip(p.Heap), Markers: slices.Clip(p.Markers),
		Accounting: p.Accounting.soFar(), Duration: p.Duration, Symbolised: p.Symbolised,
		RTS: p.RTS, RTSLog: p.RTSLog.soFar(),
		nsamples: p.nsamples, chunks: slices.Clone(p.chunks),
		symbols: symbols{
			bindings: slices.Clone(s.bindings), spans: slices.Clone(s.spans), files: slices.Clone(s.files),
			blocks: slices.Clone(s.blocks), causes: slices.Clone(s.causes), enclosing: slices.Clone(s.enclosing),
			lines: slices.Clone(s.lines),
		},
	}
}

func (a Accounting) soFar() Accounting {
	a.Damage = slices.Clip(a.Damage)
	return a
}

func (r RTS) soFar() RTS {
	r.Runs = slices.Clone(r.Runs)
	return r
}
