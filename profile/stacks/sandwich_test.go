package stacks_test

import (
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/profile/stacks"
)

// The callers and callees of a recursive function count each sample once.
func TestSandwich(t *testing.T) {
	tree := stacks.TreeOf(mutual(t).Select(profile.Filter{}), stacks.Options{})
	f, _ := tree.Function("odd")
	if f == nil || f.Name != "M.odd" {
		t.Fatalf("found %v", f)
	}
	callers, callees := tree.Sandwich(f)
	want := []string{
		"M.odd 0/35",
		"  Lib.A.help 0/20",
		"    M.even 0/20",
		"      Main.main 20/20",
		"  M.even 0/10",
		"    Main.main 10/10",
		"  Lib.B.other 0/5",
		"    Lib.A.help 0/5",
		"      M.even 0/5",
		"        Main.main 5/5",
	}
	if d := cmp.Diff(want, draw(callers)); d != "" {
		t.Error(d)
	}
	want = []string{
		"M.odd 5/35",
		"  M.even 0/30",
		"    Lib.B.other 20/20",
		"    M.odd 10/10",
	}
	if d := cmp.Diff(want, draw(callees)); d != "" {
		t.Error(d)
	}
}

// Both halves of a sandwich have the function's inclusive weight, and every node
// what is on it and below.
func TestSandwichConserves(t *testing.T) {
	for seed := range uint64(30) {
		s := load(t, logtest.Random(rand.New(rand.NewPCG(seed, 4)))).Select(profile.Filter{})
		tree := stacks.TreeOf(s, stacks.Options{})
		inclusive := make(map[*profile.Frame]uint64)
		for i := range tree.Nodes {
			n := &tree.Nodes[i]
			outer := true
			for up := n.Parent; up >= 0; up = tree.Nodes[up].Parent {
				outer = outer && tree.Nodes[up].Frame != n.Frame
			}
			if outer && i > 0 {
				inclusive[n.Frame] += n.Total
			}
		}
		for f, want := range inclusive {
			callers, callees := tree.Sandwich(f)
			for _, half := range []*stacks.Tree{callers, callees} {
				if half.Nodes[0].Total != want {
					t.Fatalf("seed %d: %s has %d, its sandwich %d", seed, f.Name, want, half.Nodes[0].Total)
				}
				for i := range half.Nodes {
					n := &half.Nodes[i]
					sum := n.Self
					for _, k := range n.Children {
						sum += half.Nodes[k].Total
					}
					if sum != n.Total {
						t.Fatalf("seed %d: %s in the sandwich of %s has %d, its parts %d", seed, n.Name, f.Name, n.Total, sum)
					}
				}
			}
		}
	}
}
