package timeline_test

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"reflect"
	"regexp"
	"slices"
	"sync"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/profile/timeline"
)

// slowTimeline looks at each sample in turn.
func slowTimeline(s *profile.Selection, o timeline.Options) *timeline.Timeline {
	p := s.Profile
	from, to := o.Window.From, o.Window.To
	if o.Window == (profile.Range{}) {
		from, to = s.Filter.Range.From, s.Filter.Range.To
	}
	if to == 0 || to > p.Duration {
		to = p.Duration + 1
	}
	n := o.Buckets
	t := &timeline.Timeline{From: from, To: to, Step: max(1, (to-from+uint64(n)-1)/uint64(n))}
	t.Weight, t.Samples, t.Marked = make([]uint64, n), make([]uint64, n), make([]uint64, n)
	rows := make(map[uint32]*profile.CapWeight)
	within := s
	if o.Window != (profile.Range{}) {
		f := s.Filter
		f.Range = o.Window
		within = p.Select(f)
	}
	for site, smp := range within.EachSample() {
		if smp.Time < from || smp.Time >= to {
			continue
		}
		b := min(int((smp.Time-from)/t.Step), n-1)
		t.Weight[b] += smp.Weight
		t.Samples[b]++
		if o.Mark != nil && slices.Contains(s.LeafElements(o.Level, int(site)), *o.Mark) {
			t.Marked[b] += smp.Weight
		}
		r := rows[smp.Capability]
		if r == nil {
			r = &profile.CapWeight{Cap: smp.Capability}
			rows[r.Cap] = r
		}
		cat := min(p.SiteCategory(site), eventlog.CategoryKernel)
		if r.ByCategory[cat] == nil {
			r.ByCategory[cat] = make([]uint64, n)
		}
		r.ByCategory[cat][b] += smp.Weight
		r.Weight += smp.Weight
	}
	for _, cp := range slices.Sorted(maps.Keys(rows)) {
		t.Caps = append(t.Caps, *rows[cp])
	}
	return t
}

// The timeline by cells is that by samples, under every kind of filter, and so are
// the selection's sums; many goroutines may ask at once.
func TestTimelineByCells(t *testing.T) {
	var log bytes.Buffer
	if err := logtest.Generate(&log, 40_000, 500, 1); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Load(&log)
	if err != nil {
		t.Fatal(err)
	}
	end := p.Duration
	filters := []profile.Filter{
		{}, {Focus: []*regexp.Regexp{regexp.MustCompile(`M1\d`)}}, {Ignore: []*regexp.Regexp{regexp.MustCompile(`M7\.f35\d`)}},
		{Range: profile.Range{From: end / 4, To: end / 2}}, {Threads: []uint64{3, 4, 5}}, {Caps: []uint32{1, 2}}, {CPUs: []uint32{0}},
		{Hide: []*regexp.Regexp{regexp.MustCompile(`f7`)}, Caps: []uint32{3}, Range: profile.Range{From: end / 3, To: 0}},
	}
	var wg sync.WaitGroup
	for i, f := range filters {
		wg.Add(1)
		go func() {
			defer wg.Done()
			rnd := rand.New(rand.NewPCG(uint64(i), 1))
			s := p.Select(f)
			var weight, count uint64
			for _, smp := range s.EachSample() {
				weight += smp.Weight
				count++
			}
			if weight != s.Total || count != s.Samples {
				t.Errorf("filter %d: %d samples of %d, one by one %d of %d", i, s.Samples, s.Total, count, weight)
			}
			for range 12 {
				o := timeline.Options{Buckets: 1 + rnd.IntN(150), Level: profile.Levels[rnd.IntN(len(profile.Levels))]}
				id := s.Hot(o.Level).Rows[rnd.IntN(len(s.Hot(o.Level).Rows))].Element.ID
				o.Mark = &id
				if rnd.IntN(2) == 0 {
					a, b := rnd.Uint64N(end), rnd.Uint64N(end)
					o.Window = profile.Range{From: min(a, b), To: max(a, b) + 1}
				}
				got, want := timeline.Of(s, o), slowTimeline(s, o)
				if !reflect.DeepEqual(got.Weight, want.Weight) || !reflect.DeepEqual(got.Samples, want.Samples) || !reflect.DeepEqual(got.Marked, want.Marked) {
					t.Errorf("filter %d, %+v: the sums differ", i, o)
				}
				if len(got.Caps) != len(want.Caps) {
					t.Errorf("filter %d, %+v: %d capabilities, want %d", i, o, len(got.Caps), len(want.Caps))
					return
				}
				for k := range got.Caps {
					g, w := got.Caps[k], want.Caps[k]
					for c := range g.ByCategory {
						if sumOf(w.ByCategory[c]) > 0 && !reflect.DeepEqual(g.ByCategory[c], w.ByCategory[c]) {
							t.Errorf("filter %d, %+v: capability %d, category %d differ", i, o, g.Cap, c)
						}
					}
					if g.Cap != w.Cap || g.Weight != w.Weight {
						t.Errorf("filter %d, %+v: capability %d has %d, want %d of %d", i, o, g.Cap, g.Weight, w.Weight, w.Cap)
					}
				}
			}
		}()
	}
	wg.Wait()
}

func sumOf(v []uint64) (sum uint64) {
	for _, x := range v {
		sum += x
	}
	return sum
}
