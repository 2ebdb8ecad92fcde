package columns

import (
	"io"
	"runtime"
	"sync"
	"sync/atomic"

	"ccagent/eventlog"
)

const (
	pieceBytes = 4 << 20
	// maxPieceNode is the highest node id that pieces are read with: their tables
	// are by what the log says before that is known to be so.
	maxPieceNode = 1 << 24
)

// takePieces takes a whole log, in pieces that are read beside each other. It
// reports false if that cannot be done, or would not give what take does, which
// is to be found out by reading; the builder is of no use then.
//
// Samples are summed up by the ids in them, and records are kept in order. A
// sample may stand for what its ids are defined to be at the end of the log if they
// were defined before it, which is seen where the records before it have been taken.
func (b *builder) takePieces(log io.ReaderAt, size, each int64, tell func(int64)) bool {
	pieces := eventlog.Split(log, size, each)
	n, k := pieces.Len(), runtime.GOMAXPROCS(0)
	if n < 2 || k < 2 || !pieces.Declares(eventlog.IDSample) {
		return false
	}
	read := make([]chan *pieceOf, n)
	for i := range read {
		read[i] = make(chan *pieceOf, 1)
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
				read[i] <- readPiece(pieces.Reader(i), workers[w])
			}
		}()
	}
	decoder := pieces.Decoder()
	var last *eventlog.Reader
	plain := true
	for i := 0; i < n && plain; i++ {
		x := <-read[i]
		<-ahead
		plain = x.plain && pieces.Plain(i, x.reader, last) && b.piece(x, decoder)
		last = x.reader
		if tell != nil {
			tell(last.Offset())
		}
	}
	stop.Store(true)
	if !plain {
		for range min(k, len(ahead)) {
			<-ahead // who waits to read ahead is to see that it must stop
		}
	}
	wg.Wait()
	if !plain {
		return false
	}
	rest := pieces.Rest(last)
	b.take(rest)
	if rest.Err() != nil {
		return false
	}
	for _, t := range workers {
		b.addRaw(t)
	}
	b.p.Accounting.Complete, b.p.Accounting.Bytes = rest.Complete(), rest.Offset()
	return true
}

// pieceOf is what a piece holds besides what its samples add to a worker's totals.
type pieceOf struct {
	reader  *eventlog.Reader
	plain   bool
	last    uint64 // time of a sample
	records []eventlog.Copied
	bytes   []byte
	uses    []use
}

// use is what samples refer to, up to a record that may define more.
type use struct {
	before int // the record
	node   uint32
	events [maxEvents/64 + 1]uint64
}

func (u *use) empty() bool { return u.node == 0 && u.events == [len(u.events)]uint64{} }

// readPiece reads a piece to its end, or up to what is not plain.
func readPiece(rd *eventlog.Reader, t *totals) *pieceOf {
	x := &pieceOf{reader: rd}
	var batch [lookups]eventlog.BriefSample
	var s some
	var u use
	for {
		n := rd.NextBriefs(batch[:])
		for i := range batch[:n] {
			if !x.sample(&batch[i], &s, &u) {
				return x
			}
		}
		t.add(&s)
		if n == len(batch) {
			continue
		}
		if !rd.Next() {
			break
		}
		switch ev := rd.Record().Event.(type) {
		case *eventlog.Malformed:
			return x
		case *eventlog.Sample:
			one := eventlog.TimedSample{Time: rd.Record().Time, Sample: *ev}
			brief := one.Brief()
			if !x.sample(&brief, &s, &u) {
				return x
			}
			t.add(&s)
			continue
		case *eventlog.Nodes, *eventlog.EventDef:
			if !u.empty() {
				u.before = len(x.records)
				x.uses = append(x.uses, u)
				u = use{}
			}
		}
		var c eventlog.Copied
		c, x.bytes = rd.Copy(x.bytes)
		x.records = append(x.records, c)
	}
	u.before = len(x.records)
	x.uses = append(x.uses, u)
	x.plain = true
	return x
}

// sample adds a sample to some, by the ids in it.
func (x *pieceOf) sample(b *eventlog.BriefSample, s *some, u *use) bool {
	if b.Event >= maxEvents || b.Node > maxPieceNode {
		return false
	}
	u.node = max(u.node, b.Node)
	u.events[b.Event/64] |= 1 << (b.Event % 64)
	x.last = max(x.last, b.Time)
	s.add(b.Node, uint8(b.Event), b)
	return true
}

// piece takes a piece's records. It reports false if samples of it refer to what was
// not defined before them.
func (b *builder) piece(x *pieceOf, d *eventlog.Decoder) bool {
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

// defined reports whether all that is used is defined by now, as it is at the end.
func (b *builder) defined(u *use) bool {
	segments := b.nodes.segments
	if u.node != 0 && (len(segments) != 1 || segments[0].first != 1 || u.node > segments[0].n) {
		return false
	}
	for id := range uint32(maxEvents) {
		if u.events[id/64]>>(id%64)&1 == 0 {
			continue
		}
		if i, ok := b.events[id]; !ok || b.p.Events[i].Undefined {
			return false
		}
	}
	return true
}

// addRaw adds sums by the log's ids.
func (b *builder) addRaw(t *totals) {
	for i := range t.sums {
		k := t.sums[i].totalKey
		k.node, k.event = b.node(k.node), uint8(b.events[uint32(k.event)])
		sum := &b.totals.sums[b.totals.find(k)-1]
		sum.weight, sum.count = SatAdd(sum.weight, t.sums[i].weight), sum.count+t.sums[i].count
	}
}
