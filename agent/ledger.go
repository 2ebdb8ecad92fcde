package agent

import (
	"math/rand/v2"
	"slices"

	"ccagent/bpf"
	"ccagent/eventlog"
)

// ledger makes weights of what the allocation probes of one process count, so that
// they add up to what the process allocates, and each part of it falls on the code
// that allocated it, in expectation, whichever probes are in place at a time.
//
// Every sample from a probe tells how much its capability has allocated so far; what
// is new of that is owed. A sample at a full nursery is given all that is owed and
// not reserved for samples of large objects. While every block is sampled each
// sample is given its own block. A probe that is in place for a part of the time
// alone is a random choice of the moments at which it would have been hit (the
// window's begin does not depend on what the program does), so its samples count
// for as much more as the time between windows is longer than they are: Horvitz and
// Thompson's estimator. What that estimate gets wrong stays owed, or is given too
// much and withheld from the next.
//
// Quantities are in bytes.
type ledger struct {
	caps  map[uint16]*capLedger
	start map[uint16]uint64 // words at the start; nil when the process was watched from its beginning
	base  uint64            // allocated when the capture began
	owed  int64
	given uint64

	total        uint64  // allocated since the capture began, as far as it is known
	largeSeen    uint64  // of large objects, as counted by the probe
	largeDuring  uint64  // the placement in which that was
	largeTotal   uint64  // total as of then
	largePart    part    // of all bytes, while the probe is in place
	largePending float64 // estimate of what large objects are owed, while it is not

	// Of what is neither large nor sampled at blocks, the part that heap checks
	// allocate; the rest is small objects from primitive operations. Those find
	// the nursery full far more often than they fill it, so they are not given
	// what heap checks have allocated: that is pending for samples at blocks.
	heap        part
	heapPending float64
	primitives  float64 // part of full nurseries that primitive operations found, lately

	// nursery is what is allocated from one full nursery to the next; 0 if not known.
	nursery float64

	recent [bpf.AllocSites]recent
}

// The last bytes of a process are divided among its last few samples. Where they are
// more than a hundredth of all, they are what the estimates have left out, at any time:
// among samples of all of it.
const (
	fewSamples  = 16
	manySamples = 512
)

// capLedger is what is known of a capability.
type capLedger struct {
	words uint64
	// What it had allocated when last sampled at full nurseries and at blocks,
	// and during which placement of the probe.
	seen   [bpf.AllocSites]uint64
	during [bpf.AllocSites]uint64
}

// placement is a stretch of time in which a probe is in place.
type placement struct {
	// begin, CLOCK_MONOTONIC in ns, differs for every placement of a probe; 0
	// of one that was in place when the capture began.
	begin uint64
	// factor is how much longer the time from window to window is than a
	// window; 0 while the probe is in place until further notice.
	factor float64
}

func (p placement) continuous() bool { return p.factor == 0 }

// hit is one sample from an allocation probe.
type hit struct {
	site       bpf.AllocSite
	capability uint16
	time       uint64
	words      uint64 // allocated by the capability since the process began
	// primitive is set at a full nursery that not a heap check has found but a
	// primitive operation, such as newByteArray#, before it began.
	primitive bool
	large     uint64 // bytes of large objects seen by the probe since it began
	thin      uint32 // one in how many hits is sampled; 0 is all
}

func newLedger(fromStart bool, atStart map[uint16]uint64) *ledger {
	l := &ledger{caps: map[uint16]*capLedger{}}
	if !fromStart {
		l.start = atStart
		if l.start == nil {
			l.start = map[uint16]uint64{}
		}
	}
	for _, words := range l.start {
		l.base += 8 * words
	}
	return l
}

// owe takes in bytes that have been allocated. A part of them is of large objects; what
// their probe sees of that is told by itself.
func (l *ledger) owe(bytes uint64, large placement) {
	l.owed += int64(bytes)
	l.total += bytes
	if !large.continuous() {
		l.largePending += l.largePart.of() * float64(bytes)
	}
}

// capability takes in how much a capability has allocated.
func (l *ledger) capability(h *hit, large placement) *capLedger {
	c := l.caps[h.capability]
	if c == nil {
		c = &capLedger{}
		if l.start != nil {
			words, known := l.start[h.capability]
			if !known {
				words = h.words
				l.base += 8 * words
			}
			c.words = words
			for site := range c.seen {
				c.seen[site] = words
			}
		}
		l.caps[h.capability] = c
	}
	if h.words > c.words {
		l.owe(8*(h.words-c.words), large)
		c.words = h.words
	}
	return c
}

// weigh gives a sample's weight; 0 for one that only begins a window. at and large
// tell how the sample's own probe and that of large objects are placed.
func (l *ledger) weigh(h *hit, at, large placement) uint64 {
	c := l.capability(h, large)
	if h.site == bpf.SiteLarge {
		own := float64(h.large - min(h.large, l.largeSeen))
		// Not more than there is; the object itself is not yet in the count.
		return l.give(min(l.weighLarge(h, at), max(float64(l.owed), 0)+own))
	}
	free := float64(l.owed) - l.reserved(h, large)
	// A part of the new bytes is that of large objects, which have samples of
	// their own.
	small := 1.0
	if l.owed > 0 {
		small = max(free, 0) / float64(l.owed)
	}
	first := c.during[h.site] != at.begin
	fresh := float64(8*(h.words-min(h.words, c.seen[h.site]))) * small
	c.seen[h.site], c.during[h.site] = h.words, at.begin
	if h.site == bpf.SiteBlock {
		if first {
			return 0
		}
		l.heap.see(blockBytes*float64(max(h.thin, 1)), fresh)
		return l.give(l.weighBlock(fresh, free, at))
	}
	l.count(h.primitive)
	begins := first && l.nursery == 0
	switch {
	case first:
		// What it has seen is more than the nursery, by the time between windows.
		// Left out it would be missing most where code allocates slowly, and a
		// window catches one or none.
		fresh = min(fresh, l.nursery)
	case l.nursery == 0:
		l.nursery = fresh
	default:
		l.nursery += (fresh - l.nursery) / 16
	}
	switch {
	case begins && at.continuous():
		fresh = free
	case at.continuous():
		fresh = min(catchUp*fresh, free)
	default:
		fresh = min(fresh*at.factor, free)
	}
	if h.primitive {
		fresh = min(fresh, max(free-l.heapPending, 0))
		l.heapPending += fresh * l.heap.of()
		return l.give(fresh * (1 - l.heap.of()))
	}
	if at.continuous() {
		l.heapPending = 0
	}
	return l.give(fresh)
}

// weighBlock gives the weight of a sample at a block: the block's own bytes, and a
// part of what is pending for such samples. The rest waits for a full nursery.
func (l *ledger) weighBlock(fresh, free float64, at placement) float64 {
	w := fresh
	if !at.continuous() {
		w = max(fresh, min(fresh*at.factor, l.heapPending))
	}
	w = min(w, free)
	l.heapPending = max(0, l.heapPending-w)
	return w
}

// count keeps the part of full nurseries that primitive operations found, lately.
func (l *ledger) count(primitive bool) {
	l.primitives -= l.primitives / 64
	if primitive {
		l.primitives += 1.0 / 64
	}
}

// weighLarge gives the weight of the large objects that were seen since the last
// sample of one.
func (l *ledger) weighLarge(h *hit, at placement) float64 {
	bytes := float64(h.large - min(h.large, l.largeSeen))
	if l.largeSeen != 0 && l.largeDuring == at.begin {
		l.largePart.see(bytes, float64(l.total-l.largeTotal))
	}
	l.largeSeen, l.largeDuring, l.largeTotal = max(h.large, l.largeSeen), at.begin, l.total
	if at.continuous() {
		extra := min((catchUp-1)*bytes, l.largePending)
		l.largePending -= extra
		return bytes + extra
	}
	bytes *= at.factor
	l.largePending = max(0, l.largePending-bytes)
	return bytes
}

// manyPrimitives is the part of full nurseries that primitive operations have to find for
// these not to tell who filled them.
const manyPrimitives = 0.25

// catchUp is how many times what it has seen a sample of a probe that is always in place
// may be given, while there is something left of the time when it was not. No single
// sample is to stand for all of that.
const catchUp = 2

// part is a ratio of bytes, of late.
type part struct{ bytes, all float64 }

// see takes in what was seen since the last time.
func (p *part) see(bytes, all float64) {
	const memory = 256 << 20
	p.bytes, p.all = p.bytes+bytes, p.all+all
	if p.all > memory {
		p.bytes, p.all = p.bytes/2, p.all/2
	}
}

func (p *part) of() float64 {
	if p.all <= 0 {
		return 0
	}
	return min(p.bytes/p.all, 1)
}

// reserved is what is owed to large objects.
func (l *ledger) reserved(h *hit, large placement) float64 {
	if large.continuous() {
		return l.largePending + float64(h.large-min(h.large, l.largeSeen))
	}
	return l.largePending
}

func (l *ledger) give(weight float64) uint64 {
	if weight < 1 {
		return 0
	}
	w := uint64(weight)
	l.owed -= int64(w)
	l.given += w
	return w
}

// remember keeps a sample that was written, to give it a part of the last bytes.
func (l *ledger) remember(s *eventlog.Sample, site bpf.AllocSite) {
	r := &l.recent[site]
	r.last[r.n%fewSamples] = *s
	// Each sample so far is among the many with the same chance (Vitter's algorithm R).
	i := r.n
	if i >= manySamples {
		i = rand.IntN(r.n + 1)
	}
	if i < manySamples {
		r.any[i] = *s
	}
	r.n++
}

// forgetRecent is called when a new log begins, in which the nodes of the old one
// mean nothing.
func (l *ledger) forgetRecent() { l.recent = [bpf.AllocSites]recent{} }

// settle divides what the process has allocated and no sample was given among its
// last samples, by their weights. words is what all capabilities have allocated at a
// time; large tells how the probe of large objects is placed.
func (l *ledger) settle(words uint64, large placement) []eventlog.Sample {
	counted := 8 * words
	if counted <= l.base+l.given {
		return nil
	}
	if counted > l.base+l.total {
		l.owe(counted-l.base-l.total, large)
	}
	rest := counted - l.base - l.given
	l.given += rest
	choose := (*recent).some
	if rest < counted/100 {
		choose = (*recent).latest
	}
	small, big := choose(&l.recent[bpf.SiteNursery]), choose(&l.recent[bpf.SiteLarge])
	blocks := choose(&l.recent[bpf.SiteBlock])
	ofBlocks := 0.0 // of what is small
	if len(blocks) > 0 && l.primitives >= manyPrimitives {
		// Full nurseries do not tell who filled them.
		ofBlocks = l.heap.of()
	} else {
		small, blocks = append(small, blocks...), nil
	}
	ofLarge := min(uint64(l.largePending), rest)
	switch {
	case len(small)+len(big)+len(blocks) == 0:
		return []eventlog.Sample{{Capability: eventlog.NoCapability, Weight: rest, Stop: eventlog.StopNoHaskell}}
	case len(small)+len(blocks) == 0:
		ofLarge = rest
	case len(big) == 0:
		ofLarge = 0
	}
	if len(small) == 0 {
		ofBlocks = 1
	}
	heap := uint64(ofBlocks * float64(rest-ofLarge))
	return slices.Concat(divide(rest-ofLarge-heap, small), divide(heap, blocks), divide(ofLarge, big))
}

// divide gives each sample a part of the bytes, by their weights.
func divide(bytes uint64, samples []eventlog.Sample) []eventlog.Sample {
	var sum float64
	for i := range samples {
		sum += float64(samples[i].Weight)
	}
	out, left := samples[:0], bytes
	for i, s := range samples {
		w := min(uint64(float64(bytes)*float64(s.Weight)/sum), left)
		if i == len(samples)-1 {
			w = left
		}
		if left -= w; w > 0 {
			s.Weight = w
			out = append(out, s)
		}
	}
	return out
}

// recent are the last samples that were written, and a random choice of all.
type recent struct {
	last [fewSamples]eventlog.Sample
	any  [manySamples]eventlog.Sample
	n    int
}

func (r *recent) latest() []eventlog.Sample { return slices.Clone(r.last[:min(r.n, fewSamples)]) }

func (r *recent) some() []eventlog.Sample { return slices.Clone(r.any[:min(r.n, manySamples)]) }
