package heap

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"ccagent/internal/ghc"
)

// megablock makes the descriptors of a megablock at an address.
func megablock(at uint64, groups map[int]Group) []byte {
	b := make([]byte, DescriptorBytes)
	for i := range uint64(ghc.MegablockBytes / ghc.BlockBytes) {
		binary.LittleEndian.PutUint64(b[i*ghc.BlockDescriptorBytes:], at+i*ghc.BlockBytes)
	}
	for i, g := range groups {
		d := b[i*ghc.BlockDescriptorBytes:]
		start := at + uint64(i)*ghc.BlockBytes
		if g.Start != 0 {
			start = g.Start
		}
		free := start + g.Free
		if g.Free == ^uint64(0) {
			free = g.Free
		}
		binary.LittleEndian.PutUint64(d[ghc.BlockStart:], start)
		binary.LittleEndian.PutUint64(d[ghc.BlockFree:], free)
		binary.LittleEndian.PutUint16(d[ghc.BlockFlags:], g.Flags)
		binary.LittleEndian.PutUint32(d[ghc.BlockCount:], g.Blocks)
	}
	return b
}

// Groups are stepped through by their number of blocks; what contradicts itself is not visited.
func TestGroups(t *testing.T) {
	const at, none = 0x4200000000, ^uint64(0)
	for _, c := range []struct {
		name   string
		groups map[int]Group
		limit  uint64
		want   string // block:used
		found  Found
	}{
		{"whole", map[int]Group{4: {Free: 8, Blocks: 1}, 5: {Free: 4096, Blocks: 3}, 8: {Free: none, Blocks: 248}}, 9, "4:8 5:4096", Found{248, 0, 1}},
		{"unused", map[int]Group{4: {Blocks: 252}}, 1, "4:0", Found{0, 0, 1}},
		{"beyond its end", map[int]Group{4: {Free: 4097, Blocks: 1}, 5: {Free: none, Blocks: 251}}, 1, "", Found{251, 1, 1}},
		{"elsewhere", map[int]Group{4: {Start: at, Free: 8, Blocks: 1}, 5: {Free: 8, Blocks: 251}}, 1, "5:8", Found{0, 1, 1}},
		{"no blocks", map[int]Group{5: {Free: 8, Blocks: 251}}, 1, "5:8", Found{0, 1, 1}},
		{"three megablocks", map[int]Group{4: {Free: 252*4096 + 8, Blocks: 252 + 257}}, 3, "4:1032200", Found{0, 0, 3}},
		{"more than there are", map[int]Group{4: {Free: 8, Blocks: 252 + 257}, 5: {Free: none, Blocks: 251}}, 2, "", Found{251, 1, 1}},
		{"long, but not first", map[int]Group{4: {Free: 8, Blocks: 1}, 5: {Free: 8, Blocks: 252}, 6: {Free: none, Blocks: 250}}, 9, "4:8", Found{250, 1, 1}},
	} {
		var got []string
		var unallocated uint64
		found := Groups(at, megablock(at, c.groups), c.limit, func(g Group) {
			got = append(got, fmt.Sprintf("%d:%d", (g.Start-at)/ghc.BlockBytes, g.Used()))
			if d := at + (g.Start-at)/ghc.BlockBytes*ghc.BlockDescriptorBytes; DescribedBy(d) != g.Start {
				t.Errorf("%s: the descriptor at %#x is that of %#x, not %#x", c.name, d, DescribedBy(d), g.Start)
			}
		}, func(g Group) { unallocated += uint64(g.Blocks) })
		if unallocated != found.Unallocated {
			t.Errorf("%s: %d blocks are visited as free, %d counted", c.name, unallocated, found.Unallocated)
		}
		if s := strings.Join(got, " "); s != c.want || found != c.found {
			t.Errorf("%s: %s, %+v; want %s, %+v", c.name, s, found, c.want, c.found)
		}
	}
	if f := Groups(at, nil, 1, func(Group) { t.Error("there is a group in nothing") }, nil); f.Megablocks != 1 {
		t.Errorf("nothing is %d megablocks", f.Megablocks)
	}
}

// FuzzGroups goes through any descriptors, and counts the groups as if they were of small objects,
// large ones, pinned and compact ones: no group reaches beyond its megablocks, and what is counted
// is not more than there is.
func FuzzGroups(f *testing.F) {
	const at = 0x4200000000
	f.Add(megablock(at, map[int]Group{4: {Free: 24, Blocks: 1}, 5: {Free: 4096, Blocks: 251, Flags: ghc.BlockLarge}}), seed(0x1010, 1, 2, 0x1020, 8, 1), uint64(3))
	f.Add(megablock(at, map[int]Group{4: {Free: ^uint64(0), Blocks: 1 << 31}}), seed(0x1020, 1<<63, 1, 0x1010), uint64(1)<<60)
	f.Fuzz(func(t *testing.T, descriptors, memoryOf []byte, limit uint64) {
		limit = limit%64 + 1
		const tables = 64
		m := memory{0x1000: memoryOf[:min(tables, len(memoryOf))]}
		var words []uint64
		for rest := memoryOf[min(tables, len(memoryOf)):]; len(rest) >= 8 && len(words) < HeadWords; rest = rest[8:] {
			words = append(words, binary.LittleEndian.Uint64(rest))
		}
		tally := NewTally(plain, func(p uint64) (Info, bool) { return ReadInfo(m, p) })
		var large, blocks uint64
		var unallocated uint64
		found := Groups(at, descriptors, limit, func(g Group) {
			blocks += uint64(g.Blocks)
			if g.IsSegment() {
				return
			}
			if g.Start < at || g.Free < g.Start || g.Free > at+limit*ghc.MegablockBytes {
				t.Fatalf("a group from %#x to %#x", g.Start, g.Free)
			}
			large += g.Used() / 8
			tally.AddLarge(g, words)
			tally.AddPinned(g, words)
			tally.AddCompact(g, words)
		}, func(g Group) { unallocated += uint64(g.Blocks) })
		if unallocated != found.Unallocated {
			t.Errorf("%d blocks are visited as free, %d counted", unallocated, found.Unallocated)
		}
		if found.Megablocks < 1 || found.Megablocks > limit || blocks+found.Unallocated > found.Megablocks*ghc.MegablockBytes/ghc.BlockBytes {
			t.Errorf("%d blocks and %+v in %d megablocks", blocks, found, limit)
		}
		tally.Add(words)
		var sum uint64
		for _, c := range tally.Counts() {
			if c.Info.Type != ghc.Compact {
				sum += c.Words + c.Slop
			}
		}
		if sum > large+uint64(len(words)) {
			t.Errorf("%d words are counted of %d", sum, large+uint64(len(words)))
		}
	})
}
