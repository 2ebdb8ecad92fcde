package profile

import (
	"math"
	"slices"

	"ccagent/eventlog"
	"ccagent/profile/columns"
	"ccagent/profile/curry"
	"ccagent/profile/interval"
)

// Search is what the samples of a selection say of a functional-logic program's search.
//
// A search strategy waits, in a frame of its own, for as long as it tries an alternative after which others follow: the frames of
// strategies on a sample's stack are the choice points that were open when it was taken, with those that the strategy's own
// recursion adds, of which there are equally many for each in most strategies. An alternative that is the last is called as the last thing that
// the strategy does, and may leave no frame.
//
// Whether a branch fails is decided after the samples in it are taken, and no sample says which branch it is in (docs/curry.md). All
// evaluation that search asks for has code of search on its stack, so that Share is the most that branches which fail can have had.
type Search struct {
	// Share is the part of the weight in samples with code of search on their stacks, with its 95 % interval. Stacks without their root
	// are among them: search may be what is missing.
	Share     float64
	Sure      interval.Interval
	Depth     float64 // mean number of strategies' frames in samples that have one, by weight
	DepthSure interval.Interval
	Deepest   uint64 // most strategies' frames of a sample
	// Rough says that for samples of folded recursion Depth has their site's mean in the whole log, as their own counts, which differ, are
	// not kept: DepthSure and Deepest are not known then, and 0.
	Rough bool
	// AtLeast is the part of the weight of those samples in which not all such frames are known: stacks that are not whole, or
	// have several folded stretches.
	AtLeast float64
}

// depth is how deep in search a site's samples are.
type depth struct {
	searching bool    // code of search is on the stack, or the stack's root is not known
	frames    float64 // strategies' frames; where recursion was folded, the mean number of the site's samples
	atLeast   bool
	rough     bool // the site's samples differ in frames
}

// strategies says of each binding whether it is code of a search strategy.
func (p *Profile) strategies() []bool {
	of := make([]bool, len(p.Symbols.Bindings))
	for i := range of {
		of[i] = p.Searches(columns.BindingID(i)) && curry.Strategy(p.Symbols.Bindings[i].Module)
	}
	return of
}

// depth walks a site's stack from its leaf. waits is scratch space, and has whether the frames that were met are strategies'.
func (t *costTable) depth(site columns.SiteID, strategy []bool, waits *[]bool) (d depth) {
	p := t.p
	*waits = (*waits)[:0]
	count := uint32(0)
	var cycles []float64 // by folded stretch: the part that strategies' frames have of its cycle
	for n := p.Sites[site].Node; n != 0; n = p.Nodes.Parent[n] {
		k := p.Nodes.Kind[n]
		switch {
		case k == eventlog.FrameContext: // what is rootwards did not call it
			n = 0
		case k == eventlog.FrameFolded:
			length := p.Places[p.Nodes.Place[n]].Addr
			if length == 0 || length > uint64(len(*waits)) {
				d.atLeast, cycles = true, append(cycles, 0)
				continue
			}
			own := 0
			for _, w := range (*waits)[uint64(len(*waits))-length:] {
				if w {
					own++
				}
			}
			cycles = append(cycles, float64(own)/float64(length))
			continue
		case !k.HasAddress():
			if k == eventlog.FrameSkipped { // the stack has its root, but search may be in what is missing
				d.searching, d.atLeast = true, true
			}
			continue
		}
		if n == 0 {
			break
		}
		b := t.code(n)
		wait := k == eventlog.FrameReturn && strategy[b]
		d.searching = d.searching || b != 0 && p.Searches(b)
		*waits = append(*waits, wait)
		if wait {
			count++
		}
	}
	d.frames = float64(count)
	if columns.Incomplete(p.Sites[site].Stop) {
		d.searching, d.atLeast = true, true
	}
	if left := p.FoldedFrames[uint32(site)]; len(cycles) > 0 && left.Samples > 0 {
		// Only all stretches together are known.
		least, most := slices.Min(cycles), slices.Max(cycles)
		d.frames += least * float64(left.Frames) / float64(left.Samples)
		d.atLeast = d.atLeast || least != most
		d.rough = most > 0 && (left.Frames/left.Samples != left.Most || left.Frames%left.Samples != 0)
	}
	return d
}

// Search returns what the selection's samples say of search; nil of programs that are not functional-logic ones.
func (s *Selection) Search() *Search {
	p := s.Profile
	if !p.IsCurry() || s.Total == 0 {
		return nil
	}
	t, strategy := &costTable{p: p}, p.strategies()
	var waits []bool
	var searching []columns.SiteID
	byDepth := map[float64][]columns.SiteID{} // of sites with a frame of a strategy
	out := &Search{}
	var deep, unsure float64
	for site, n := range s.Count {
		if n == 0 {
			continue
		}
		d := t.depth(columns.SiteID(site), strategy, &waits)
		if d.searching {
			searching = append(searching, columns.SiteID(site))
			out.Share += s.Fraction(s.Weight[site])
		}
		if d.frames > 0 {
			byDepth[d.frames] = append(byDepth[d.frames], columns.SiteID(site))
			w := float64(s.Weight[site])
			out.Depth += w * d.frames
			deep += w
			if d.atLeast {
				unsure += w
			}
			out.Deepest = max(out.Deepest, uint64(math.Round(d.frames)))
			out.Rough = out.Rough || d.rough
		}
	}
	out.Share = min(out.Share, 1)
	b := s.Batched()
	out.Sure = b.Of(searching)
	if deep == 0 {
		return out
	}
	out.Depth /= deep
	out.AtLeast = unsure / deep
	if out.Rough {
		out.Deepest = 0
		return out
	}
	var part interval.Part
	b.Reset(&part)
	sum, weight := make([]float64, len(part.Batch)), make([]float64, len(part.Batch))
	samples := uint64(0)
	greatest := 0.0
	for frames := range byDepth {
		greatest = max(greatest, frames)
	}
	for frames, sites := range byDepth {
		b.Sum(&part, sites)
		samples += part.Samples
		for i, w := range part.Batch {
			sum[i], weight[i] = sum[i]+w*frames/greatest, weight[i]+w
		}
	}
	in := interval.Ratio(sum, weight, max(1, float64(samples)/float64(max(1, len(weight)))))
	out.DepthSure = interval.Interval{Low: min(out.Depth, in.Low*greatest), High: max(out.Depth, in.High*greatest), Effective: in.Effective}
	return out
}
