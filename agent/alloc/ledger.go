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
	// baseKnown is set if base includes capabilities that are not in start.
	baseKnown bool

	seen       uint64 // allocated since the capture began, by samples
	total      uint64 // likewise, as far as it is known
	attributed uint64
	balances   [strata]balance
	split      split

	largeSeen uint64 // bytes of large objects that the probe had counted at the last sample of one

	// primopShare is the share of full nurseries that were found so by primops and stack
	// checks, and threadShare and otherShare those by primops that make threads and by others:
	// moving averages. They say nothing of the bytes.
	primopShare, threadShare, otherShare float64

	// primopSize is the mean size of what primops make, bytes; 0 if not known.
	primopSize float64

	// nursery is what is allocated from one full nursery to the next; 0 if not known. hits and
	// atHits are the probe's count of full nurseries at the last sample, and what was allocated.
	nursery      float64
	hits, atHits uint64
	// blockHits is likewise of blocks, in the placement of their probe that began at
	// blockPlacement.
	blockHits, blockPlacement uint64

	recent [strata]recent
	keeps  int // samples of a stratum that settle may choose among, at most
}

// stratum is a kind of allocation with samples of its own.
type stratum int

const (
	heapStratum   stratum = iota // small objects of compiled code, after a heap check
	largeStratum                 // large objects
	chunkStratum                 // large objects that are the next chunks of stacks
	primopStratum                // small objects that C code allocates for primops
	threadStratum                // of these, threads and their first stacks
	strata
	noStratum stratum = -1 // of samples that say nothing of who allocates
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
	origin     bpf.AllocOrigin
	chunk      bool   // the sampled large object is a chunk of a stack
	large      uint64 // bytes of large objects that the probe has counted since it was first placed
	hits       uint64 // of the probe, of full nurseries and blocks
	// object is the bytes of the sampled large object, which words does not include yet, or of
	// what the primop makes, if it is known.
	object uint64
	thin   uint32 // one in how many hits is sampled; 0 is all
}

// newLedger begins a process's ledger. Of a process that was not watched from its start,
// atStart has what each capability had allocated before, in words, and before what they had in
// all, in bytes, if they are not known.
func newLedger(fromStart bool, atStart map[uint16]uint64, before uint64) *ledger {
	l := &ledger{caps: map[uint16]*capabilityCount{}, base: before, baseKnown: before > 0, keeps: reservoirSize}
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

// stratum returns the stratum that a hit is a sample of.
func (h *hit) stratum() stratum {
	switch {
	case h.site == bpf.SiteLarge && h.chunk:
		return chunkStratum
	case h.site == bpf.SiteLarge:
		return largeStratum
	case h.site != bpf.SiteNursery || h.origin == bpf.OriginHeapCheck:
		return heapStratum
	case h.origin == bpf.OriginFork:
		return threadStratum
	case h.origin == bpf.OriginPrimop && h.object < 8*ghc.LargeObjectWords:
		return primopStratum
	}
	return noStratum
}

// addAllocated adds allocated bytes to the balances, by the shares known so far. update will
// correct that.
func (l *ledger) addAllocated(bytes uint64) {
	l.seen += bytes
	if l.seen <= l.total {
		return
	}
	bytes, l.total = l.seen-l.total, l.seen
	for of, share := range l.split.shares() {
		l.balances[of].bytes += share * float64(bytes)
	}
}

// update divides all bytes among the strata by what the run-time system has counted and what
// surveys have found by now. allocated is what was allocated since the capture began, 0 if that
// is not known.
func (l *ledger) update(allocated uint64, c *counts) {
	l.total = max(l.total, allocated)
	for of, bytes := range l.split.update(float64(l.total), c) {
		l.balances[of].bytes = bytes
	}
}

// updateCapability adds what a capability has allocated since its last hit to the balances.
func (l *ledger) updateCapability(h *hit) *capabilityCount {
	c := l.caps[h.capability]
	if c == nil {
		c = &capabilityCount{}
		if l.start != nil {
			words, known := l.start[h.capability]
			if !known {
				words = h.words
				if !l.baseKnown {
					l.base += 8 * words
				}
			}
			c.words, c.atNursery = words, words
		}
		l.caps[h.capability] = c
	}
	if h.words > c.words {
		l.addAllocated(8 * (h.words - c.words))
		c.words = h.words
	}
	return c
}

// weigh returns a sample's weight; 0 if it is not to be recorded. at is the placement of the
// sample's probe.
func (l *ledger) weigh(h *hit, at placement) uint64 {
	c := l.updateCapability(h)
	of := h.stratum()
	switch h.site {
	case bpf.SiteLarge:
		own := float64(h.large - min(h.large, l.largeSeen))
		l.largeSeen = max(h.large, l.largeSeen)
		return l.weighLarge(of, own, h, at)
	case bpf.SiteBlock:
		blocks := float64(max(h.thin, 1))
		if l.blockPlacement == at.begin && h.hits > l.blockHits {
			blocks = float64(h.hits - l.blockHits)
		}
		l.blockHits, l.blockPlacement = h.hits, at.begin
		return l.attribute(of, l.scale(of, ghc.BlockBytes*blocks, at), 0)
	}
	shares := l.split.shares()
	first := c.placement != at.begin
	fresh := float64(8*(h.words-min(h.words, c.atNursery))) * (1 - shares[largeStratum] - shares[chunkStratum])
	c.atNursery, c.placement = h.words, at.begin
	l.countNursery(of)
	begins := first && l.nursery == 0
	if first {
		// The counter's advance includes the time between windows, so only a nursery of it
		// counts. Skipping the sample would bias against code that allocates so slowly that
		// windows have one hit or none.
		fresh = min(fresh, l.nursery)
	} else if l.hits != 0 && h.hits > l.hits {
		size := float64(l.seen-l.atHits) / float64(h.hits-l.hits)
		if l.nursery == 0 {
			l.nursery = size
		}
		l.nursery += (size - l.nursery) / 16
	}
	l.hits, l.atHits = h.hits, l.seen
	if of == noStratum {
		return 0
	}
	if begins && at.continuous() {
		return l.attribute(of, l.scale(of, l.balances[of].unattributed(), at), 0)
	}
	// What is allocated from sample to sample of the stratum.
	switch of {
	case threadStratum:
		fresh *= l.split.small(of) / max(l.threadShare, 1.0/64)
	case primopStratum:
		fresh *= l.split.small(of) / max(l.otherShare, 1.0/64) * l.relativeSize(h.object)
	default:
		if l.nurseriesMisattribute() && !at.continuous() {
			// Primops end most nurseries early, so what one that a heap check ends stands for
			// is a block, not the nursery.
			fresh = min(fresh, ghc.BlockBytes)
		}
		fresh *= l.split.small(of) / max(1-l.primopShare, 1.0/64)
	}
	return l.attribute(of, l.scale(of, fresh, at), 0)
}

// weighLarge returns the weight of a large object's sample; own is the bytes of objects that the
// probe has seen since the sample before. Of thinned hits an object of a size below the distance is
// sampled with a probability of size / distance, so it stands for a distance, whatever its size.
func (l *ledger) weighLarge(of stratum, own float64, h *hit, at placement) uint64 {
	object := min(own, float64(h.object)) // the capability's counter does not include it yet
	if h.thin == 0 {
		return l.attribute(of, l.scale(of, own, at), object)
	}
	// The stratum may owe the probe a few samples, and what was allocated since the sample before is
	// not taken along. Otherwise the weight would depend on what that was.
	const owed = 4
	distance := ghc.BlockBytes * float64(h.thin)
	weight := max(object, distance)
	if !at.continuous() {
		weight = l.scale(of, weight, at)
	} else if l.has(of) > 2*owed*distance {
		weight *= maxCatchUp
	}
	return l.give(of, min(weight, max(l.has(of)+owed*distance, 0), l.unattributed()+object))
}

// relativeSize returns the size of what a primop makes, relative to the mean of others. A primop
// looks for room before it makes an object of any size, so its chance to find the nursery full
// does not depend on the size.
func (l *ledger) relativeSize(bytes uint64) float64 {
	if bytes == 0 {
		return 1
	}
	if l.primopSize == 0 {
		l.primopSize = float64(bytes)
	}
	l.primopSize += (float64(bytes) - l.primopSize) / 16
	return float64(bytes) / l.primopSize
}

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

// countNursery updates the shares of who finds nurseries full.
func (l *ledger) countNursery(of stratum) {
	for share, counts := range map[*float64]bool{
		&l.primopShare: of != heapStratum, &l.threadShare: of == threadStratum, &l.otherShare: of == primopStratum,
	} {
		*share -= *share / 64
		if counts {
			*share += 1.0 / 64
		}
	}
}

// misleadingPrimopShare is the primopShare from which on nurseriesMisattribute reports true.
const misleadingPrimopShare = 0.25

// maxCatchUp bounds the weight of a sample of a continuous probe, as a multiple of the bytes it
// has seen: bytes from before the probe was continuous are spread over several samples.
const maxCatchUp = 2

// unattributed returns the bytes that no sample has; negative if samples have too many.
func (l *ledger) unattributed() float64 { return float64(l.total) - float64(l.attributed) }

// attribute takes a weight off a stratum's balance and returns it. The weight is cut to what
// is unattributed, of the stratum and of all; uncounted bytes are not in either yet.
func (l *ledger) attribute(of stratum, weight, uncounted float64) uint64 {
	return l.give(of, min(weight, max(l.has(of), 0)+uncounted, l.unattributed()+uncounted))
}

// has returns what is unattributed of a stratum.
func (l *ledger) has(of stratum) float64 {
	if (of == largeStratum || of == chunkStratum) && !l.split.countsLarge() {
		return l.unattributed() / 2
	}
	return l.balances[of].unattributed()
}

// give takes a weight off a stratum's balance, in whole bytes, and returns it.
func (l *ledger) give(of stratum, weight float64) uint64 {
	if weight < 1 {
		return 0
	}
	w := uint64(weight)
	l.balances[of].attributed += float64(w)
	l.attributed += w
	return w
}

// remember keeps a written sample, which settle may choose.
func (l *ledger) remember(time uint64, s *eventlog.Sample, of stratum) {
	r := &l.recent[of]
	if len(r.last) < lastSamples {
		r.last = append(r.last, written{time, *s})
	} else {
		r.last[r.n%lastSamples] = written{time, *s}
	}
	// Reservoir sampling (Vitter's algorithm R).
	if len(r.reservoir) < l.keeps {
		r.reservoir = append(r.reservoir, written{time, *s})
	} else if i := rand.IntN(r.n + 1); i < l.keeps {
		r.reservoir[i] = written{time, *s}
	}
	r.n++
}

// forgetRecent drops the remembered samples: their stack nodes are undefined in a new log.
func (l *ledger) forgetRecent() {
	for of := range l.recent {
		r := &l.recent[of]
		*r = recent{last: r.last[:0], reservoir: r.reservoir[:0]}
	}
}

// settle divides the unattributed bytes among remembered samples, by strata and by weights, and
// returns these with their new weights. words is what all capabilities have allocated, and
// unnamed has for each stratum the bytes of those that have no samples.
func (l *ledger) settle(words uint64, c *counts) (out []written, unnamed [strata]uint64) {
	counted := 8 * words
	if counted <= l.base+l.attributed {
		return nil, unnamed
	}
	l.update(counted-l.base, c)
	rest := counted - l.base - l.attributed
	choose := (*recent).sampleOfAll
	if rest < counted/100 {
		choose = (*recent).latest
	}
	var chosen [strata][]written
	var shares [strata]float64
	sum := 0.0
	for of := range strata {
		chosen[of] = choose(&l.recent[of])
		shares[of] = max(l.balances[of].unattributed(), 0)
	}
	// Which code allocates small objects is known for other code at best.
	if len(chosen[primopStratum]) == 0 {
		shares[heapStratum], shares[primopStratum] = shares[heapStratum]+shares[primopStratum], 0
	} else if len(chosen[heapStratum]) == 0 {
		shares[primopStratum], shares[heapStratum] = shares[primopStratum]+shares[heapStratum], 0
	}
	last := heapStratum // with a share
	for of := range strata {
		if sum += shares[of]; shares[of] > 0 {
			last = of
		}
	}
	left := rest
	for of := range strata {
		w := left
		if of != last {
			w = 0
			if sum > 0 {
				w = min(uint64(float64(rest)*(shares[of]/sum)), left)
			}
		}
		left -= w
		l.balances[of].attributed += float64(w)
		l.attributed += w
		if len(chosen[of]) == 0 {
			unnamed[of] = w
		} else {
			out = append(out, divide(w, chosen[of])...)
		}
	}
	return out, unnamed
}

// divide divides bytes among samples, in proportion to their weights.
func divide(bytes uint64, samples []written) []written {
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

// written is a sample that is in the log, and when it was taken. What is left in the end is of
// then, too: at the end of the log it would look as if the program had allocated it there.
type written struct {
	time uint64
	eventlog.Sample
}

// recent holds the last samples of a stratum, and a reservoir sample of all.
type recent struct {
	last      []written // at most lastSamples
	reservoir []written
	n         int
}

func (r *recent) latest() []written { return slices.Clone(r.last) }

func (r *recent) sampleOfAll() []written { return slices.Clone(r.reservoir) }
