package profile

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile/logtest"
)

// Overlap by its definition, on random cause sets: symmetric, at most the
// smaller share, and together with what is alone the whole share.
func TestOverlapProperties(t *testing.T) {
	for seed := range uint64(20) {
		p, err := Load(bytes.NewReader(logtest.Random(rand.New(rand.NewPCG(seed, 11)))))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range []Filter{{}, Filter{}.WithEvent(1)} {
			s := p.Select(f)
			for _, level := range Levels {
				checkOverlaps(t, fmt.Sprintf("seed %d, %v", seed, level), s, level)
			}
			checkGroups(t, fmt.Sprintf("seed %d", seed), s)
		}
	}
}

func checkOverlaps(t *testing.T, name string, s *Selection, level Level) {
	t.Helper()
	h := s.Hot(level)
	for _, e := range h.Rows {
		listed := map[ElementID]uint64{}
		var sum, largest uint64
		for _, o := range s.Overlaps(level, e.Element.ID, level) {
			listed[o.Element.ID] = o.Weight
			sum += o.Weight
			largest = max(largest, o.Weight)
		}
		for _, f := range h.Rows {
			both := s.Overlap(level, e.Element.ID, f.Element.ID)
			if e.Element.ID == f.Element.ID {
				if both != e.ShareWeight {
					t.Errorf("%s: %s overlaps itself by %d of %d", name, e.Element.Name, both, e.ShareWeight)
				}
				continue
			}
			if back := s.Overlap(level, f.Element.ID, e.Element.ID); back != both || both > min(e.ShareWeight, f.ShareWeight) || both != listed[f.Element.ID] {
				t.Errorf("%s: %s (%d) and %s (%d) overlap by %d, the other way by %d, listed as %d", name,
					e.Element.Name, e.ShareWeight, f.Element.Name, f.ShareWeight, both, back, listed[f.Element.ID])
			}
		}
		// What is not alone is shared with one other at least, and with none more
		// than once.
		if shared := e.ShareWeight - e.OnlyWeight; shared > sum || largest > shared {
			t.Errorf("%s: %s shares %d with others, which overlap it by %d together and %d at most", name, e.Element.Name, shared, sum, largest)
		}
	}
}

// checkGroups: a file counts distinct samples, those of any of its spans, no
// fewer than its largest span has, no more than all have together, and those of
// code without spans of the modules that are in this file alone.
func checkGroups(t *testing.T, name string, s *Selection) {
	t.Helper()
	for _, g := range s.Groups(LevelFile, LevelSpan) {
		if g.Element.Kind == KindCategory || g.Element.Kind == KindNoFile {
			continue
		}
		var sum, largest, bare uint64
		union := uint64(0)
		for site, n := range s.Count {
			if n == 0 {
				continue
			}
			ids, _ := s.leafElements(s.index(LevelSpan), site)
			for _, id := range ids {
				if e := &s.index(LevelSpan).elements[id]; e.Kind == KindSource && e.File == g.Element.File {
					union += s.Weight[site]
					break
				}
				if e := &s.index(LevelSpan).elements[id]; e.Kind == KindNoFile && slices.Contains(s.LeafElements(LevelFile, site), g.Element.ID) {
					bare += s.Weight[site]
				}
			}
		}
		for _, m := range g.Members {
			sum += m.ShareWeight
			largest = max(largest, m.ShareWeight)
		}
		if g.ShareWeight != union+bare || union > sum || largest > union {
			t.Errorf("%s: %s has %d, %d without spans; its spans have %d in union, %d together, %d at most", name, g.Element.Name, g.ShareWeight, bare, union, sum, largest)
		}
	}
}

// A frame that recurs in a stack, however often and wherever, changes no figure
// of any element.
func TestRecursionNeverInflates(t *testing.T) {
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 13))
		once, often := logtest.New(), logtest.New()
		logs := []*logtest.Log{once, often}
		var code [2][]logtest.Frame
		for i, l := range logs {
			file := l.File("A.hs", "")
			var bindings, spans []uint32
			for b := range 6 {
				bindings = append(bindings, l.Binding("main", fmt.Sprintf("M%d", b%2), fmt.Sprintf("f%d", b), 0))
				spans = append(spans, l.Span(file, uint32(b+1), 1, uint32(b+3), 9, bindings[b]))
			}
			causes := rand.New(rand.NewPCG(seed, 17)) // the same in both
			for range 10 {
				var of []uint32
				for range causes.IntN(4) {
					of = append(of, spans[causes.IntN(len(spans))])
				}
				code[i] = append(code[i], l.Block(bindings[causes.IntN(len(bindings))], of...))
			}
		}
		for i := range 60 {
			var plain, recurring []int
			for range 1 + rng.IntN(8) {
				f := rng.IntN(len(code[0]))
				plain = append(plain, f)
				recurring = append(recurring, f)
				for range rng.IntN(4) { // again something that is there already
					recurring = append(recurring, plain[rng.IntN(len(plain))])
				}
			}
			recurring = append(recurring, plain[len(plain)-1]) // the same leaf
			for k, stack := range [][]int{plain, recurring} {
				var frames []logtest.Frame
				for _, f := range stack {
					frames = append(frames, code[k][f])
				}
				logs[k].SampleOf(uint64(i), eventlog.Sample{Weight: uint64(1 + i), Node: logs[k].Stack(frames...)})
			}
		}
		var selections [2]*Selection
		for i, l := range logs {
			p, err := Load(bytes.NewReader(l.End()))
			if err != nil {
				t.Fatal(err)
			}
			selections[i] = p.Select(Filter{})
		}
		for level := range levels {
			a, b := selections[0].Hot(level), selections[1].Hot(level)
			if len(a.Rows) != len(b.Rows) {
				t.Fatalf("seed %d, %v: %d rows, with recursion %d", seed, level, len(a.Rows), len(b.Rows))
			}
			for i := range a.Rows {
				x, y := a.Rows[i], b.Rows[i]
				if x.Element.Name != y.Element.Name || x.ShareWeight != y.ShareWeight || x.OnlyWeight != y.OnlyWeight || x.InclusiveWeight != y.InclusiveWeight || x.Samples != y.Samples {
					t.Errorf("seed %d, %v: %+v became by recursion %+v", seed, level, x, y)
				}
			}
		}
	}
}
