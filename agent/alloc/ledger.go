package alloc

import (
	"math/rand/v2"
	"slices"

	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/internal/ghc"
)

// ledger makes weights of what the allocation probes of one process count, so that
// they add up to what the process allocates, and each part of it falls on the code
// that allocated it, in expectation, whichever probes are in place at a time.
//
// Every sample from a probe tells how much its capability has allocated so far; what
// is new of that is divided among strata: large objects, small objects that heap
// checks make room for, and small objects of primitive operations. The parts are those
// that the probes of large objects and of blocks count while they are in place. Each
// sample is given of its own stratum alone, so that what one probe sees is not taken
// for what another does not.
//
// While a probe is always in place each of its samples is given what its stratum has
// allocated since the one before. A probe that is in place for a part of the time
// alone is a random choice of the moments at which it would have been hit (the
// window's begin does not depend on what the program does), so its samples count
// for as much more as the time between windows is longer than they are: Horvitz and
// Thompson's estimator. What that gets wrong stays owed, or is owing, and the next
// windows' samples count for more, or less.
//
// Quantities are in bytes.
type ledger struct {
	caps  map[uint16]*capLedger
	start map[uint16]uint64 // words at the start; nil when the process was watched from its beginning
	base  uint64            // allocated when the capture began

	total    uint64 // allocated since the capture began, as far as it is known
	given    uint64
	accounts [strata]account
	// large is the part of large objects, of all bytes; heap that of blocks which heap
	// checks fill. Until they are known, the account of heapStratum has it all.
	large, heap  part
	largeSeen    uint64 // of large objects, as counted by the probe, and sampled
	largeCounted uint64 // likewise, and in the account
	largeDuring  uint64 // the placement in which that was

	// Primitive operations find the nursery full far more often than they fill it.
	primitives float64 // part of full nurseries that they found, lately

	// nursery is what is allocated from one full nursery to the next; 0 if not known.
	nursery float64

	recent [strata]recent
}

// stratum is a kind of allocation whose samples come from probes of its own.
type stratum int

const (
	heapStratum stratum = iota // small objects, room for which a heap check makes
	largeStratum
	primitiveStratum // small objects that primitive operations allocate
	strata
)

// account is what a stratum has allocated, and what of it samples were given.
type account struct {
	bytes, given float64
	// When the window began that its samples come from; what it had allocated, in how many
	// windows, of late, and what the samples of these had estimated it to be.
	during              uint64
	mark                float64
	allocated, estimate float64
	windows             float64
}

func (a *account) owed() float64 { return a.bytes - a.given }

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
	// What it had allocated when last sampled at a full nursery, and during which
	// placement of the probe.
	seen, during uint64
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

// stratumOf is the stratum of what is sampled at a site.
func stratumOf(site bpf.AllocSite, primitive bool) stratum {
	switch {
	case site == bpf.SiteLarge:
		return largeStratum
	case site == bpf.SiteNursery && primitive:
		return primitiveStratum
	}
	return heapStratum
}

// owe takes in bytes that have been allocated.
func (l *ledger) owe(bytes uint64) {
	l.total += bytes
	l.divide(float64(bytes), l.large.of()*float64(bytes))
}

// divide divides what has been allocated among the strata.
func (l *ledger) divide(bytes, large float64) {
	small := bytes - large
	heap := l.heapPart() * small
	l.accounts[largeStratum].bytes += large
	l.accounts[heapStratum].bytes += heap
	l.accounts[primitiveStratum].bytes += small - heap
}

// count is what a probe has counted, and the process allocated, while it was in place.
type count struct{ hits, large, bytes float64 }

// observe takes in what a probe has counted: from that it is known how to divide what is
// allocated, and on the first time how to divide what was.
func (l *ledger) observe(site bpf.AllocSite, n count) {
	heap, prim := &l.accounts[heapStratum], &l.accounts[primitiveStratum]
	switch {
	case n.bytes < leastCounted:
	case site == bpf.SiteLarge:
		known := l.large.known()
		l.large.see(n.large, n.bytes)
		if !known {
			large := l.large.of() * float64(l.total)
			l.accounts[largeStratum].bytes = large
			small := float64(l.total) - large
			heap.bytes = l.heapPart() * small
			prim.bytes = small - heap.bytes
		}
	case site == bpf.SiteBlock:
		known := l.heap.known()
		// Of each nursery a last block is not hit; it ends in a full nursery.
		blocks := n.hits * ghc.BlockBytes
		if l.nursery > 2*ghc.BlockBytes {
			blocks *= l.nursery / (l.nursery - ghc.BlockBytes)
		}
		l.heap.see(blocks, n.bytes)
		if !known {
			all := heap.bytes + prim.bytes
			heap.bytes = l.heapPart() * all
			prim.bytes = all - heap.bytes
		}
	}
}

// heapPart is the part that heap checks make room for, of what is not large.
func (l *ledger) heapPart() float64 {
	small := 1 - l.large.of()
	if !l.heap.known() || small <= 0 {
		return 1
	}
	return min(l.heap.of()/small, 1)
}

// leastCounted is what has to be allocated while a probe is in place for the parts to be
// told from it.
const leastCounted = 16 * ghc.BlockBytes

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
			c.words, c.seen = words, words
		}
		l.caps[h.capability] = c
	}
	var bytes uint64
	if h.words > c.words {
		bytes = 8 * (h.words - c.words)
		c.words = h.words
	}
	if !large.continuous() || l.largeDuring != large.begin || h.large < l.largeCounted {
		l.owe(bytes)
	} else {
		// Of these it is known what large objects have.
		l.total += bytes
		l.divide(float64(bytes), float64(h.large-l.largeCounted))
	}
	l.largeCounted, l.largeDuring = max(h.large, l.largeCounted), large.begin
	return c
}

// weigh gives a sample's weight; 0 for one that is not to be recorded. at and large tell
// how its own probe and that of large objects are placed.
func (l *ledger) weigh(h *hit, at, large placement) uint64 {
	c := l.capability(h, large)
	of := stratumOf(h.site, h.primitive)
	switch h.site {
	case bpf.SiteLarge:
		own := float64(h.large - min(h.large, l.largeSeen))
		l.largeSeen = max(h.large, l.largeSeen)
		// The object itself is not yet in the count.
		return l.give(of, l.scale(of, own, at), own)
	case bpf.SiteBlock:
		if at.continuous() {
			return l.give(of, l.blocks(h), 0)
		}
		return l.give(of, l.scale(of, l.blocks(h), at), 0)
	}
	first := c.during != at.begin
	fresh := float64(8*(h.words-min(h.words, c.seen))) * (1 - l.large.of())
	c.seen, c.during = h.words, at.begin
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
		fresh = l.accounts[of].owed()
	case of == primitiveStratum && !l.heap.known():
		// It is rather who finds the nursery full than who has filled it. It is given what
		// makes it count if no probe at blocks ever tells more.
		return l.give(heapStratum, fresh/16, 0)
	case of == primitiveStratum:
		fresh *= (1 - l.heapPart()) / max(l.primitives, 1-l.heapPart())
	case l.mixed() && l.heap.known() && !at.continuous():
		// Where nurseries are mostly found full before heap checks have filled them, those
		// that they do fill are a few blocks among many.
		fresh = min(fresh, l.blocks(h))
	}
	return l.give(of, l.scale(of, fresh, at), 0)
}

// blocks is what a sample of a block stands for while its probe is in place.
func (l *ledger) blocks(h *hit) float64 { return ghc.BlockBytes * float64(max(h.thin, 1)) }

// mixed tells whether full nurseries do not tell who filled them.
func (l *ledger) mixed() bool { return l.primitives >= manyPrimitives }

// scale makes of what a sample has seen what it stands for.
func (l *ledger) scale(of stratum, seen float64, at placement) float64 {
	if at.continuous() {
		return catchUp * seen
	}
	a := &l.accounts[of]
	if a.during != at.begin {
		if a.windows > 0 {
			a.allocated += a.bytes - a.mark
		}
		if a.windows++; a.windows > fewWindows {
			a.windows, a.allocated, a.estimate = a.windows/2, a.allocated/2, a.estimate/2
		}
		a.during, a.mark = at.begin, a.bytes
	}
	seen *= at.factor
	boost := 1.0
	if a.windows > fewWindows/4 && a.estimate > 0 {
		boost = min(max(a.allocated/a.estimate, 1/mostBoost), mostBoost)
	}
	a.estimate += seen
	return seen * boost
}

// What windows estimate of a stratum, together, is held to what it has allocated over some
// of them. Over one alone it would be taken from code that a window happens to catch, and
// given to what the next one does. mostBoost bounds it.
const (
	fewWindows = 64
	mostBoost  = 2
)

// count keeps the part of full nurseries that primitive operations found, lately.
func (l *ledger) count(primitive bool) {
	l.primitives -= l.primitives / 64
	if primitive {
		l.primitives += 1.0 / 64
	}
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

func (p *part) known() bool { return p.all > 0 }

// owed is what no sample was given; negative if they were given too much.
func (l *ledger) owed() float64 { return float64(l.total) - float64(l.given) }

// give gives a weight from a stratum's account: not more than it has, nor than there is
// in all. uncounted is not in these yet.
func (l *ledger) give(of stratum, weight, uncounted float64) uint64 {
	a := &l.accounts[of]
	has := a.owed()
	if of == largeStratum && !l.large.known() {
		has = l.owed() / 2
	}
	weight = min(weight, max(has, 0)+uncounted, max(l.owed(), 0)+uncounted)
	if weight < 1 {
		return 0
	}
	w := uint64(weight)
	a.given += float64(w)
	l.given += w
	return w
}

// remember keeps a sample that was written, to give it a part of the last bytes.
func (l *ledger) remember(s *eventlog.Sample, of stratum) {
	r := &l.recent[of]
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
func (l *ledger) forgetRecent() { l.recent = [strata]recent{} }

// settle divides what the process has allocated and no sample was given among its
// last samples, by strata and by their weights. words is what all capabilities have
// allocated at a time.
func (l *ledger) settle(words uint64) []eventlog.Sample {
	counted := 8 * words
	if counted <= l.base+l.given {
		return nil
	}
	if counted > l.base+l.total {
		l.owe(counted - l.base - l.total)
	}
	rest := counted - l.base - l.given
	choose := (*recent).some
	if rest < counted/100 {
		choose = (*recent).latest
	}
	var chosen [strata][]eventlog.Sample
	var owed [strata]float64
	last := strata // of those with samples
	for of := range strata {
		if chosen[of] = choose(&l.recent[of]); len(chosen[of]) > 0 {
			last = of
		}
		owed[of] = max(l.accounts[of].owed(), 0)
	}
	if last == strata {
		l.given += rest
		return []eventlog.Sample{{Capability: eventlog.NoCapability, Weight: rest, Stop: eventlog.StopNoHaskell}}
	}
	// What is small has two strata that stand in for each other.
	if len(chosen[primitiveStratum]) == 0 {
		owed[heapStratum] += owed[primitiveStratum]
	} else if len(chosen[heapStratum]) == 0 {
		owed[primitiveStratum] += owed[heapStratum]
	}
	sum := 0.0
	for of := range strata {
		if len(chosen[of]) > 0 {
			sum += owed[of]
		}
	}
	var out []eventlog.Sample
	left := rest
	for of := range strata {
		if len(chosen[of]) == 0 {
			continue
		}
		w := left
		if of != last && sum > 0 {
			w = min(uint64(float64(rest)*(owed[of]/sum)), left)
		}
		left -= w
		l.accounts[of].given += float64(w)
		l.given += w
		out = append(out, divide(w, chosen[of])...)
	}
	return out
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
