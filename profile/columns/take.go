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
		keys := newContextKeys()
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

// read adds samples to a batch.
func (x *batch) read(rd *eventlog.Reader, keys *contextKeys) {
	n := x.n
	x.n += rd.NextSamples(x.samples[n:])
	for i := n; i < x.n; i++ {
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
			ok := true
			if keys == nil {
				context, ok = b.context(&s.Sample)
			} else if context, ok = b.contexts.ofKey(keys[from+i]); !ok {
				if context, ok = b.context(&s.Sample); ok && !b.p.Events[b.contexts.list[context].Event].Undefined {
					b.contexts.setKey(keys[from+i], context)
				}
			}
			if !ok {
				b.p.Accounting.Dropped++
				continue
			}
			b.sampleIn(context, s.Time, &s.Sample, nodes[i], last[i])
		}
	}
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
