package alloc

import "ccagent/bpf"

// counts holds what the run-time system has counted of a process, and what surveys of its
// nurseries have found, since the probes were first placed, in bytes.
type counts struct {
	// From collections to full nurseries that were seen: all bytes, and those of large objects.
	all, large float64
	// Since the last collection, when the counts were read: all bytes, and those of large objects.
	// 0 if that is not known.
	cycleAll, cycleLarge float64
	// What surveys have found.
	heap, threads, other, chunks, objects float64
}

func countsOf(a *bpf.AllocAccount) counts {
	return counts{
		all: float64(a.Counted), large: float64(a.CountedLarge),
		heap: float64(a.Heap), threads: float64(a.Threads), other: float64(a.Other), chunks: float64(a.Chunks), objects: float64(a.Objects),
	}
}

// split divides what a process allocates among the strata. Cycles that were counted are divided
// as they were counted, all other bytes like those that were counted or surveyed at the time.
//
// A program whose stack grows for a while has phases of nothing but stack chunks, and the probes
// may be out in one, or in place in no other. So what the unfinished cycle has at each update
// shows large objects in what was allocated since the update before. It shows them badly: a cycle
// may have most of them at its begin or its end, and while a collection runs there seem to be
// none. By how much large objects follow such shares is known from the cycles that were counted
// (the linear regression estimator; Cochran, Sampling Techniques, chapter 7): not at all in a
// program that goes on as it began.
type split struct {
	last counts
	// large is the share of large objects in all bytes, heap, threads and other those of
	// small objects in what is not large, and chunks that of stack chunks in large objects.
	largeShare, chunkShare, threadShare, otherShare ratio

	looks          bool    // whether there was such a share
	looked         float64 // share of large objects in the unfinished cycle, at the last update
	follows        line    // share of large objects in what was counted, by such shares
	uncounted      float64 // bytes of cycles that were not counted, at the last update
	uncountedLarge float64 // those of large objects among them, estimated
	unfinished     float64 // likewise, by the shares in unfinished cycles alone
	bytes          [strata]float64
}

// Bytes over which shares are averaged. Cycles are counted all, or in windows; surveys are taken
// at random moments.
const (
	largeMemory  = 256 << 20
	surveyMemory = 16 << 20
)

func (s *split) countsLarge() bool { return s.largeShare.all > 0 }

// small returns a stratum's share in small objects.
func (s *split) small(of stratum) float64 {
	switch of {
	case threadStratum:
		return s.threadShare.value()
	case primopStratum:
		return s.otherShare.value()
	}
	return 1 - s.threadShare.value() - s.otherShare.value()
}

// shares returns the strata's shares in what is allocated now.
func (s *split) shares() (shares [strata]float64) {
	large, chunks := s.largeShare.value(), s.chunkShare.value()
	shares[largeStratum], shares[chunkStratum] = large*(1-chunks), large*chunks
	for _, of := range [...]stratum{heapStratum, primopStratum, threadStratum} {
		shares[of] = (1 - large) * s.small(of)
	}
	return shares
}

// update returns the bytes of each stratum, given the sum of all.
func (s *split) update(total float64, c *counts) [strata]float64 {
	counted, all := c.large-s.last.large, c.all-s.last.all
	s.largeShare.add(counted, all, largeMemory)
	surveyed := c.heap - s.last.heap + c.threads - s.last.threads + c.other - s.last.other
	s.threadShare.add(c.threads-s.last.threads, surveyed, surveyMemory)
	s.otherShare.add(c.other-s.last.other, surveyed, surveyMemory)
	chunks := c.chunks - s.last.chunks
	s.chunkShare.add(chunks, chunks+c.objects-s.last.objects, surveyMemory)
	s.last = *c

	// What is not counted is divided by the share at its time. As long as shares rest on little,
	// they divide all from the beginning anew.
	uncounted := total - c.all
	switch {
	case c.cycleAll > 0 || s.looks:
		mean := s.looked
		if c.cycleAll > 0 {
			share := c.cycleLarge / c.cycleAll
			s.looked, mean, s.looks = share, (s.looked+share)/2, true
		}
		s.follows.add(mean, counted, all)
		s.unfinished += mean * (uncounted - s.uncounted)
		s.uncountedLarge = s.follows.sum(s.unfinished, uncounted)
	default:
		if s.largeShare.young() {
			s.uncountedLarge, s.uncounted = 0, 0
		}
		s.uncountedLarge += s.largeShare.value() * (uncounted - s.uncounted)
	}
	s.uncounted = uncounted
	large := min(max(c.large+min(max(s.uncountedLarge, 0), max(uncounted, 0)), 0), total)
	if s.chunkShare.young() {
		s.bytes[largeStratum], s.bytes[chunkStratum] = 0, 0
	}
	more := large - s.bytes[largeStratum] - s.bytes[chunkStratum]
	s.bytes[chunkStratum] += s.chunkShare.value() * more
	s.bytes[largeStratum] += (1 - s.chunkShare.value()) * more
	smalls := [...]stratum{heapStratum, primopStratum, threadStratum}
	if s.threadShare.young() {
		for _, of := range smalls {
			s.bytes[of] = 0
		}
	}
	more = total - large
	for _, of := range smalls {
		more -= s.bytes[of]
	}
	for _, of := range smalls {
		s.bytes[of] += s.small(of) * more
	}
	return s.bytes
}

// line is the regression of a share y on another share x, each observation weighed by the bytes
// that y is of.
type line struct {
	n            int
	all          float64 // bytes
	x, y, xx, xy float64 // sums, weighed
}

// slopeDoubt is the variance of x below which one observation shows no slope. The slope is taken for 1
// where observations show none, as x and y are shares of the same thing (ridge regression towards 1).
const slopeDoubt = 0.002

// add adds an observation: bytes of all bytes, while the other share was x.
func (l *line) add(x, bytes, all float64) {
	if all <= 0 {
		return
	}
	l.n, l.all = l.n+1, l.all+all
	l.x, l.xx = l.x+all*x, l.xx+all*x*x
	l.y, l.xy = l.y+bytes, l.xy+x*bytes
}

// sum returns the estimated bytes of y in all bytes, of which x has xBytes. Without observations
// y is x.
func (l *line) sum(xBytes, all float64) float64 {
	if l.all <= 0 {
		return xBytes
	}
	x, y := l.x/l.all, l.y/l.all
	doubt := slopeDoubt / float64(l.n)
	slope := (l.xy/l.all - x*y + doubt) / (l.xx/l.all - x*x + doubt)
	return y*all + min(max(slope, 0), 1)*(xBytes-x*all)
}

// ratio is a ratio of bytes, over roughly the latest.
type ratio struct {
	bytes, all float64
	grown      bool // more than memory was added so far
}

// add adds what was counted since the last call, and halves the weight of all before when there
// is more than memory of it.
func (p *ratio) add(bytes, all, memory float64) {
	p.bytes, p.all = p.bytes+bytes, p.all+all
	p.grown = p.grown || p.all > memory
	for p.all > memory {
		p.bytes, p.all = p.bytes/2, p.all/2
	}
}

func (p *ratio) value() float64 {
	if p.all <= 0 {
		return 0
	}
	return min(max(p.bytes/p.all, 0), 1)
}

func (p *ratio) young() bool { return !p.grown }
