package cfi

import (
	"debug/elf"
	"sort"
)

// extendHaskell gives GHC's FDEs their true ranges. GHC ≤ 9.0 ends each range
// after the procedure's first block while the rows go on; the procedure ends
// where the next one begins.
func (c *compiler) extendHaskell() {
	short := false
	for i := range c.spans {
		s := &c.spans[i]
		if s.haskell && s.end > s.first && c.rows[s.end-1].addr >= s.hi {
			c.stats.Repaired++
			short = true
		}
	}
	if !short {
		return
	}
	bounds := make([]uint64, 0, 2*len(c.spans))
	for i := range c.spans {
		bounds = append(bounds, c.spans[i].lo)
	}
	// Without symbols only the last procedure of a module is at stake.
	_ = c.f.EachAddress(c.limits.Bytes, func(addr uint64) {
		if c.f.Executable(addr) {
			bounds = append(bounds, addr)
		}
	})
	for i := range c.f.Sections {
		if s := &c.f.Sections[i]; s.Flags&elf.SHF_EXECINSTR != 0 {
			bounds = append(bounds, s.Addr+s.Size)
		}
	}
	sort.Slice(bounds, func(i, j int) bool { return bounds[i] < bounds[j] })
	for i := range c.spans {
		s := &c.spans[i]
		if !s.haskell || s.end == s.first {
			continue
		}
		last := max(s.hi-1, c.rows[s.end-1].addr)
		j := sort.Search(len(bounds), func(j int) bool { return bounds[j] > last })
		if j < len(bounds) {
			s.hi = bounds[j]
		} else {
			s.hi = last + 1
		}
	}
}
