package symtab

import (
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
