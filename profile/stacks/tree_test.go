package stacks_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
	"ccagent/profile/stacks"
)

// draw gives a tree as lines of "name self/total", indented by depth.
func draw(t *stacks.Tree) []string {
	var out []string
	var walk func(id int32, depth int)
	walk = func(id int32, depth int) {
		n := &t.Nodes[id]
		mark := ""
		if n.Forced > 0 {
			mark += fmt.Sprintf(" forced %d", n.Forced/1e6)
		}
		if n.Folded > 0 {
			mark += " folded"
		}
		out = append(out, fmt.Sprintf("%s%s %d/%d%s", strings.Repeat("  ", depth), n.Name, n.Self/1e6, n.Total/1e6, mark))
		for _, c := range n.Children {
			walk(c, depth+1)
		}
	}
	walk(0, 0)
	return out
}

// The call tree of a hand-made log has the self and total weights computed by hand.
func TestTree(t *testing.T) {
	s := nbody(t).Select(profile.Filter{})
	want := []string{
		"(root) 0/100",
		"  Main.main 0/88",
		"    Physics.step 20/78",
		"      Physics.pairwise 40/45 forced 40",
		"        sin 5/5",
		"      GHC.Base.map 10/10",
		"      (kernel) 3/3",
		"    GHC.List (near foldl1) 5/5",
		"    … 1200 words skipped 0/5",
		"      Physics.step 0/5",
		"        stg_ap_pp_fast 5/5",
		"  evacuate 10/10",
		"  (unresolved) 1/1",
		"  … stack incomplete: unreadable-stack 0/1",
		"    (unresolved) 1/1",
	}
	if d := cmp.Diff(want, draw(stacks.TreeOf(s, stacks.Options{}))); d != "" {
		t.Error(d)
	}
}

// Functions of C, C++ and Rust that are inlined have frames of their own, below the function that has their code.
func TestInlinedFunctions(t *testing.T) {
	l := logtest.New()
	file := l.File("w.cpp", "")
	fold, norm, square := l.Function("geo::fold", eventlog.CategoryForeign), l.Function("geo::norm", eventlog.CategoryForeign), l.Function("geo::square", eventlog.CategoryForeign)
	line := func(binding, n uint32) eventlog.Line { return eventlog.Line{Binding: binding, File: file, Line: n} }
	code := func(lines ...eventlog.Line) logtest.Frame {
		return l.Code(fold, eventlog.QualityExact, eventlog.CategoryForeign, lines...)
	}
	own := code(line(0, 10))
	inner := code(line(square, 3), line(norm, 5), line(0, 11))
	other := code(line(square, 4), line(0, 12))
	leaf := l.Code(l.Function("sin", eventlog.CategoryForeign), eventlog.QualityExact, eventlog.CategoryForeign)
	l.Sample(1, 10e6, l.Stack(own))
	l.Sample(2, 20e6, l.Stack(inner))
	l.Sample(3, 40e6, l.Stack(other))
	l.Sample(4, 5e6, l.Stack(inner, leaf))
	s := load(t, l.End()).Select(profile.Filter{})
	tree := stacks.TreeOf(s, stacks.Options{})
	want := []string{
		"(root) 0/75",
		"  geo::fold 10/75",
		"    geo::square 40/40",
		"    geo::norm 0/25",
		"      geo::square 20/25",
		"        sin 5/5",
	}
	if d := cmp.Diff(want, draw(tree)); d != "" {
		t.Errorf("tree (-want +got):\n%s", d)
	}
	for _, n := range tree.Nodes {
		if at := map[string]uint32{"geo::fold": 10, "geo::norm": 5, "geo::square": 3}[n.Name]; at != 0 && (n.Frame.File != "w.cpp" || n.Frame.Line != at) {
			t.Errorf("%s is at %s:%d, want line %d", n.Name, n.Frame.File, n.Frame.Line, at)
		}
	}
	want = []string{
		"(root) 0/75",
		"  geo::square 60/60",
		"    geo::fold 0/40",
		"    geo::norm 0/20",
		"      geo::fold 0/20",
		"  geo::fold 10/10",
		"  sin 5/5",
		"    geo::square 0/5",
		"      geo::norm 0/5",
		"        geo::fold 0/5",
	}
	if d := cmp.Diff(want, draw(stacks.TreeOf(s, stacks.Options{Invert: true}))); d != "" {
		t.Errorf("inverted (-want +got):\n%s", d)
	}
	for whole, want := range map[bool]string{false: "sin geo::square geo::norm geo::fold", true: "sin geo::fold"} {
		var names []string
		for site := range s.Count {
			if all := stacks.NewWalker(s, whole).Stack(columns.SiteID(site)); len(all) > 0 && all[0].Frame.Name == "sin" {
				for _, f := range all {
					names = append(names, f.Frame.Name)
				}
			}
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("whole: %v: the stack is %q, want %q", whole, got, want)
		}
	}
}

// The inverted tree has leaves at the top, and their callers with the weight that they
// account for.
func TestTreeInverted(t *testing.T) {
	s := nbody(t).Select(profile.Filter{Focus: expr("pairwise|map")})
	want := []string{
		"(root) 0/55",
		"  Physics.pairwise 40/40",
		"    Physics.step 0/40",
		"      Main.main 0/40",
		"  GHC.Base.map 10/10",
		"    Physics.step 0/10",
		"      Main.main 0/10",
		"  sin 5/5",
		"    Physics.pairwise 0/5",
		"      Physics.step 0/5",
		"        Main.main 0/5",
	}
	if d := cmp.Diff(want, draw(stacks.TreeOf(s, stacks.Options{Invert: true}))); d != "" {
		t.Error(d)
	}
}

// With AllFrames the tree shows structural frames and leaves recursion unfolded.
func TestTreeAllFrames(t *testing.T) {
	s := nbody(t).Select(profile.Filter{Range: profile.Range{To: 2e6}})
	want := []string{
		"(root) 0/1",
		"  (unresolved) 0/1",
		"    Main.main 0/1",
		"      Physics.step 0/1",
		"        stg_upd_frame 0/1 forced 1",
		"          Physics.pairwise 0/1",
		"            Physics.pairwise 0/1",
		"              Physics.pairwise 1/1",
	}
	if d := cmp.Diff(want, draw(stacks.TreeOf(s, stacks.Options{AllFrames: true}))); d != "" {
		t.Error(d)
	}
}

// Frames beyond the depth limit are one node that has their weight.
func TestTreeDepthLimit(t *testing.T) {
	l := logtest.New()
	f := l.File("A.hs", "")
	var stack []logtest.Frame
	for i := range 300 {
		b := l.Binding("main", "A", fmt.Sprintf("f%d", i), 0)
		stack = append(stack, l.Block(b, l.Span(f, uint32(i+1), 1, uint32(i+1), 5, b)))
	}
	l.Sample(1, 1e6, l.Stack(stack...))
	s := load(t, l.End()).Select(profile.Filter{})
	for _, c := range []struct{ limit, deepest int }{{3, 4}, {0, stacks.DefaultDepth + 1}, {-1, 300}} {
		for _, invert := range []bool{false, true} {
			lines := draw(stacks.TreeOf(s, stacks.Options{MaxDepth: c.limit, Invert: invert}))
			if len(lines) != c.deepest+1 {
				t.Errorf("limit %d: %d levels, want %d", c.limit, len(lines)-1, c.deepest)
			}
			if last := lines[len(lines)-1]; c.limit >= 0 && !strings.Contains(last, "… deeper frames") {
				t.Errorf("limit %d ends in %q", c.limit, last)
			}
			if first := map[bool]string{false: "A.f0 ", true: "A.f299 "}[invert]; !strings.Contains(lines[1], first) {
				t.Errorf("limit %d, inverted %v, begins with %q, want %s", c.limit, invert, lines[1], first)
			}
		}
	}
}

// Weight whose repeated frames were left out when recording is marked as folded, and
// counts once.
func TestTreeFoldedRepetitions(t *testing.T) {
	l := logtest.New()
	f := l.File("A.hs", "")
	b := l.Binding("main", "A", "go", 0)
	code := l.Block(b, l.Span(f, 1, 1, 1, 5, b))
	mark := logtest.Frame{Kind: eventlog.FrameFolded, Addr: 1}
	l.SampleOf(1, eventlog.Sample{Weight: 1e6, Node: l.Stack(mark, code, code), Flags: eventlog.SampleFolded, FoldedFrames: 400})
	s := load(t, l.End()).Select(profile.Filter{})
	if d := cmp.Diff([]string{"(root) 0/1", "  A.go 1/1 folded"}, draw(stacks.TreeOf(s, stacks.Options{}))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"A.go 100 100 100 1"}, table(s.Hot(profile.LevelBinding))); d != "" {
		t.Error(d)
	}
}

// Folded stacks are those of the tree, and their weights add up to the total.
func TestFolded(t *testing.T) {
	var got []string
	total := uint64(0)
	s := nbody(t).Select(profile.Filter{})
	stacks.TreeOf(s, stacks.Options{MaxDepth: -1}).Folded(func(stack string, w uint64) {
		got = append(got, fmt.Sprintf("%s %d", stack, w/1e6))
		total += w
	})
	want := []string{
		"(unresolved) 1",
		"Main.main;GHC.List (near foldl1) 5",
		"Main.main;Physics.step 20",
		"Main.main;Physics.step;(kernel) 3",
		"Main.main;Physics.step;GHC.Base.map 10",
		"Main.main;Physics.step;Physics.pairwise 40",
		"Main.main;Physics.step;Physics.pairwise;sin 5",
		"Main.main;… 1200 words skipped;Physics.step;stg_ap_pp_fast 5",
		"evacuate 10",
		"… stack incomplete: unreadable-stack;(unresolved) 1",
	}
	if d := cmp.Diff(want, got); d != "" || total != s.Total {
		t.Errorf("total %d of %d\n%s", total, s.Total, d)
	}
}

// Code that was inlined into a frame does not decide where the frame is.
func TestFrameStandsWhereItsBindingDoes(t *testing.T) {
	l := logtest.New()
	fa, fb := l.File("A.hs", ""), l.File("B.hs", "")
	a, b := l.Binding("main", "A", "f", 0), l.Binding("main", "B", "g", 0)
	inlined := l.Span(fb, 30, 1, 30, 9, b)
	bare := l.Binding("main", "A", "h", 0)
	l.Sample(1, 1e6, l.Stack(l.Block(bare, inlined), l.Block(a, inlined, l.Span(fa, 7, 1, 8, 9, a))))
	tr := stacks.TreeOf(load(t, l.End()).Select(profile.Filter{}), stacks.Options{})
	h := tr.Nodes[tr.Nodes[0].Children[0]]
	f := tr.Nodes[h.Children[0]]
	if h.Name != "A.h" || h.Frame.File != "" || f.Name != "A.f" || f.Frame.File != "A.hs" || f.Frame.Line != 7 {
		t.Errorf("%s in %q, %s in %s:%d", h.Name, h.Frame.File, f.Name, f.Frame.File, f.Frame.Line)
	}
}

// Leaving out the callers of small nodes changes nothing above them.
func TestInvertedTreeOfTheLargest(t *testing.T) {
	var log bytes.Buffer
	if err := logtest.Generate(&log, 3000, 300, 5); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Load(&log)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*profile.Selection{nbody(t).Select(profile.Filter{}), p.Select(profile.Filter{})} {
		whole := draw(stacks.TreeOf(s, stacks.Options{Invert: true}))
		if d := cmp.Diff(whole, draw(stacks.TreeOf(s, stacks.Options{Invert: true, Least: 1e-12}))); d != "" {
			t.Errorf("with no least share the trees differ:\n%s", d)
		}
		const least = 0.02
		large := func(tr *stacks.Tree) (lines []string) {
			var walk func(id int32, path string)
			walk = func(id int32, path string) {
				n := &tr.Nodes[id]
				path += "/" + n.Name
				lines = append(lines, fmt.Sprint(path, n.Self, n.Total, n.Samples))
				for _, c := range n.Children {
					if float64(n.Total) >= least*float64(s.Total) {
						walk(c, path)
					}
				}
			}
			walk(0, "")
			return lines
		}
		full, pruned := stacks.TreeOf(s, stacks.Options{Invert: true}), stacks.TreeOf(s, stacks.Options{Invert: true, Least: least})
		if d := cmp.Diff(large(full), large(pruned)); d != "" {
			t.Errorf("above the least share the trees differ:\n%s", d)
		}
		if len(whole) > 1000 && len(pruned.Nodes) > len(full.Nodes)/5 {
			t.Errorf("%d of %d nodes are left", len(pruned.Nodes), len(full.Nodes))
		}
	}
}

// However stacks are filtered, no tree loses weight.
func TestTreesConserveWeight(t *testing.T) {
	for seed := range uint64(60) {
		p := load(t, logtest.Random(rand.New(rand.NewPCG(seed, 7))))
		for i, f := range []profile.Filter{
			{}, profile.Filter{}.WithEvent(1), {Focus: expr("M1")}, {Ignore: expr(`f[0-3]$|c2`)}, {Hide: expr(`f[0-4]$|\(STG\)`)},
			profile.Filter{Hide: expr(`A\.hs|GC`)}.WithEvent(1), {Range: profile.Range{From: 20, To: 150}, Caps: []uint32{0, 2}},
		} {
			checkTrees(t, fmt.Sprintf("seed %d, filter %d", seed, i), p.Select(f))
		}
	}
}

// checkTrees: every way to draw the tree conserves the weight of each sample.
func checkTrees(t *testing.T, name string, s *profile.Selection) {
	for _, o := range []stacks.Options{{}, {Invert: true}, {AllFrames: true}, {MaxDepth: 2}, {MaxDepth: 2, Invert: true}} {
		tr := stacks.TreeOf(s, o)
		var self uint64
		for i := range tr.Nodes {
			n := &tr.Nodes[i]
			self += n.Self
			var children uint64
			for _, c := range n.Children {
				children += tr.Nodes[c].Total
				if tr.Nodes[c].Parent != int32(i) {
					t.Fatalf("%s %+v: child of another", name, o)
				}
			}
			if children > n.Total || !o.Invert && children+n.Self != n.Total {
				t.Errorf("%s %+v: %s: total %d, self %d, children %d", name, o, n.Name, n.Total, n.Self, children)
			}
			if n.Forced > n.Total {
				t.Errorf("%s %+v: %s: forced %d of %d", name, o, n.Name, n.Forced, n.Total)
			}
		}
		if self != s.Total || tr.Nodes[0].Total != s.Total || tr.Nodes[0].Samples != s.Samples {
			t.Errorf("%s %+v: self sums to %d, root %d, want %d", name, o, self, tr.Nodes[0].Total, s.Total)
		}
	}
}
