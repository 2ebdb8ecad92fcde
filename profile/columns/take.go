package columns

import (
	"ccagent/eventlog"
)

// batch carries a part of a log from the reader to the builder: samples, and the records
// between them.
type batch struct {
	n       int
	samples [batchSamples]eventlog.TimedSample
	keys    [batchSamples]uint32 // numbers of the samples' contexts; see contextKeys
	records []inBatch
	bytes   []byte // the records' payloads
	decoder *eventlog.Decoder
}

// inBatch is a record with the index of the sample that it precedes.
type inBatch struct {
	before int
	rec    eventlog.Copied
}

// The size of a batch is small enough for a CPU's cache.
const (
	batchSamples = 1 << 9
	batchBytes   = 64 << 10
	batches      = 4
)

// take adds all records and samples of a reader.
func (b *builder) take(rd *eventlog.Reader) (some bool) {
	var samples [64]eventlog.TimedSample
	for {
		n := rd.NextSamples(samples[:])
		b.samples(samples[:n], nil)
		if n == len(samples) {
			some = true
			continue
		}
		if !rd.Next() {
			return some || n > 0
		}
		some = true
		b.add(rd.Record())
	}
}

// takeBeside does the same as take, but reads and builds on two goroutines.
func (b *builder) takeBeside(rd *eventlog.Reader) {
	full, empty := make(chan *batch, batches), make(chan *batch, batches)
	for range batches {
		empty <- new(batch)
	}
	go func() {
		defer close(full)
		var decoder *eventlog.Decoder
		var keys *contextKeys
		if b.sums == nil {
			keys = newContextKeys()
		}
		for more := true; more; {
			x := <-empty
			x.n, x.records, x.bytes = 0, x.records[:0], x.bytes[:0]
			for x.n < batchSamples && len(x.bytes) < batchBytes && len(x.records) < batchSamples {
				x.read(rd, keys)
				if x.n == batchSamples {
					break
				}
				if more = rd.Next(); !more {
					break
				}
				var c eventlog.Copied
				c, x.bytes = rd.Copy(x.bytes)
				x.records = append(x.records, inBatch{x.n, c})
			}
			if decoder == nil && len(x.records) > 0 {
				decoder = rd.Decoder()
			}
			x.decoder = decoder
			full <- x
		}
	}()
	for x := range full {
		at := 0
		for i := range x.records {
			r := &x.records[i]
			b.samples(x.samples[at:r.before], x.keys[at:r.before])
			at = r.before
			b.add(x.decoder.Decode(&r.rec, x.bytes))
		}
		b.samples(x.samples[at:x.n], x.keys[at:x.n])
		empty <- x
	}
}

// read adds samples to a batch, with the numbers of their contexts unless keys is nil.
func (x *batch) read(rd *eventlog.Reader, keys *contextKeys) {
	n := x.n
	x.n += rd.NextSamples(x.samples[n:])
	for i := n; keys != nil && i < x.n; i++ {
		x.keys[i] = keys.number(&x.samples[i].Sample)
	}
}

// lookups is the number of samples whose nodes are looked up before any of them is added.
// The tables are large, and grouped look-ups let a CPU overlap cache misses.
const lookups = 64

// samples adds samples. keys are their contexts' numbers, or nil.
func (b *builder) samples(samples []eventlog.TimedSample, keys []uint32) {
	b.sites.hold(len(b.nodes.Parent))
	var nodes [lookups]uint32
	var last [lookups]lastSite
	for from := 0; from < len(samples); from += lookups {
		part := samples[from:min(from+lookups, len(samples))]
		for i := range part {
			nodes[i] = b.node(part[i].Node)
			last[i] = b.sites.last[nodes[i]]
		}
		for i := range part {
			s := &part[i]
			b.ran(s.Time)
			var context uint32
			event, ok := 0, false
			if b.sums != nil {
				event, ok = b.event(s.Event)
			} else if context, ok = b.contextOf(&s.Sample, keys, from+i); ok {
				event = int(b.contexts.list[context].Event)
			}
			if !ok {
				b.p.Accounting.Dropped++
				continue
			}
			site := b.site(&s.Sample, nodes[i], &last[i])
			if b.sums != nil {
				b.sums.add(event, site, s.Weight)
			} else {
				b.column(s, site, context)
			}
			b.p.nsamples++
			b.p.Events[event].count(&s.Sample)
		}
	}
}

// contextOf returns the context of a sample. Its number is at a position of keys, if keys is not
// nil.
func (b *builder) contextOf(s *eventlog.Sample, keys []uint32, at int) (uint32, bool) {
	if keys == nil {
		return b.context(s)
	}
	context, ok := b.contexts.ofKey(keys[at])
	if !ok {
		if context, ok = b.context(s); ok && !b.p.Events[b.contexts.list[context].Event].Undefined {
			b.contexts.setKey(keys[at], context)
		}
	}
	return context, ok
}

// site returns the site of a sample with a node. last is the node's latest site.
func (b *builder) site(s *eventlog.Sample, node uint32, last *lastSite) uint32 {
	site := Site{node, s.Stop, s.Flags&eventlog.SampleInKernel != 0, s.Centres}
	id := last.id - 1
	if !last.is(&site) {
		id = b.sites.intern(site)
	}
	if s.Centres != 0 {
		b.centreSamples(s.Centres, 1)
	}
	if s.SkippedWords != 0 {
		b.sites.skipped(id, s.SkippedWords)
	}
	return id
}

// column adds a sample to the columns.
func (b *builder) column(s *eventlog.TimedSample, site, context uint32) {
	if b.chunk == nil || b.chunk.N == ChunkSize {
		b.chunk = new(Chunk)
		b.p.Chunks = append(b.p.Chunks, b.chunk)
	}
	c, i := b.chunk, b.chunk.N
	c.Time[i], c.Site[i], c.Context[i] = s.Time, site, context
	c.setWeight(i, s.Weight)
	c.N++
}

// contextKeys numbers contexts in the reader's goroutine, which has more time to compare
// keys than the builder's.
type contextKeys struct {
	index  map[contextKey]uint32
	recent *[1 << 10]recentContext
}

func newContextKeys() *contextKeys {
	return &contextKeys{index: make(map[contextKey]uint32), recent: new([1 << 10]recentContext)}
}

func (t *contextKeys) number(s *eventlog.Sample) uint32 {
	k := keyOf(s)
	slot := &t.recent[k.hash()%uint64(len(t.recent))]
	if slot.id != 0 && slot.key == k {
		return slot.id - 1
	}
	id, ok := t.index[k]
	if !ok {
		id = uint32(len(t.index))
		t.index[k] = id
	}
	*slot = recentContext{k, id + 1}
	return id
}
