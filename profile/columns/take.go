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
		if b.columns.sums == nil {
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
	b.stacks.sites.hold(len(b.stacks.nodes.Parent))
	var nodes [lookups]uint32
	var last [lookups]lastSite
	for from := 0; from < len(samples); from += lookups {
		part := samples[from:min(from+lookups, len(samples))]
		for i := range part {
			nodes[i] = b.stacks.node(part[i].Node)
			last[i] = b.stacks.sites.last[nodes[i]]
		}
		for i := range part {
			s := &part[i]
			b.ran(s.Time)
			var context uint32
			event, ok := 0, false
			if b.columns.sums != nil {
				event, ok = b.events.event(s.Event)
			} else if context, ok = b.columns.contextOf(&s.Sample, keys, from+i, &b.events); ok {
				event = int(b.columns.contexts.list[context].Event)
			}
			if !ok {
				b.p.Accounting.Dropped++
				continue
			}
			site := b.stacks.site(&s.Sample, nodes[i], &last[i])
			if b.columns.sums != nil {
				b.columns.sums.add(event, site, s.Weight)
			} else {
				b.columns.column(s, site, context)
			}
			b.p.nsamples++
			b.p.Events[event].count(&s.Sample)
		}
	}
}
