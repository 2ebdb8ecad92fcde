package alloc

import (
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"ccagent/bpf"
	"ccagent/eventlog"
)

// simulated is a program that allocates at one place after another, as the probes
// of its run-time system would see it.
type simulated struct {
	rng       *rand.Rand
	ledger    *ledger
	time      uint64
	words     uint64
	block     uint64 // words left of it
	nursery   uint64 // words left of it
	large     uint64
	placed    [bpf.AllocSites]placement
	hits      [bpf.AllocSites]float64
	in        func(site bpf.AllocSite) bool // whether a probe is in place
	weights   map[string]float64
	allocated map[string]float64
	places    []string
	taken     []uint32 // where each sample that was remembered is of
	samples   int
	// pressure is what large objects may take between collections, words; 0 if they have
	// none made.
	pressure, sinceGC uint64

	// What the run-time system counts, and the probe of full nurseries sees of it.
	gcs, collected                  uint64  // collections, and bytes allocated by the last
	newLarge, smallHeap, smallOther float64 // bytes since then
	counts                          counts
	updated                         uint64 // time
}

const (
	blockWords   = 512
	nurseryWords = 256 * blockWords
)

// tick has the agent look at what is counted, every ten milliseconds.
func (s *simulated) tick() {
	if s.time >= s.updated+10e6 {
		s.updated = s.time
		s.counts.cycleAll, s.counts.cycleLarge = 8*float64(s.words)-float64(s.collected), s.newLarge
		s.ledger.update(8*s.words, &s.counts)
	}
}

func (s *simulated) hit(site bpf.AllocSite, place string, origin bpf.AllocOrigin, object uint64) {
	s.tick()
	if !s.in(site) {
		return
	}
	s.hits[site]++
	h := hit{site: site, time: s.time, words: s.words, large: s.large, object: object, origin: origin}
	if site == bpf.SiteNursery {
		s.count()
	}
	if site != bpf.SiteLarge {
		h.hits = uint64(s.hits[site])
	}
	if w := s.ledger.weigh(&h, s.placed[site]); w > 0 {
		s.weights[place] += float64(w)
		s.samples++
		at := uint64(len(s.taken)) // as good a time as any
		s.taken = append(s.taken, s.node(place))
		s.ledger.remember(at, &eventlog.Sample{Weight: w, Node: s.node(place)}, h.stratum())
	}
}

// count is what the probe of full nurseries counts, and a survey of the nursery.
func (s *simulated) count() {
	s.counts.all += 8*float64(s.words) - float64(s.collected)
	s.counts.large += s.newLarge
	s.counts.heap += s.smallHeap
	s.counts.other += s.smallOther
	s.counts.objects += s.newLarge
}

// collect is a collection.
func (s *simulated) collect() {
	s.gcs++
	s.collected = 8 * s.words
	s.newLarge, s.smallHeap, s.smallOther = 0, 0, 0
	s.sinceGC, s.block, s.nursery = 0, blockWords, nurseryWords
}

// node numbers a place.
func (s *simulated) node(place string) uint32 {
	i := slices.Index(s.places, place)
	if i < 0 {
		i = len(s.places)
		s.places = append(s.places, place)
	}
	return uint32(i)
}

// cells allocates small objects.
func (s *simulated) cells(words uint64, place string, nsPerWord float64) {
	s.allocated[place] += 8 * float64(words)
	for words > 0 {
		n := min(words, s.block)
		words, s.block, s.nursery = words-n, s.block-n, s.nursery-n
		s.time += uint64(float64(n) * nsPerWord)
		s.smallHeap += 8 * float64(n)
		if s.block > 0 {
			return
		}
		s.block = blockWords
		if s.nursery == 0 {
			// The last block is counted by the collection.
			s.hit(bpf.SiteNursery, place, bpf.OriginHeapCheck, 0)
			s.words += blockWords
			s.collect()
			continue
		}
		s.words += blockWords
		s.hit(bpf.SiteBlock, place, bpf.OriginHeapCheck, 0)
	}
}

func (s *simulated) array(words uint64, place string) {
	s.allocated[place] += 8 * float64(words)
	s.time += words / 16
	if s.in(bpf.SiteLarge) {
		s.large += 8 * words
	}
	s.hit(bpf.SiteLarge, place, bpf.OriginHeapCheck, 8*words)
	s.words += words
	s.newLarge += 8 * float64(words)
	if s.sinceGC += words; s.pressure > 0 && s.sinceGC >= s.pressure {
		// The next primitive operation, this one again, finds the nursery full.
		s.words += blockWords - s.block
		s.hit(bpf.SiteNursery, place, bpf.OriginPrimop, 8*words)
		s.collect()
	}
}

// small allocates small objects by primitive operations: these take a block without any
// heap check, and collect before they take what is left of the nursery's last.
func (s *simulated) small(words uint64, place string, nsPerWord float64) {
	const object = 16
	s.allocated[place] += 8 * float64(words/object*object)
	for range words / object {
		if s.nursery <= blockWords {
			s.words += blockWords - s.block
			s.hit(bpf.SiteNursery, place, bpf.OriginPrimop, 8*object)
			s.collect()
		}
		n := min(object, s.block)
		s.block, s.nursery = s.block-n, s.nursery-n
		s.time += uint64(object * nsPerWord)
		s.smallOther += 8 * object
		if s.block == 0 {
			s.words += blockWords
			s.block = blockWords
		}
	}
}

func newSimulated(seed uint64) *simulated {
	return &simulated{rng: rand.New(rand.NewPCG(seed, 1)), ledger: newLedger(true, nil, 0), time: 1,
		block: blockWords, nursery: nurseryWords, in: func(bpf.AllocSite) bool { return true },
		weights: map[string]float64{}, allocated: map[string]float64{}}
}

func sum(m map[string]float64) (all float64) {
	for _, v := range m {
		all += v
	}
	return all
}

// check holds the sum, with what is left to settle, against the allocation, and the
// share of each place.
func (s *simulated) check(t *testing.T, name string, tolerance float64) {
	t.Helper()
	given := sum(s.weights)
	weights := maps.Clone(s.weights)
	samples, unnamed := s.ledger.settle(s.words, &s.counts)
	for _, sample := range samples {
		if sample.time >= uint64(len(s.taken)) || s.taken[sample.time] != sample.Node {
			t.Errorf("%s: none of %s was taken at %d", name, s.places[sample.Node], sample.time)
		}
		given += float64(sample.Weight)
		weights[s.places[sample.Node]] += float64(sample.Weight)
	}
	for _, bytes := range unnamed {
		given += float64(bytes)
		weights[""] += float64(bytes)
	}
	if counted := 8 * float64(s.words); math.Abs(given-counted) > 0.001*counted {
		t.Errorf("%s: weights sum to %.0f of %.0f bytes", name, given, counted)
	}
	for place, bytes := range s.allocated {
		want, got := bytes/sum(s.allocated), weights[place]/sum(weights)
		t.Logf("%s: %s %.1f %% of the weights, %.1f %% of the bytes, %d samples", name, place, 100*got, 100*want, s.samples)
		if math.Abs(got-want) > tolerance {
			t.Errorf("%s: %s has %.3f of the weights, but %.3f of the bytes", name, place, got, want)
		}
	}
}

// program runs phases that allocate at different places and speeds.
func (s *simulated) program(rounds int, arrays bool) {
	for range rounds {
		s.cells(3000+s.rng.Uint64N(3000), "slow", 4)
		s.cells(9000+s.rng.Uint64N(9000), "fast", 0.5)
		if arrays {
			s.array(2000+s.rng.Uint64N(2000), "array")
			s.array(6000+s.rng.Uint64N(6000), "larger")
		}
	}
}

func TestLedgerAllProbes(t *testing.T) {
	s := newSimulated(1)
	s.program(4000, true)
	s.check(t, "all", 0.02)
}

func TestLedgerNurseriesAlone(t *testing.T) {
	s := newSimulated(2)
	s.in = func(site bpf.AllocSite) bool { return site == bpf.SiteNursery }
	s.program(40000, false)
	s.check(t, "nurseries", 0.03)
}

// Blocks in windows, full nurseries always: every byte is given once, to whom it
// belongs, whichever window it falls into.
func TestLedgerBlocksInWindows(t *testing.T) {
	s := newSimulated(3)
	s.windows(bpf.SiteBlock, 2e6, 20e6)
	s.program(40000, true)
	s.check(t, "blocks in windows", 0.03)
}

// Every probe in windows: what is sampled stands for what is not.
func TestLedgerWindows(t *testing.T) {
	for _, arrays := range []bool{false, true} {
		s := newSimulated(4)
		s.windows(bpf.SiteNursery, 5e6, 40e6)
		nursery := s.in
		s.windows(bpf.SiteLarge, 5e6, 30e6)
		large := s.in
		s.in = func(site bpf.AllocSite) bool {
			switch site {
			case bpf.SiteNursery:
				return nursery(site)
			case bpf.SiteLarge:
				return large(site)
			}
			return false
		}
		s.program(80000, arrays)
		s.check(t, "windows", 0.05)
	}
}

// Windows that catch one full nursery or none: what they see alone has the bytes, but for
// those since the last window, and code that fills a nursery slowly has its part.
func TestLedgerRareNurseries(t *testing.T) {
	for _, phase := range []uint64{nurseryWords / 2, 100 * nurseryWords} {
		s := newSimulated(5)
		s.in = func(site bpf.AllocSite) bool { return site == bpf.SiteNursery }
		program := func() {
			s.cells(phase+s.rng.Uint64N(phase), "slow", 64) // 8 ms a nursery
			s.cells(phase+s.rng.Uint64N(phase), "fast", 8)
		}
		for range 40 { // the probe is always there at first
			program()
		}
		s.windows(bpf.SiteNursery, 5e6, 200e6)
		windows := s.in
		s.in = func(site bpf.AllocSite) bool { return site == bpf.SiteNursery && windows(site) }
		before := s.words
		for s.words < before+40000*nurseryWords {
			program()
		}
		if given, all := sum(s.weights), sum(s.allocated); given < 0.95*all {
			t.Errorf("samples have %.1f %% of the bytes", 100*given/all)
		}
		s.check(t, "rare", 0.05)
	}
}

// windows has a probe in place for a length of time in every cycle, at a random
// moment of it.
func (s *simulated) windows(site bpf.AllocSite, length, cycle uint64) {
	var begin, next uint64
	s.placed[site] = placement{begin: 1, factor: float64(cycle) / float64(length)}
	s.in = func(asked bpf.AllocSite) bool {
		if asked != site {
			return true
		}
		for s.time >= next+cycle || next == 0 {
			next += cycle
			begin = next + s.rng.Uint64N(cycle-length)
			s.placed[site].begin = begin
		}
		return s.time >= begin && s.time < begin+length
	}
}

// What was allocated while no probe was in place falls on no single sample.
func TestLedgerCatchesUp(t *testing.T) {
	l := newLedger(true, nil, 0)
	words, hits, at := uint64(0), uint64(0), placement{}
	hit := func(n uint64) uint64 {
		words += n
		hits++
		return l.weigh(&hit{site: bpf.SiteNursery, words: words, hits: hits}, at)
	}
	for range 10 {
		if w := hit(1000); w != 8000 {
			t.Fatalf("a sample weighs %d, not the 8000 bytes since the last", w)
		}
	}
	at.begin = 1 // in place again
	for range 10 {
		n := uint64(1000)
		if l.unattributed() == 0 {
			n = 100_000 // meanwhile
		}
		if w := hit(n); w > 16000 || w < 8000 {
			t.Errorf("a sample weighs %d, the nursery has 8000 bytes", w)
		}
	}
	var rest uint64
	_, unnamed := l.settle(words, &counts{})
	for _, bytes := range unnamed {
		rest += bytes
	}
	if l.attributed != 8*words || rest == 0 {
		t.Errorf("%d bytes were given in the end, %d of them at the end, of %d", l.attributed, rest, 8*words)
	}
}

// A program whose stack grows and shrinks: what its chunks take is what the run-time system has
// counted, in how few windows so ever the probe of large objects is in place, and full nurseries
// are not seen all the time.
func TestSplitIsWhatIsCounted(t *testing.T) {
	var s split
	var c counts
	total := 0.0
	for i := range 400 {
		cycle, chunks := 1e6, 290e3
		total += cycle
		if i%4 == 3 {
			continue // a collection that no probe has seen
		}
		c.all, c.large = c.all+cycle, c.large+chunks
		if i%50 == 0 {
			c.heap, c.threads, c.chunks = c.heap+cycle-chunks, c.threads+1000, c.chunks+chunks
		}
		s.update(total, &c)
	}
	got := s.update(total, &c)
	for of, want := range map[stratum]float64{chunkStratum: 0.29 * total, heapStratum: 0.71 * total, largeStratum: 0, primopStratum: 0} {
		if math.Abs(got[of]-want) > 0.003*total {
			t.Errorf("stratum %d has %.0f bytes of %.0f, not %.0f", of, got[of], total, want)
		}
	}
}

// A program whose stack grows for a while, in which the probes are out, and whose other phases
// allocate many times as much in the same time: its chunks are those of that phase, but for what
// is allocated from one look to the next.
func TestSplitKnowsPhases(t *testing.T) {
	var s split
	var c counts
	total, large := 0.0, 0.0
	for i := range 40 {
		step, share := 50e6, 0.0
		if i >= 8 && i < 20 {
			step, share = 3e6, 1
		}
		total, large = total+step, large+share*step
		if i < 4 || i > 30 {
			c.all, c.large = c.all+step, c.large+share*step
		}
		c.cycleAll, c.cycleLarge = 4e5, share*4e5
		s.update(total, &c)
	}
	got := s.update(total, &c)
	if got := got[largeStratum] + got[chunkStratum]; math.Abs(got-large) > 30e6 {
		t.Errorf("large objects have %.0f bytes of %.0f, not %.0f", got, total, large)
	}
}

// What a look at an unfinished cycle shows of large objects may be anything, in a program of which
// all cycles are alike: the last round was all that was seen, or a collection runs. Bytes are
// divided as cycles were that were counted, few as they are.
func TestSplitOfMisleadingLooks(t *testing.T) {
	for seed := range uint64(20) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var s split
		var c counts
		total := 0.0
		for i := range 30 {
			step := 50e6
			if i > 20 {
				step = 500e6 // the agent looks seldom
			}
			total += step
			if i < 12 {
				counted := step * rnd.Float64()
				c.all, c.large = c.all+counted, c.large+0.8*counted
			}
			c.cycleAll, c.cycleLarge = 1e6, 1e6*rnd.Float64()
			if i > 20 {
				c.cycleLarge = 0.9e6
			}
			s.update(total, &c)
		}
		got := s.update(total, &c)
		if large := got[largeStratum] + got[chunkStratum]; math.Abs(large-0.8*total) > 0.02*total {
			t.Errorf("seed %d: large objects have %.3f of all bytes, not 0.8", seed, large/total)
		}
	}
}

// An attached process has allocated before: that is nobody's.
func TestLedgerAttach(t *testing.T) {
	l := newLedger(false, map[uint16]uint64{0: 1000, 1: 500}, 0)
	always := placement{}
	if w := l.weigh(&hit{site: bpf.SiteNursery, capability: 0, words: 1100}, always); w != 800 {
		t.Errorf("the first sample weighs %d, not 800", w)
	}
	// A capability that was not known begins with its first sample.
	if w := l.weigh(&hit{site: bpf.SiteNursery, capability: 7, words: 9000}, always); w != 0 {
		t.Errorf("the first sample of an unknown capability weighs %d, not 0", w)
	}
	var rest uint64
	_, unnamed := l.settle(1100+600+9000, &counts{})
	for _, bytes := range unnamed {
		rest += bytes
	}
	if rest != 800 {
		t.Errorf("%d bytes were settled, not 800", rest)
	}
}

// Samples of large objects, of which one in a hundred is sampled, weigh no more than
// what the capability has counted: the objects between two samples are in its counter.
func TestLedgerThinnedLargeObjects(t *testing.T) {
	const objectWords, everyNth = 4096, 100
	for _, at := range []placement{{}, {begin: 1, factor: 30}} {
		l := newLedger(true, nil, 0)
		var words, given uint64
		for i := uint64(1); i <= 5000; i++ {
			if i%everyNth == 0 {
				given += l.weigh(&hit{site: bpf.SiteLarge, words: words, large: 8 * objectWords * i, object: 8 * objectWords, thin: everyNth * objectWords / blockWords}, at)
			}
			words += objectWords // counted when the object has been allocated
			if given > 8*words {
				t.Fatalf("%+v: %d bytes were given of %d, after %d objects", at, given, 8*words, i)
			}
		}
		if given == 0 {
			t.Errorf("%+v: no sample was given any bytes", at)
		}
	}
}

// Of large objects in turns, a large and two small ones, each has its bytes, however hits are
// thinned: one in a few small ones is sampled and all large ones, or few of either.
func TestLedgerThinnedSizesInTurns(t *testing.T) {
	sizes := []uint64{30000, 10000, 10000} // words
	for _, thin := range []uint32{0, 15, 40, 59, 100, 300} {
		for _, at := range []placement{{}, {begin: 1, factor: 1}} {
			rnd := rand.New(rand.NewPCG(uint64(thin), 2))
			l := newLedger(true, nil, 0)
			var words, large uint64
			weights := map[uint64]float64{}
			for i := range 60000 {
				n := sizes[i%len(sizes)]
				large += 8 * n
				if float64(8*n) > rnd.Float64()*float64(thin)*8*blockWords {
					weights[n] += float64(l.weigh(&hit{site: bpf.SiteLarge, words: words, large: large, object: 8 * n, thin: thin}, at))
				}
				words += n
			}
			if share := weights[30000] / (weights[30000] + weights[10000]); math.Abs(share-0.6) > 0.02 {
				t.Errorf("thin %d, %+v: the large ones have %.3f of the weights, not 0.6", thin, at, share)
			}
		}
	}
}

// Whatever a target's counters say, the books stay in order: what was given is the sum of
// the samples' weights, no sample is given more than its stratum and its probe have seen,
// and no account becomes infinite or not a number.
func TestLedgerHostileCounts(t *testing.T) {
	l := newLedger(true, nil, 0)
	var given uint64
	rng := rand.New(rand.NewPCG(1, 2))
	for range 10000 {
		h := hit{site: bpf.AllocSite(1 + rng.IntN(3)), capability: uint16(rng.IntN(4)), time: rng.Uint64(), words: rng.Uint64() >> rng.IntN(64),
			large: rng.Uint64() >> rng.IntN(64), object: rng.Uint64() >> rng.IntN(64), origin: bpf.AllocOrigin(rng.IntN(4)), chunk: rng.IntN(2) == 0, hits: rng.Uint64() >> rng.IntN(64)}
		own := uint64(0)
		if h.site == bpf.SiteLarge {
			own = h.large - min(h.large, l.largeSeen)
		}
		w := l.weigh(&h, placement{begin: rng.Uint64N(3), factor: float64(rng.IntN(3))})
		if most := max(l.unattributed()+float64(w), 0) + float64(own); float64(w) > most*(1+1e-9) {
			t.Fatalf("%+v: a sample is given %d of at most %.0f", h, w, most)
		}
		if given += w; given != l.attributed {
			t.Fatalf("%+v: %d was given, the samples weigh %d", h, l.attributed, given)
		}
		any := func() uint64 { return rng.Uint64() >> rng.IntN(64) }
		c := countsOf(&bpf.AllocAccount{Counted: any(), CountedLarge: any(), Heap: any(), Threads: any(),
			Other: any(), Chunks: any(), Objects: any()})
		l.update(any(), &c)
		for of, a := range l.balances {
			if x := a.bytes + a.attributed; math.IsNaN(x) || math.IsInf(x, 0) {
				t.Fatalf("%+v: the account of stratum %d is %+v", h, of, a)
			}
		}
	}
	samples, unnamed := l.settle(rng.Uint64(), &counts{all: 1e300, large: 1e300})
	for _, s := range samples {
		given += s.Weight
	}
	for _, bytes := range unnamed {
		given += bytes
	}
	if given != l.attributed {
		t.Errorf("%d was given in the end, the samples weigh %d", l.attributed, given)
	}
}

// inWindows has every probe in place for windows alone.
func (s *simulated) inWindows(length, cycle [bpf.AllocSites]uint64) {
	var in [bpf.AllocSites]func(bpf.AllocSite) bool
	for site := bpf.SiteNursery; site < bpf.AllocSites; site++ {
		s.windows(site, length[site], cycle[site])
		in[site] = s.in
	}
	s.in = func(site bpf.AllocSite) bool { return site != bpf.SiteEnd && in[site](site) }
}

// A program whose nursery is always found full by who makes arrays: what the lists beside
// them have is known by a few short windows at blocks, and not given to the arrays.
func TestLedgerStrata(t *testing.T) {
	var length, cycle [bpf.AllocSites]uint64
	length[bpf.SiteNursery], cycle[bpf.SiteNursery] = 1e6, 100e6
	length[bpf.SiteLarge], cycle[bpf.SiteLarge] = 1e6, 60e6
	length[bpf.SiteBlock], cycle[bpf.SiteBlock] = 250e3, 60e6
	for _, c := range []struct {
		milliseconds uint64
		tolerance    float64
	}{{1000, 0.15}, {6000, 0.06}} {
		s := newSimulated(c.milliseconds)
		s.pressure = nurseryWords
		s.inWindows(length, cycle)
		for s.time < c.milliseconds*1e6 {
			s.cells(2*(2500+s.rng.Uint64N(5000)), "list", 2)
			s.array(2*(2500+s.rng.Uint64N(5000)), "array")
			s.array(2*(7500+s.rng.Uint64N(15000)), "larger")
		}
		s.check(t, "strata", c.tolerance)
	}
}

// A program that allocates small objects by primitive operations, too, which find the
// nursery full more often than they fill it.
func TestLedgerPrimitives(t *testing.T) {
	var length, cycle [bpf.AllocSites]uint64
	length[bpf.SiteNursery], cycle[bpf.SiteNursery] = 5e6, 60e6
	length[bpf.SiteLarge], cycle[bpf.SiteLarge] = 1e6, 60e6
	length[bpf.SiteBlock], cycle[bpf.SiteBlock] = 250e3, 60e6
	s := newSimulated(7)
	s.inWindows(length, cycle)
	for s.time < 6e9 {
		s.cells(3000+s.rng.Uint64N(3000), "list", 2)
		s.small(1000+s.rng.Uint64N(1000), "small arrays", 2)
	}
	s.check(t, "primitives", 0.06)
}
