package columns

import (
	"ccagent/eventlog"
)

// batch is a stretch of a log on its way from the reader to the builder:
// samples, and the records that stand between them.
type batch struct {
	n       int
	samples [batchSamples]eventlog.TimedSample
	keys    [batchSamples]uint32 // of the samples' contexts; see contextKeys
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

// takeBeside does the same with reading and building on a CPU each.
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

// lookups is how many samples' nodes are looked up before any of these samples
// is taken: the tables are large, and a CPU can wait for many places at once.
const lookups = 64

// samples takes samples, with the numbers of their contexts' keys or nil.
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

// contextKeys numbers contexts on the reader's side, which has the time to
// compare keys.
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
