package symtab

import (
	"context"
	"encoding/binary"
	"slices"
	"testing"

	"ccagent/symbolize/cfi"
	"ccagent/symbolize/gccode"

	"github.com/google/go-cmp/cmp"
)

// What was found comes back, and is not found to be new again.
func TestFound(t *testing.T) {
	first := &Table{found: found{
		classes:   map[string]bool{"Eq": true, "Monad": true},
		collector: &gccode.Collector{Code: cfi.Ranges{{Lo: 16, Hi: 32}, {Lo: 32, Hi: 48}}, Locks: cfi.Ranges{{Lo: 32, Hi: 48}}},
		makers:    map[uint64][]uint64{0x401000: {0x402003, 0x402009}, 0x400ff0: {0}},
		fresh:     true,
	}}
	second := &Table{}
	second.Recall(first.Found())
	if diff := cmp.Diff(first.found.classes, second.found.classes); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(first.found.collector, second.found.collector); diff != "" {
		t.Error(diff)
	}
	// The file is not read for what was kept.
	if makers, err := second.ThunkMakers(context.Background(), nil); err != nil || !cmp.Equal(first.found.makers, makers) {
		t.Errorf("%s: %v", cmp.Diff(first.found.makers, makers), err)
	}
	if parts := second.Found(); parts != nil {
		t.Errorf("%d parts are new", len(parts))
	}
	none := &Table{found: found{classes: map[string]bool{}, collector: &gccode.Collector{}, fresh: true}}
	second = &Table{}
	second.Recall(none.Found())
	if second.found.classes == nil || second.found.collector == nil {
		t.Error("that there are none is not known")
	}
	second = &Table{}
	second.Recall(nil)
	if second.found.classes != nil || second.found.collector != nil {
		t.Error("something is known of nothing")
	}
}

// Where thunks are made is kept also where there is no such place, and whatever else is kept for it is not believed.
func TestMakersKept(t *testing.T) {
	if got := decodeMakers(encodeMakers(map[uint64][]uint64{})); got == nil || len(got) != 0 {
		t.Errorf("none are %v", got)
	}
	long := binary.AppendUvarint(nil, 16)
	for _, b := range [][]byte{{16}, {16, 2, 1}, {16, 2, 1, 0}, {16, 0}, {0x80}, binary.AppendUvarint(long, 1<<40), binary.AppendUvarint(binary.AppendUvarint([]byte{16, 2}, 1<<63), 1<<63)} {
		if got := decodeMakers(b); got != nil {
			t.Errorf("%x is %v", b, got)
		}
	}
}

// FuzzMakers checks that what is decoded is what would be encoded.
func FuzzMakers(f *testing.F) {
	f.Add(encodeMakers(map[uint64][]uint64{0x401000: {0x402003, 0x402009}, 0x400ff0: {0}}))
	f.Add([]byte{16, 2, 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		makers := decodeMakers(b)
		if diff := cmp.Diff(makers, decodeMakers(encodeMakers(makers))); makers != nil && diff != "" {
			t.Error(diff)
		}
		for _, from := range makers {
			if len(from) > MaxMakers || !slices.IsSorted(from) {
				t.Fatalf("places %x", from)
			}
		}
	})
}

// Whatever the parts are, ranges are in order.
func FuzzRecall(f *testing.F) {
	f.Add([]byte("Eq\nOrd\n"), encodeRanges(cfi.Ranges{{Lo: 1, Hi: 2}, {Lo: 2, Hi: 9}}), []byte{})
	f.Add([]byte("\n\n\xff"), encodeRanges(cfi.Ranges{{Lo: 9, Hi: 2}}), []byte{1})
	f.Fuzz(func(t *testing.T, classes, code, locks []byte) {
		table := &Table{}
		table.Recall(map[string][]byte{partClasses: classes, partCollector: code, partLocks: locks})
		table.IsClass("Eq")
		c := table.found.collector
		if c == nil {
			return
		}
		for _, ranges := range []cfi.Ranges{c.Code, c.Locks} {
			last := uint64(0)
			for _, r := range ranges {
				if r.Lo < last || r.Hi <= r.Lo {
					t.Fatalf("ranges %v", ranges)
				}
				last = r.Hi
			}
		}
	})
}
