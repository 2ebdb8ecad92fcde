package stacks_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/profile/stacks"
)

// mutual is a program whose functions call each other in circles: even and odd
// of M, and lib's helper between them.
func mutual(t *testing.T) *profile.Profile {
	t.Helper()
	l := logtest.New()
	f := l.File("M.hs", "")
	code := func(pkg, module, name string, line uint32) logtest.Frame {
		b := l.Binding(pkg, module, name, 0)
		return l.Block(b, l.Span(f, line, 1, line, 9, b))
	}
	main, even, odd := code("main", "Main", "main", 1), code("main", "M", "even", 2), code("main", "M", "odd", 3)
	help, other := code("lib", "Lib.A", "help", 4), code("lib", "Lib.B", "other", 5)
	const ms = 1e6
	l.Sample(1, 10*ms, l.Stack(main, even, odd, even, odd))
	l.Sample(2, 20*ms, l.Stack(main, even, help, odd, even, other))
	l.Sample(3, 5*ms, l.Stack(main, even, help, other, odd))
	return load(t, l.End())
}

// With FoldRecursion no function is twice on a stack of the call tree, and no weight is
// lost.
func TestFoldRecursion(t *testing.T) {
	s := mutual(t).Select(profile.Filter{FoldRecursion: true})
	want := []string{
		"(root) 0/35",
		"  Main.main 0/35",
		"    M.even 0/35",
		"      Lib.B.other 20/20",
		"      M.odd 10/10",
		"      Lib.A.help 0/5",
		"        Lib.B.other 0/5",
		"          M.odd 5/5",
	}
	if d := cmp.Diff(want, draw(stacks.TreeOf(s, stacks.Options{}))); d != "" {
		t.Error(d)
	}
}

// A collapsed module or package is one element, and its adjacent frames are one frame.
func TestCollapse(t *testing.T) {
	p := mutual(t)
	s := p.Select(profile.Filter{Collapse: expr("^package lib$")})
	want := []string{
		"(root) 0/35",
		"  Main.main 0/35",
		"    M.even 0/35",
		"      lib 0/25",
		"        M.odd 5/25",
		"          M.even 0/20",
		"            lib 20/20",
		"      M.odd 0/10",
		"        M.even 0/10",
		"          M.odd 10/10",
	}
	if d := cmp.Diff(want, draw(stacks.TreeOf(s, stacks.Options{}))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"lib 57.1 57.1 71.4 1", "M.odd 42.9 42.9 100 2", "M.even 0 0 100 0", "Main.main 0 0 100 0"}, table(s.Hot(profile.LevelBinding))); d != "" {
		t.Error(d)
	}
	s = p.Select(profile.Filter{Collapse: expr("^M$")})
	want = []string{
		"(root) 0/35",
		"  Main.main 0/35",
		"    M 10/35",
		"      Lib.A.help 0/25",
		"        M 0/20",
		"          Lib.B.other 20/20",
		"        Lib.B.other 0/5",
		"          M 5/5",
	}
	if d := cmp.Diff(want, draw(stacks.TreeOf(s, stacks.Options{}))); d != "" {
		t.Error(d)
	}
	// What was collapsed can be the subject of another transform.
	s = p.Select(profile.Filter{Collapse: expr("^M$"), Ignore: expr(profile.ExactModule("Lib.A"))})
	if s.Samples != 1 {
		t.Errorf("%d samples without Lib.A, want 1", s.Samples)
	}
	s = p.Select(profile.Filter{Collapse: expr("^M$"), Merge: expr("^M$")})
	if got := table(s.Hot(profile.LevelBinding))[0]; got != "Lib.B.other 71.4 71.4 71.4 2" {
		t.Errorf("with M merged into its callers: %s", got)
	}
}

// Merged frames disappear from stacks, and their cost goes to the callers.
func TestMerge(t *testing.T) {
	s := mutual(t).Select(profile.Filter{Merge: expr("odd|other")})
	want := []string{
		"(root) 0/35",
		"  Main.main 0/35",
		"    M.even 10/35",
		"      Lib.A.help 5/25",
		"        M.even 20/20",
	}
	if d := cmp.Diff(want, draw(stacks.TreeOf(s, stacks.Options{}))); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"M.even 85.7 85.7 100 2", "Lib.A.help 14.3 14.3 71.4 1", "Main.main 0 0 100 0"}, table(s.Hot(profile.LevelBinding))); d != "" {
		t.Error(d)
	}
}

// Whatever is merged, collapsed or folded: no sample and no weight is lost, in
// trees, rows and exported stacks, and none counts twice.
func TestRegroupingConserves(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 9))
		p := load(t, logtest.Random(rng))
		whole := p.Select(profile.Filter{})
		f := profile.Filter{FoldRecursion: rng.IntN(2) == 0}
		if rng.IntN(2) == 0 {
			f.Collapse = expr([]string{"M0", "^package main$", "^module M1$", ""}[rng.IntN(4)])
		}
		if rng.IntN(2) == 0 {
			f.Merge = expr([]string{"f1|f2", "M0", "c1", ""}[rng.IntN(4)])
		}
		s := p.Select(f)
		if s.Samples != whole.Samples || s.Total != whole.Total {
			t.Fatalf("seed %d: %d samples of %d", seed, s.Samples, whole.Samples)
		}
		for _, invert := range []bool{false, true} {
			tree := stacks.TreeOf(s, stacks.Options{Invert: invert})
			self := uint64(0)
			for i := range tree.Nodes {
				n := &tree.Nodes[i]
				below := n.Self
				if !invert {
					self += n.Self
				} else if i == 0 || n.Parent == 0 {
					self += n.Self
				}
				for _, k := range n.Children {
					below += tree.Nodes[k].Total
				}
				if !invert && below != n.Total {
					t.Fatalf("seed %d: %s has %d, its own and its children's are %d", seed, n.Name, n.Total, below)
				}
				if f.FoldRecursion && n.Frame.Kind != profile.KindCategory {
					for up := n.Parent; up > 0; up = tree.Nodes[up].Parent {
						if tree.Nodes[up].Frame == n.Frame {
							t.Fatalf("seed %d: %s is on a stack twice", seed, n.Name)
						}
					}
				}
			}
			if tree.Nodes[0].Total != whole.Total || self != whole.Total {
				t.Fatalf("seed %d: the tree has %d, of which %d self, of %d", seed, tree.Nodes[0].Total, self, whole.Total)
			}
		}
		w := stacks.NewWalker(s, false)
		for site := range s.EachSample() {
			stack := w.Stack(site)
			for i := range stack {
				for j := range i {
					if f.FoldRecursion && stack[i].Frame == stack[j].Frame && stack[i].Frame.Kind != profile.KindCategory {
						t.Fatalf("seed %d: %s is on a stack twice", seed, stack[i].Frame.Name)
					}
				}
			}
		}
		for _, r := range s.Hot(profile.LevelBinding).Rows {
			if r.OnlyWeight > r.ShareWeight || r.ShareWeight > s.Total || r.InclusiveWeight > s.Total || r.ShareWeight > r.InclusiveWeight && r.Element.Kind != profile.KindCategory {
				t.Fatalf("seed %d: %+v", seed, r)
			}
			if strings.Contains(r.Element.Name, "M0.f") && len(f.Collapse) > 0 && f.Collapse[0].String() == "M0" {
				t.Fatalf("seed %d: %s is not collapsed", seed, r.Element.Name)
			}
		}
	}
}
