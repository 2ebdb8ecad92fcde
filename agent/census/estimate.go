package census

import (
	"math"

	"ccagent/eventlog"
	"ccagent/heap"
)

// moments are sums over megablocks: of a figure, of its square, and of its product with the words that the
// megablock has.
type moments struct{ sum, squares, cross float64 }

func (m *moments) add(x, words float64) {
	m.sum += x
	m.squares += x * x
	m.cross += x * words
}

// estimate is the total over all megablocks by a simple random sample without replacement of n of them
// (Horvitz and Thompson's estimator), with its variance (Cochran, "Sampling Techniques", 3rd ed. 1977, §2.6).
func (m *moments) estimate(n, all int) (total, variance float64) {
	if n == 0 {
		return 0, 0
	}
	return m.sum * float64(all) / float64(n), varianceOf(m.squares-m.sum*m.sum/float64(n), n, all)
}

// ratio is the same where it is known how many words all megablocks have, in place of the estimate of these: a ratio
// estimate (§6.3). words are the moments of the words themselves.
func (m *moments) ratio(words *moments, known float64, n, all int) (total, variance float64) {
	r := m.sum / words.sum
	return r * known, varianceOf(m.squares-2*r*m.cross+r*r*words.squares, n, all)
}

// varianceOf is the variance of a total by the sum of squared deviations in the sample.
func varianceOf(deviations float64, n, all int) float64 {
	if n < 2 || n >= all {
		return 0
	}
	k, size := float64(n), float64(all)
	return size * size * (1 - k/size) * max(deviations, 0) / (k - 1) / k
}

// student is the 97.5 % quantile of Student's t with so many degrees of freedom, by the first terms of its expansion
// about the normal distribution's (Abramowitz and Stegun, 26.7.5).
func student(freedom int) float64 {
	const z = 1.959964
	v := float64(max(freedom, 1))
	return z + (z*z*z+z)/(4*v) + (5*math.Pow(z, 5)+16*z*z*z+3*z)/(96*v*v) + (3*math.Pow(z, 7)+19*math.Pow(z, 5)+17*z*z*z-15*z)/(384*v*v*v)
}

// stratum is what was counted of one kind of groups in the megablocks that were drawn.
type stratum struct {
	units int // counted
	tally *heap.Tally
	bands map[string]*moments // bytes
	kinds map[uint64]*moments // likewise by info pointer; 0 for pinned blocks
	words moments             // of small objects, by descriptors
	known float64             // words of small objects in all megablocks; 0 if they are not known
}

// ratio reports whether it is estimated by the words that all megablocks have.
func (s *stratum) ratio() bool { return s.known > 0 && s.words.sum > 0 }

func newStratum(r *Reader, o Options) *stratum {
	return &stratum{tally: newTally(r, o), bands: map[string]*moments{}, kinds: map[uint64]*moments{}}
}

// add adds what one megablock has; of more than one, the bands say nothing of their variance.
func (s *stratum) add(t *heap.Tally, words uint64, label *labels) {
	s.units++
	s.words.add(float64(words), float64(words))
	if t == nil {
		return
	}
	in := map[string]uint64{}
	label.each(t, func(band string, pointer, bytes, _ uint64) {
		in[band] += bytes
		addTo(s.kinds, pointer, bytes, words)
	})
	for band, bytes := range in {
		addTo(s.bands, band, bytes, words)
	}
	s.tally.AddTimes(t, 1)
}

func addTo[K comparable](all map[K]*moments, of K, bytes, words uint64) {
	m := all[of]
	if m == nil {
		m = &moments{}
		all[of] = m
	}
	m.add(float64(bytes), float64(words))
}

// addVariances adds the variances of what a sample says of the whole heap.
func addVariances[K comparable](s *stratum, all int, of map[K]*moments, to map[K]float64) {
	for k, m := range of {
		_, v := m.estimate(s.units, all)
		if s.ratio() {
			_, v = m.ratio(&s.words, s.known, s.units, all)
		}
		to[k] += v
	}
}

// margins makes 95 % confidence intervals of variances, by the bytes that were found.
func margins[K comparable](variances map[K]float64, bytes map[K]uint64, units int) map[K]uint64 {
	all := make(map[K]uint64, len(variances))
	for k, v := range variances {
		all[k] = max(uint64(math.Ceil(student(units-1)*math.Sqrt(v))), bytes[k]/besidePart)
	}
	return all
}

// Draw says of a census which part of the heap it has counted, and how far its figures may be off.
type Draw struct {
	// Megablocks of the heap hold several groups of blocks, of which Drawn were counted. The descriptors of Stood were read
	// while the program stood.
	Megablocks, Drawn, Stood int
	// Margins are, by band, the distance in bytes to either end of a 95 % confidence interval. A band that is
	// not there has none.
	Margins map[string]uint64
	// Kinds are the same by info pointer; 0 for pinned blocks.
	Kinds map[uint64]uint64
}

// Event is what a log says of it, where bands are in the order of their samples.
func (d *Draw) Event(pid uint32, bands []Band) *eventlog.HeapDraw {
	e := &eventlog.HeapDraw{PID: pid, Megablocks: uint32(d.Megablocks), Drawn: uint32(d.Drawn), Stood: uint32(d.Stood)}
	for i := range bands {
		e.Margins = append(e.Margins, bands[i].Margin)
	}
	return e
}

// besidePart is the part of a band, one in so many, by which it may be off because the program wrote to it while it was
// copied, and because what is in one or two megablocks alone may not have been drawn.
const besidePart = 1000

// estimate sums strata up: what was counted whole, and samples of megablocks, that of the oldest generation last.
func estimate(all int, whole *heap.Tally, r *Reader, o Options, label *labels, samples ...*stratum) (*heap.Tally, *Draw) {
	draw := &Draw{Megablocks: all}
	least := all
	total := newTally(r, o)
	total.AddTimes(whole, 1)
	bands, kinds := map[string]float64{}, map[uint64]float64{} // variances
	for _, s := range samples {
		if s.units == 0 {
			continue
		}
		least = min(least, s.units)
		draw.Drawn = s.units
		times := float64(all) / float64(s.units)
		if s.ratio() && s.units < all { // a generation does not count the blocks that threads of the collector have begun
			times = s.known / s.words.sum
		}
		total.AddTimes(s.tally, times)
		addVariances(s, all, s.bands, bands)
		addVariances(s, all, s.kinds, kinds)
	}
	bytes, of := map[string]uint64{}, map[uint64]uint64{}
	label.each(total, func(band string, pointer, n, _ uint64) {
		bytes[band] += n
		of[pointer] += n
	})
	draw.Margins, draw.Kinds = margins(bands, bytes, least), margins(kinds, of, least)
	return total, draw
}
