package columns

import (
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"ccagent/eventlog"
)

const (
	sectionBytes = 4 << 20
	// maxSectionNode is the highest node id that takeSections accepts: it indexes its
	// tables with ids that the log has not yet been seen to define.
	maxSectionNode = 1 << 24
)

// takeSections reads a whole log in sections, several at once. It reports false if the
// log does not allow that, or if the result would differ from that of take. This may
// become known only while reading; the builder must not be used then.
//
// Workers sum up samples by the ids in them, and the builder adds the records in order.
// The sum uses what an id is defined to be at the end of the log. This is correct if the
// id was defined before the sample, which is checked when the records before it have been
// added.
func (b *builder) takeSections(log io.ReaderAt, size, each int64, report func(int64)) bool {
	sections := eventlog.Split(log, size, each)
	n, k := sections.Len(), runtime.GOMAXPROCS(0)
	if n < 2 || k < 2 || !sections.Declares(eventlog.IDSample) {
		return false
	}
	read := make([]chan *section, n)
	for i := range read {
		read[i] = make(chan *section, 1)
	}
	ahead := make(chan struct{}, 2*k) // bounds the records held
	workers := make([]*totals, k)
	var next atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	for w := range workers {
		workers[w] = newTotals()
		wg.Add(1)
		go func() {
			defer wg.Done()
			for !stop.Load() {
				ahead <- struct{}{}
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				read[i] <- readSection(sections.Reader(i), workers[w])
			}
		}()
	}
	decoder := sections.Decoder()
	var last *eventlog.Reader
	plain := true
	for i := 0; i < n && plain; i++ {
		x := <-read[i]
		<-ahead
		plain = x.plain && sections.Plain(i, x.reader, last) && b.addSection(x, decoder)
		last = x.reader
		if report != nil {
			report(last.Offset())
		}
	}
	stop.Store(true)
	if !plain {
		for range min(k, len(ahead)) {
			<-ahead // a worker waiting to start must see that reading has stopped
		}
	}
	wg.Wait()
	if !plain {
		return false
	}
	rest := sections.Rest(last)
	sumUp(rest, inOrder{b})
	if rest.Err() != nil {
		return false
	}
	b.sectionTotals = workers
	b.p.Accounting.Complete, b.p.Accounting.Bytes = rest.Complete(), rest.Offset()
	return true
}

// section is the contents of a part of the log, except the samples, which a worker's
// totals hold.
type section struct {
	reader  *eventlog.Reader
	totals  *totals
	plain   bool
	last    uint64 // time of the last sample
	records []eventlog.Copied
	bytes   []byte
	uses    []use
	use     use // the use since the last element of uses
}

// use is the highest ids that samples refer to, up to the next record that may define
// more.
type use struct {
	before int // number of records before it
	node   uint32
	events uint32 // 1 + the highest event index
}

// readSection reads a section to its end, or up to a record that cannot be read in
// parallel.
func readSection(rd *eventlog.Reader, t *totals) *section {
	x := &section{reader: rd, totals: t}
	x.plain = sumUp(rd, x)
	x.endUse()
	return x
}

func (x *section) endUse() {
	x.use.before = len(x.records)
	x.uses = append(x.uses, x.use)
	x.use = use{}
}

// briefs adds samples by the ids in them.
func (x *section) briefs(samples []eventlog.BriefSample, last uint64) bool {
	node, events := x.use.node, x.use.events
	for i := range samples {
		node, events = max(node, samples[i].Node), max(events, uint32(samples[i].Event)+1)
	}
	x.use.node, x.use.events, x.last = node, events, max(x.last, last)
	if node > maxSectionNode || events > maxEvents {
		return false
	}
	x.totals.briefs(samples)
	return true
}

func (x *section) sample(time uint64, s *eventlog.Sample) bool {
	if s.Node > maxSectionNode || s.Event >= maxEvents {
		return false
	}
	x.use.node, x.use.events, x.last = max(x.use.node, s.Node), max(x.use.events, s.Event+1), max(x.last, time)
	x.totals.sample(s.Node, uint8(s.Event), s)
	return true
}

func (x *section) record(rd *eventlog.Reader) bool {
	switch rd.Record().Event.(type) {
	case *eventlog.Malformed:
		return false
	case *eventlog.Nodes, *eventlog.EventDef:
		if x.use != (use{}) {
			x.endUse()
		}
	}
	var c eventlog.Copied
	c, x.bytes = rd.Copy(x.bytes)
	x.records = append(x.records, c)
	return true
}

// addSection adds a section's records. It reports false if samples in it refer to ids
// that were not defined before them.
func (b *builder) addSection(x *section, d *eventlog.Decoder) bool {
	b.ran(x.last)
	at := 0
	for i := range x.uses {
		u := &x.uses[i]
		for ; at < u.before; at++ {
			b.add(d.Decode(&x.records[at], x.bytes))
		}
		if !b.defined(u) {
			return false
		}
	}
	return true
}

// defined reports whether all ids of a use are defined by now, with the definition that
// they have at the end, and are equal to their indices.
func (b *builder) defined(u *use) bool {
	segments := b.nodes.segments
	if u.node != 0 && (len(segments) != 1 || segments[0].first != 1 || u.node > segments[0].n) || int(u.events) > len(b.p.Events) {
		return false
	}
	for i := range b.p.Events[:u.events] {
		if e := &b.p.Events[i]; e.Undefined || e.Index != uint32(i) {
			return false
		}
	}
	return true
}
