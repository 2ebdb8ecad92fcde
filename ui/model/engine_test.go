package model

import (
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/ui/internal/fixture"
)

func need(p *profile.Profile, ts ...Transform) Query {
	return Query{Samples: Samples{Transforms: TransformsOf(ts...)}, Selected: NoKey, Window: Window{To: p.Duration, Cols: 80}}
}

func TestHotTree(t *testing.T) {
	p := fixture.Profile(t, fixture.Options{Samples: 4000})
	d := NewEngine(p).Compute(need(p))
	leaves := 0.0
	seen := make(map[Key]bool)
	for i, r := range d.Hot.Rows {
		if seen[r.Key] {
			t.Errorf("%s is listed twice", r.Full)
		}
		seen[r.Key] = true
		if r.Only > r.Share || r.Share > 1 {
			t.Errorf("%s: only %v of share %v", r.Full, r.Only, r.Share)
		}
		if r.Parent >= i {
			t.Errorf("%s comes before its parent", r.Full)
		}
		if r.Parent >= 0 || r.Category {
			leaves += r.Share
		}
		if r.Kids > 0 {
			sum, most := 0.0, 0.0
			for _, k := range d.Hot.Rows {
				if k.Parent == i {
					sum += k.Share
					most = max(most, k.Share)
				}
			}
			// A parent counts distinct samples: between its largest child and their sum.
			if r.Share < most-1e-9 || r.Share > sum+1e-9 {
				t.Errorf("%s has %v, its largest child %v, all %v", r.Full, r.Share, most, sum)
			}
		}
	}
	if diff := leaves - d.Hot.LeafSum; diff > 1e-9 || diff < -1e-9 {
		t.Errorf("the leaves listed sum to %v, all there are to %v", leaves, d.Hot.LeafSum)
	}
}

// Focus and drop of the same thing part the samples; hiding keeps them all.
func TestTransformsPart(t *testing.T) {
	p := fixture.Profile(t, fixture.Options{Samples: 4000})
	e := NewEngine(p)
	kept := func(ts ...Transform) uint64 { return e.Compute(need(p, ts...)).Summary.Kept }
	all := kept()
	for _, name := range []string{"Physics.force", "Physics.step", "(GC)", "Main.main", "nothing"} {
		f, d, h := kept(Transform{Op: OpFocus, Name: name}), kept(Transform{Op: OpDrop, Name: name}), kept(Transform{Op: OpHide, Name: name})
		if f+d != all || h != all {
			t.Errorf("%s: focus keeps %d, drop %d, hide %d of %d", name, f, d, h, all)
		}
	}
	half := p.Duration / 2
	a := kept(Transform{Op: OpRange, From: 0, To: half})
	b := kept(Transform{Op: OpRange, From: half, To: p.Duration + 1})
	if a == 0 || b == 0 || a+b != all {
		t.Errorf("two halves keep %d and %d of %d", a, b, all)
	}
}

// The overlap of an element with another is the same from either side, and the
// timeline adds up to the selection's share.
func TestOverlapIsMutual(t *testing.T) {
	p := fixture.Profile(t, fixture.Options{Samples: 4000})
	e := NewEngine(p)
	rows := e.Compute(need(p)).Hot.Rows
	with := func(k Key) *Data {
		n := need(p)
		n.Selected = k
		return e.Compute(n)
	}
	for _, a := range rows {
		da := with(a.Key)
		if got := da.Lanes.SelectedShare; got < a.Share-1e-3 || got > a.Share+1e-3 {
			t.Errorf("%s: share %v, on the timeline %v", a.Full, a.Share, got)
		}
		for _, b := range rows {
			if a.Key == b.Key {
				continue
			}
			x, y := da.Overlap[b.Key], with(b.Key).Overlap[a.Key]
			if diff := x - y; diff > 1e-9 || diff < -1e-9 {
				t.Errorf("%s with %s: %v, the other way %v", a.Full, b.Full, x, y)
			}
			if x > min(a.Share, b.Share)+1e-9 {
				t.Errorf("%s with %s: %v, more than either has", a.Full, b.Full, x)
			}
		}
	}
}

func TestComputeSharesWhatDidNotChange(t *testing.T) {
	p := fixture.Profile(t, fixture.Options{Samples: 400})
	e := NewEngine(p)
	n := need(p)
	a := e.Compute(n)
	n.Selected = a.Hot.Rows[0].Key
	if b := e.Compute(n); b.Hot != a.Hot || b.Summary != a.Summary {
		t.Error("selecting an element computed the hot list again")
	}
	bad := need(p, Transform{Op: OpFocus, Name: "(", Expr: true})
	if d := e.Compute(bad); d.Problem == "" || d.Hot == nil {
		t.Error("a transform that does not compile is not reported, or takes the screen away")
	}
}

// What the command line gives as a filter is the same as transforms.
func TestSplitKeepsAll(t *testing.T) {
	re := func(s string) []*regexp.Regexp { return []*regexp.Regexp{regexp.MustCompile(s)} }
	f := profile.Filter{
		Range: profile.Range{From: 5, To: 9}, Focus: append(re("a"), re("b")...), Ignore: re("x"), Hide: re("c"), Merge: re("m"), Collapse: re("^package y"),
		FoldRecursion: true, Threads: []uint64{1 << 40}, TIDs: []uint32{2}, PIDs: []uint32{3}, Caps: []uint32{0, 1}, CPUs: []uint32{4},
		Categories: []eventlog.Category{eventlog.CategoryGC},
	}
	back, err := Filter(2, Split(f))
	if err != nil {
		t.Fatal(err)
	}
	back.Event = 0
	if d := cmp.Diff(f, back, cmp.Comparer(func(x, y *regexp.Regexp) bool { return x.String() == y.String() })); d != "" {
		t.Errorf("(-given +back)\n%s", d)
	}
}

func TestParseOnly(t *testing.T) {
	for _, c := range []struct {
		in   string
		want Transform
	}{
		{"thread 7", Transform{Op: OpThread, ID: 7}}, {" cap0 ", Transform{Op: OpCap}}, {"GC", Transform{Op: OpCategory, Name: "gc"}},
		{"category kernel", Transform{Op: OpCategory, Name: "kernel"}}, {"tid 4294967295", Transform{Op: OpTID, ID: 1<<32 - 1}},
	} {
		if got, err := ParseOnly(c.in); err != nil || got != c.want {
			t.Errorf("%q: %v, %v", c.in, got, err)
		}
	}
	for _, bad := range []string{"", "cap", "cap x", "cap -1", "tid 4294967296", "thread", "nothing", "3"} {
		if got, err := ParseOnly(bad); err == nil {
			t.Errorf("%q was read as %v", bad, got)
		}
	}
}
