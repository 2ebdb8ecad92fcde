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
	sumUp(rest, inOrder{b})
	if rest.Err() != nil {
		return false
	}
	b.pieces = workers
	b.p.Accounting.Complete, b.p.Accounting.Bytes = rest.Complete(), rest.Offset()
	return true
}

// pieceOf is what a piece holds besides what its samples add to a worker's totals.
type pieceOf struct {
	reader  *eventlog.Reader
	totals  *totals
	plain   bool
	last    uint64 // time of a sample
	records []eventlog.Copied
	bytes   []byte
	uses    []use
	use     use // since the last of uses
}

// use is what samples refer to, up to a record that may define more.
type use struct {
	before int // the record
	node   uint32
	events uint32 // 1 + the highest
}

// readPiece reads a piece to its end, or up to what is not plain.
func readPiece(rd *eventlog.Reader, t *totals) *pieceOf {
	x := &pieceOf{reader: rd, totals: t}
	x.plain = sumUp(rd, x)
	x.endUse()
	return x
}

func (x *pieceOf) endUse() {
	x.use.before = len(x.records)
	x.uses = append(x.uses, x.use)
	x.use = use{}
}

// briefs adds samples by the ids in them.
func (x *pieceOf) briefs(samples []eventlog.BriefSample, last uint64) bool {
	node, events := x.use.node, x.use.events
	for i := range samples {
		node, events = max(node, samples[i].Node), max(events, uint32(samples[i].Event)+1)
	}
	x.use.node, x.use.events, x.last = node, events, max(x.last, last)
	if node > maxPieceNode || events > maxEvents {
		return false
	}
	x.totals.briefs(samples)
	return true
}

func (x *pieceOf) sample(time uint64, s *eventlog.Sample) bool {
	if s.Node > maxPieceNode || s.Event >= maxEvents {
		return false
	}
	x.use.node, x.use.events, x.last = max(x.use.node, s.Node), max(x.use.events, s.Event+1), max(x.last, time)
	x.totals.sample(s.Node, uint8(s.Event), s)
	return true
}

func (x *pieceOf) record(rd *eventlog.Reader) bool {
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

// defined reports whether all that is used is defined by now, as it is at the end, and
// has its id for its index.
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
