package cfi

import "math/bits"

// bitSet is a set of numbers below its capacity.
type bitSet []uint64

func newBitSet(n int) bitSet { return make(bitSet, n/64+1) }

// add reports whether i was not in the set.
func (s bitSet) add(i uint64) bool {
	word, bit := &s[i/64], uint64(1)<<(i%64)
	if *word&bit != 0 {
		return false
	}
	*word |= bit
	return true
}

func (s bitSet) has(i uint64) bool { return s[i/64]&(1<<(i%64)) != 0 }

// each passes the members from lo up to hi, exclusive, in order.
func (s bitSet) each(lo, hi uint64, visit func(i uint64)) {
	for w := lo / 64; w*64 < hi && w < uint64(len(s)); w++ {
		for word := s[w]; word != 0; word &= word - 1 {
			if i := w*64 + uint64(bits.TrailingZeros64(word)); i >= lo && i < hi {
				visit(i)
			}
		}
	}
}

// orderedSet also finds neighbours, by a bit for each 64 of the level below.
type orderedSet struct{ levels []bitSet }

func newOrderedSet(n int) *orderedSet {
	s := &orderedSet{}
	for {
		level := newBitSet(n)
		s.levels = append(s.levels, level)
		if len(level) == 1 {
			return s
		}
		n = len(level) - 1
	}
}

func (s *orderedSet) add(i uint64) bool {
	if !s.levels[0].add(i) {
		return false
	}
	for _, level := range s.levels[1:] {
		i /= 64
		if !level.add(i) {
			break
		}
	}
	return true
}

// after finds the least member greater than i.
func (s *orderedSet) after(i uint64) (uint64, bool) {
	for l, level := range s.levels {
		// All ones above bit i%64; the shift of 64 gives none.
		if w := level[i/64] & (^uint64(0) << (i % 64) << 1); w != 0 {
			i = i&^63 + uint64(bits.TrailingZeros64(w))
			for ; l > 0; l-- {
				i = i*64 + uint64(bits.TrailingZeros64(s.levels[l-1][i]))
			}
			return i, true
		}
		i /= 64
	}
	return 0, false
}

// upTo finds the greatest member that is at most i.
func (s *orderedSet) upTo(i uint64) (uint64, bool) {
	if s.levels[0].has(i) {
		return i, true
	}
	for l, level := range s.levels {
		if w := level[i/64] & (1<<(i%64) - 1); w != 0 {
			i = i&^63 + uint64(63-bits.LeadingZeros64(w))
			for ; l > 0; l-- {
				i = i*64 + uint64(63-bits.LeadingZeros64(s.levels[l-1][i]))
			}
			return i, true
		}
		i /= 64
	}
	return 0, false
}
