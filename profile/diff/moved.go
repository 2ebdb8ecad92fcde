package diff

import (
	"maps"
	"math"
	"slices"
)

const (
	// movedUnder is the part of an element's weight that a caller must have called for the
	// element to be one of the caller's.
	movedUnder = 0.8
	// movedLeft is the part of an element's difference that may be left in its caller's for
	// the cost to have moved.
	movedLeft = 0.5
)

// moves finds the differences that another element of the same caller makes up for. FBDetect
// (SOSP 2024, §5) calls them cost shifts: code that was split, merged, renamed or inlined
// elsewhere is no regression. A caller has both elements if it called most of their weight,
// and it has not changed if the interval of its own difference, with all that it calls, leaves
// out half of theirs.
func (c *comparison) moves() {
	at := make(map[string]int, len(c.keys))
	for i, k := range c.keys {
		at[k] = i
	}
	of := make(map[int][]int) // rows with a difference by the row of their caller
	for i := range c.rows {
		if !c.rows[i].Verdict.Significant() {
			continue
		}
		sum := 0.0
		for _, w := range c.table[i].value {
			sum += w
		}
		for key, w := range c.under[i] {
			if j, ok := at[key]; ok && j != i && w >= movedUnder*sum {
				of[j] = append(of[j], i)
			}
		}
	}
	for _, caller := range slices.Sorted(maps.Keys(of)) {
		rows := of[caller]
		s := &c.above[caller]
		for j, r := range c.runs {
			s.noise[j] = r.noise(s.value[j])
			if c.o.Normalise == Share {
				s.noise[j] = r.shareNoise(s.value[j] * r.Total)
			}
		}
		est := estimate(s, c.na)
		delta := mean(s.value[c.na:]) - mean(s.value[:c.na])
		most := math.Abs(delta) + est.quantile()*est.se
		for _, i := range rows {
			for _, k := range rows {
				a, b := &c.rows[i], &c.rows[k]
				if a.Verdict != Moved && a.Delta*b.Delta < 0 && most < movedLeft*min(math.Abs(a.Delta), math.Abs(b.Delta)) {
					a.Verdict, a.Caller = Moved, c.rows[caller].Name
				}
			}
		}
	}
}
