package cfi

import (
	"cmp"
	"math"
	"slices"
	"sort"

	"ccagent/symbolize/elffile"
)

// Range is code from Lo up to Hi, exclusive.
type Range struct{ Lo, Hi uint64 }

// Ranges are in order and do not overlap.
type Ranges []Range

// Contains reports whether an address is in one of the ranges.
func (r Ranges) Contains(addr uint64) bool {
	return r.Index(addr) >= 0
}

// Index gives the number of the range that an address is in, -1 for none.
func (r Ranges) Index(addr uint64) int {
	i := sort.Search(len(r), func(i int) bool { return r[i].Hi > addr })
	if i < len(r) && r[i].Lo <= addr {
		return i
	}
	return -1
}

// Around gives the range that an address is in, or the stretch between ranges.
func (r Ranges) Around(addr uint64) Range {
	next := sort.Search(len(r), func(i int) bool { return r[i].Hi > addr })
	out := Range{Hi: math.MaxUint64}
	if next > 0 {
		out.Lo = r[next-1].Hi
	}
	switch {
	case next == len(r):
	case r[next].Lo <= addr:
		return r[next]
	default:
		out.Hi = r[next].Lo
	}
	return out
}

// Functions returns the code that .eh_frame describes, a range for each function. Compilers of
// C write it for every function, and stripping leaves it; GHC writes none of it for Haskell code.
// What is malformed is left out, and all of a file whose section is over the
// budget, in bytes.
func Functions(f *elffile.File, budget uint64) Ranges {
	a := archOf(f.Machine)
	if a == nil {
		return nil
	}
	c := &compiler{f: f, arch: a, limits: Limits{Bytes: budget}, index: map[Rule]uint32{}}
	c.machine.arch = a
	c.machine.row = func(*state, uint64) {}
	s, ok, err := c.ehFrame()
	if err != nil || !ok {
		return nil
	}
	var out Ranges
	commons := map[int]*common{}
	for off := 0; off < len(s.data); {
		h, fault := s.next(off)
		if h == nil {
			break
		}
		off = h.end
		if fault != nil || h.cie {
			continue
		}
		g, ok := commons[h.cieOff]
		if !ok {
			g = c.readCommon(&s, h.cieOff)
			commons[h.cieOff] = g
		}
		if g == nil {
			continue
		}
		if d, fault := s.description(h, g); fault == nil && d.lo < d.hi && f.Executable(d.lo) {
			out = append(out, Range{d.lo, d.hi})
		}
	}
	slices.SortFunc(out, func(a, b Range) int { return cmp.Compare(a.Lo, b.Lo) })
	return out.joined()
}

// joined makes one of ranges that overlap.
func (r Ranges) joined() Ranges {
	var out Ranges
	for _, x := range r {
		if n := len(out); n > 0 && x.Lo < out[n-1].Hi {
			out[n-1].Hi = max(out[n-1].Hi, x.Hi)
			continue
		}
		out = append(out, x)
	}
	return out
}
