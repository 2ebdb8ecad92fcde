package profile

import (
	"ccagent/eventlog"
)

// batch is a stretch of a log on its way from the reader to the builder:
// samples, and the records that stand between them.
type batch struct {
	n       int // samples
	samples [batchSamples]eventlog.TimedSample
	records []inBatch
	bytes   []byte // the records' payloads
	decoder *eventlog.Decoder
}

// inBatch is a record that comes before the sample of a number.
type inBatch struct {
	before int
	rec    eventlog.Copied
}

// What a batch holds: little enough to stay in a CPU's cache.
const (
	batchSamples = 1 << 9
	batchBytes   = 64 << 10
	batches      = 4
)

// take adds all that a reader gives.
func (b *builder) take(rd *eventlog.Reader) (some bool) {
	var samples [64]eventlog.TimedSample
	for {
		n := rd.NextSamples(samples[:])
		b.samples(samples[:n])
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

// takeBeside does the same with reading and building on a CPU each.
func (b *builder) takeBeside(rd *eventlog.Reader) {
	full, empty := make(chan *batch, batches), make(chan *batch, batches)
	for range batches {
		empty <- new(batch)
	}
	go func() {
		defer close(full)
		var decoder *eventlog.Decoder
		for more := true; more; {
			x := <-empty
			x.n, x.records, x.bytes = 0, x.records[:0], x.bytes[:0]
			for x.n < batchSamples && len(x.bytes) < batchBytes && len(x.records) < batchSamples {
				if x.n += rd.NextSamples(x.samples[x.n:]); x.n == batchSamples {
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
			b.samples(x.samples[at:r.before])
			at = r.before
			b.add(x.decoder.Decode(&r.rec, x.bytes))
		}
		b.samples(x.samples[at:x.n])
		empty <- x
	}
}

// lookups is how many samples' nodes are looked up before any of these samples
// is taken: the tables are large, and a CPU can wait for many places at once.
const lookups = 64

func (b *builder) samples(samples []eventlog.TimedSample) {
	b.sites.hold(len(b.nodes.parent))
	var nodes [lookups]uint32
	var last [lookups]lastSite
	for len(samples) > 0 {
		part := samples[:min(lookups, len(samples))]
		samples = samples[len(part):]
		for i := range part {
			nodes[i] = b.node(part[i].Node)
			last[i] = b.sites.last[nodes[i]]
		}
		for i := range part {
			s := &part[i]
			b.ran(s.Time)
			b.samplesAt(s.Time, &s.Sample, nodes[i], last[i])
		}
	}
}
