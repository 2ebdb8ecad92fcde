package alloc

import (
	"math/rand/v2"
	"slices"

	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/internal/ghc"
)

// ledger computes the weights of one process's allocation samples. The weights add up to what
// the process allocates, and are attributed, in expectation, to the code that allocated it,
// whichever probes are in place at a time. The package documentation describes the strata
// and the estimator.
//
// Quantities are in bytes.
type ledger struct {
	caps  map[uint16]*capabilityCount
	start map[uint16]uint64 // words at the start; nil when the process was watched from its beginning
	base  uint64            // allocated when the capture began

	total      uint64 // allocated since the capture began, as far as it is known
	attributed uint64
	balances   [strata]balance
	// Shares of large objects, and of blocks that heap checks fill, in all bytes. Until they
	// are known heapStratum's balance has all bytes.
	largeShare, heapCheckShare ratio
	largeSeen                  uint64 // bytes of large objects that the probe had counted at the last sample of one
	largeCounted               uint64 // likewise at the last sample of any site; these are in the balance
	largeDuring                uint64 // begin of the placement of SiteLarge in which largeCounted was read

	// primopShare is the share of full nurseries that primops found, a moving average. It is
	// far more than their share of the bytes.
	primopShare float64

	// nursery is what is allocated from one full nursery to the next; 0 if not known.
	nursery float64

	recent [strata]recent
}

// stratum is a kind of allocation with samples of its own.
type stratum int

const (
	heapStratum stratum = iota // small objects of compiled code, after a heap check
	largeStratum
	primopStratum // small objects that primops allocate
	strata
)

// balance holds the bytes that a stratum has allocated, and those of them that were attributed
// to samples.
type balance struct {
	bytes, attributed float64
	// The recent windows, for correcting the estimates: when the last one began and bytes was
	// what then, how many there were, and what was allocated in them and what their samples
	// had estimated.
	windowBegin         uint64
	bytesAtWindow       float64
	windows             float64
	allocated, estimate float64
}

func (a *balance) unattributed() float64 { return a.bytes - a.attributed }

// Bytes that are left when a process ends are divided among its last samples, lastSamples of
// each stratum. If they exceed a hundredth of all bytes, the estimates have left them out all
// along: then among a reservoir sample of the whole capture, of reservoirSize.
const (
	lastSamples   = 16
	reservoirSize = 512
)

// capabilityCount holds the allocation counter of a capability, in words.
type capabilityCount struct {
	words uint64 // latest value
	// The value at the last sample of a full nursery, and the begin of the probe's placement
	// in which that was.
	atNursery, placement uint64
}

// placement is a stretch of time in which a probe is in place.
type placement struct {
	// begin is CLOCK_MONOTONIC, ns, and different for every placement of a probe; 0 if the
	// probe was in place when the capture began.
	begin uint64
	// factor is the time from window to window divided by the window's length (the inverse
	// of the duty cycle); 0 for a continuous placement.
	factor float64
}

func (p placement) continuous() bool { return p.factor == 0 }

// hit is one sample from an allocation probe.
type hit struct {
	site       bpf.AllocSite
	capability uint16
	time       uint64
	words      uint64 // allocated by the capability since the process began
	// primop is set at a full nursery that a primop such as newByteArray# found, not a heap
	// check.
	primop bool
	large  uint64 // bytes of large objects that the probe has counted since it was first placed
	object uint64 // bytes of the sampled large object, which words does not include yet
	thin   uint32 // one in how many hits is sampled; 0 is all
}

func newLedger(fromStart bool, atStart map[uint16]uint64) *ledger {
	l := &ledger{caps: map[uint16]*capabilityCount{}}
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

// stratumOf returns the stratum of a sample.
func stratumOf(site bpf.AllocSite, primop bool) stratum {
	switch {
	case site == bpf.SiteLarge:
		return largeStratum
	case site == bpf.SiteNursery && primop:
		return primopStratum
	}
	return heapStratum
}

// addAllocated adds allocated bytes to the balances, by the shares known so far.
func (l *ledger) addAllocated(bytes uint64) {
	l.total += bytes
	l.divide(float64(bytes), l.largeShare.value()*float64(bytes))
}

// divide adds allocated bytes to the balances; large of them are of large objects.
func (l *ledger) divide(bytes, large float64) {
	small := bytes - large
	heap := l.heapFraction() * small
	l.balances[largeStratum].bytes += large
	l.balances[heapStratum].bytes += heap
	l.balances[primopStratum].bytes += small - heap
}

// count holds what a probe has counted while it was in place, and what the process allocated
// meanwhile.
type count struct{ hits, large, bytes float64 }

// observe updates the strata's shares by what a probe has counted. The first count of a site
// divides what was allocated before it as well.
func (l *ledger) observe(site bpf.AllocSite, n count) {
	heap, prim := &l.balances[heapStratum], &l.balances[primopStratum]
	switch {
	case n.bytes < minCounted:
	case site == bpf.SiteLarge:
		known := l.largeShare.known()
		l.largeShare.add(n.large, n.bytes)
		if !known {
			large := l.largeShare.value() * float64(l.total)
			l.balances[largeStratum].bytes = large
			small := float64(l.total) - large
			heap.bytes = l.heapFraction() * small
			prim.bytes = small - heap.bytes
		}
	case site == bpf.SiteBlock:
		known := l.heapCheckShare.known()
		// The last block of a nursery ends in a hit of SiteNursery instead.
		blocks := n.hits * ghc.BlockBytes
		if l.nursery > 2*ghc.BlockBytes {
			blocks *= l.nursery / (l.nursery - ghc.BlockBytes)
		}
		l.heapCheckShare.add(blocks, n.bytes)
		if !known {
			all := heap.bytes + prim.bytes
			heap.bytes = l.heapFraction() * all
			prim.bytes = all - heap.bytes
		}
	}
}

// heapFraction returns the share of heap checks in the bytes that are not of large objects.
func (l *ledger) heapFraction() float64 {
	small := 1 - l.largeShare.value()
	if !l.heapCheckShare.known() || small <= 0 {
		return 1
	}
	return min(l.heapCheckShare.value()/small, 1)
}

// minCounted is the least number of allocated bytes for which a count updates the shares.
const minCounted = 16 * ghc.BlockBytes

// updateCapability adds what a capability has allocated since its last hit to the balances.
func (l *ledger) updateCapability(h *hit, large placement) *capabilityCount {
	c := l.caps[h.capability]
	if c == nil {
		c = &capabilityCount{}
		if l.start != nil {
			words, known := l.start[h.capability]
			if !known {
				words = h.words
				l.base += 8 * words
			}
			c.words, c.atNursery = words, words
		}
		l.caps[h.capability] = c
	}
	var bytes uint64
	if h.words > c.words {
		bytes = 8 * (h.words - c.words)
		c.words = h.words
	}
	if !large.continuous() || l.largeDuring != large.begin || h.large < l.largeCounted {
		l.addAllocated(bytes)
	} else {
		// The probe of large objects was in place throughout, so their bytes are known.
		l.total += bytes
		l.divide(float64(bytes), float64(h.large-l.largeCounted))
	}
	l.largeCounted, l.largeDuring = max(h.large, l.largeCounted), large.begin
	return c
}

// weigh returns a sample's weight; 0 if it is not to be recorded. at is the placement of the
// sample's probe, large that of the probe of large objects.
func (l *ledger) weigh(h *hit, at, large placement) uint64 {
	c := l.updateCapability(h, large)
	of := stratumOf(h.site, h.primop)
	switch h.site {
	case bpf.SiteLarge:
		own := float64(h.large - min(h.large, l.largeSeen))
		l.largeSeen = max(h.large, l.largeSeen)
		// The capability's counter does not include the object yet, and does all before it.
		return l.attribute(of, l.scale(of, own, at), min(own, float64(h.object)))
	case bpf.SiteBlock:
		if at.continuous() {
			return l.attribute(of, l.blockWeight(h), 0)
		}
		return l.attribute(of, l.scale(of, l.blockWeight(h), at), 0)
	}
	first := c.placement != at.begin
	fresh := float64(8*(h.words-min(h.words, c.atNursery))) * (1 - l.largeShare.value())
	c.atNursery, c.placement = h.words, at.begin
	l.countNursery(h.primop)
	begins := first && l.nursery == 0
	switch {
	case first:
		// The counter's advance includes the time between windows, so only a nursery of it
		// counts. Skipping the sample would bias against code that allocates so slowly that
		// windows have one hit or none.
		fresh = min(fresh, l.nursery)
	case l.nursery == 0:
		l.nursery = fresh
	default:
		l.nursery += (fresh - l.nursery) / 16
	}
	switch {
	case begins && at.continuous():
		fresh = l.balances[of].unattributed()
	case of == primopStratum && !l.heapCheckShare.known():
		// The primop found the nursery full, but most of it was filled by other code. The
		// small weight keeps primops visible if SiteBlock is never counted.
		return l.attribute(heapStratum, fresh/16, 0)
	case of == primopStratum:
		fresh *= (1 - l.heapFraction()) / max(l.primopShare, 1-l.heapFraction())
	case l.nurseriesMisattribute() && l.heapCheckShare.known() && !at.continuous():
		// Primops end most nurseries early, so what one that a heap check ends stands for is
		// a block, not the nursery.
		fresh = min(fresh, l.blockWeight(h))
	}
	return l.attribute(of, l.scale(of, fresh, at), 0)
}

// blockWeight returns the bytes of a sample at a block while its probe is in place.
func (l *ledger) blockWeight(h *hit) float64 { return ghc.BlockBytes * float64(max(h.thin, 1)) }

// nurseriesMisattribute reports whether primops find so many of the full nurseries that these
// samples no longer show which code filled them.
func (l *ledger) nurseriesMisattribute() bool { return l.primopShare >= misleadingPrimopShare }

// scale returns the bytes that a sample stands for: those that it has seen, divided by the
// probe's duty cycle and corrected by the stratum's recent allocation.
func (l *ledger) scale(of stratum, seen float64, at placement) float64 {
	if at.continuous() {
		return maxCatchUp * seen
	}
	a := &l.balances[of]
	if a.windowBegin != at.begin {
		if a.windows > 0 {
			a.allocated += a.bytes - a.bytesAtWindow
		}
		if a.windows++; a.windows > correctionWindows {
			a.windows, a.allocated, a.estimate = a.windows/2, a.allocated/2, a.estimate/2
		}
		a.windowBegin, a.bytesAtWindow = at.begin, a.bytes
	}
	seen *= at.factor
	correction := 1.0
	if a.windows > correctionWindows/4 && a.estimate > 0 {
		correction = min(max(a.allocated/a.estimate, 1/maxCorrection), maxCorrection)
	}
	a.estimate += seen
	return seen * correction
}

// correctionWindows is over how many windows a stratum's estimates are compared with what it
// allocated. Over a single one, bytes would move from the code in one window to that in the
// next. maxCorrection bounds the factor.
const (
	correctionWindows = 64
	maxCorrection     = 2
)

// countNursery updates primopShare by a full nursery.
func (l *ledger) countNursery(primop bool) {
	l.primopShare -= l.primopShare / 64
	if primop {
		l.primopShare += 1.0 / 64
	}
}

// misleadingPrimopShare is the primopShare from which on nurseriesMisattribute reports true.
const misleadingPrimopShare = 0.25

// maxCatchUp bounds the weight of a sample of a continuous probe, as a multiple of the bytes it
// has seen: bytes from before the probe was continuous are spread over several samples.
const maxCatchUp = 2

// ratio is a ratio of bytes, over roughly the latest 256 MiB.
type ratio struct{ bytes, all float64 }

// add adds what was counted since the last call.
func (p *ratio) add(bytes, all float64) {
	const memory = 256 << 20
	p.bytes, p.all = p.bytes+bytes, p.all+all
	if p.all > memory {
		p.bytes, p.all = p.bytes/2, p.all/2
	}
}

func (p *ratio) value() float64 {
	if p.all <= 0 {
		return 0
	}
	return min(p.bytes/p.all, 1)
}

func (p *ratio) known() bool { return p.all > 0 }

// unattributed returns the bytes that no sample has; negative if samples have too many.
func (l *ledger) unattributed() float64 { return float64(l.total) - float64(l.attributed) }

// attribute takes a weight off a stratum's balance and returns it. The weight is cut to what
// is unattributed, of the stratum and of all; uncounted bytes are not in either yet.
func (l *ledger) attribute(of stratum, weight, uncounted float64) uint64 {
	a := &l.balances[of]
	has := a.unattributed()
	if of == largeStratum && !l.largeShare.known() {
		has = l.unattributed() / 2
	}
	weight = min(weight, max(has, 0)+uncounted, l.unattributed()+uncounted)
	if weight < 1 {
		return 0
	}
	w := uint64(weight)
	a.attributed += float64(w)
	l.attributed += w
	return w
}

// remember keeps a written sample, which settle may choose.
func (l *ledger) remember(s *eventlog.Sample, of stratum) {
	r := &l.recent[of]
	r.last[r.n%lastSamples] = *s
	// Reservoir sampling (Vitter's algorithm R).
	i := r.n
	if i >= reservoirSize {
		i = rand.IntN(r.n + 1)
	}
	if i < reservoirSize {
		r.reservoir[i] = *s
	}
	r.n++
}

// forgetRecent drops the remembered samples: their stack nodes are undefined in a new log.
func (l *ledger) forgetRecent() { l.recent = [strata]recent{} }

// settle divides the unattributed bytes among remembered samples, by strata and by weights, and
// returns these with their new weights. words is what all capabilities have allocated.
func (l *ledger) settle(words uint64) []eventlog.Sample {
	counted := 8 * words
	if counted <= l.base+l.attributed {
		return nil
	}
	if counted > l.base+l.total {
		l.addAllocated(counted - l.base - l.total)
	}
	rest := counted - l.base - l.attributed
	choose := (*recent).sampleOfAll
	if rest < counted/100 {
		choose = (*recent).latest
	}
	var chosen [strata][]eventlog.Sample
	var shares [strata]float64
	last := strata // the last stratum with samples
	for of := range strata {
		if chosen[of] = choose(&l.recent[of]); len(chosen[of]) > 0 {
			last = of
		}
		shares[of] = max(l.balances[of].unattributed(), 0)
	}
	if last == strata {
		l.attributed += rest
		return []eventlog.Sample{{Capability: eventlog.NoCapability, Weight: rest, Stop: eventlog.StopNoHaskell}}
	}
	// The strata of small objects stand in for each other.
	if len(chosen[primopStratum]) == 0 {
		shares[heapStratum] += shares[primopStratum]
	} else if len(chosen[heapStratum]) == 0 {
		shares[primopStratum] += shares[heapStratum]
	}
	sum := 0.0
	for of := range strata {
		if len(chosen[of]) > 0 {
			sum += shares[of]
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
			w = min(uint64(float64(rest)*(shares[of]/sum)), left)
		}
		left -= w
		l.balances[of].attributed += float64(w)
		l.attributed += w
		out = append(out, divide(w, chosen[of])...)
	}
	return out
}

// divide divides bytes among samples, in proportion to their weights.
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

// recent holds the last samples of a stratum, and a reservoir sample of all.
type recent struct {
	last      [lastSamples]eventlog.Sample
	reservoir [reservoirSize]eventlog.Sample
	n         int
}

func (r *recent) latest() []eventlog.Sample { return slices.Clone(r.last[:min(r.n, lastSamples)]) }

func (r *recent) sampleOfAll() []eventlog.Sample {
	return slices.Clone(r.reservoir[:min(r.n, reservoirSize)])
}
