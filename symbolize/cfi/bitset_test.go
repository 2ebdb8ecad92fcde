package cfi

import (
	"math/rand"
	"slices"
	"testing"
)

// An ordered set gives the nearest member at or below any number.
func TestOrderedSet(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for _, n := range []int{1, 63, 64, 65, 4096, 4097, 300000} {
		s := newOrderedSet(n)
		var want []uint64
		for range 50 {
			if i := uint64(r.Intn(n)); s.add(i) {
				want = append(want, i)
			}
		}
		slices.Sort(want)
		for range 500 {
			i := uint64(r.Intn(n))
			at, found := slices.BinarySearch(want, i)
			if found {
				at++
			}
			if got, ok := s.upTo(i); ok != (at > 0) || ok && got != want[at-1] {
				t.Fatalf("up to %d of %v: %d, %v", i, want, got, ok)
			}
			if got, ok := s.after(i); ok != (at < len(want)) || ok && got != want[at] {
				t.Fatalf("after %d of %v: %d, %v", i, want, got, ok)
			}
		}
	}
}
