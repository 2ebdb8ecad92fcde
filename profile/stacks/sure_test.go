package stacks

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"ccagent/profile"
	"ccagent/profile/logtest"
)

// In every kind of tree, the samples that end at a node and below it are those of its total,
// and every node with samples has an interval around its share.
func TestSitesEndWhereTheirSamplesAre(t *testing.T) {
	for seed := range uint64(20) {
		p, err := profile.Load(bytes.NewReader(logtest.Random(rand.New(rand.NewPCG(seed, 3)))))
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range []int{0, 1} {
			for _, fold := range []bool{false, true} {
				f := profile.Filter{FoldRecursion: fold}.WithEvent(event)
				s := p.Select(f)
				for _, o := range []Options{{}, {Invert: true}, {AllFrames: true}, {MaxDepth: 3}, {Invert: true, MaxDepth: 2}, {Invert: true, Least: 0.05}} {
					tree := TreeOf(s, o)
					checkEnds(t, fmt.Sprintf("seed %d event %d fold %v %+v", seed, event, fold, o), s, tree)
					if o.Invert || len(tree.Nodes) < 3 {
						continue
					}
					callers, callees := tree.Sandwich(tree.Nodes[2].Frame)
					checkEnds(t, fmt.Sprintf("seed %d event %d fold %v %+v: callers", seed, event, fold, o), s, callers)
					checkEnds(t, fmt.Sprintf("seed %d event %d fold %v %+v: callees", seed, event, fold, o), s, callees)
				}
			}
		}
	}
}

func checkEnds(t *testing.T, what string, s *profile.Selection, tree *Tree) {
	t.Helper()
	sums, ends := make([]uint64, len(tree.Nodes)), make([]uint64, len(tree.Nodes))
	for site, n := range tree.At {
		if n >= 0 {
			ends[n] += s.Weight[site]
		}
		for ; n >= 0; n = tree.Nodes[n].Parent {
			sums[n] += s.Weight[site]
		}
	}
	sure := tree.Sure(s, 0)
	for i := range tree.Nodes {
		n := &tree.Nodes[i]
		if sums[i] != n.Total {
			t.Errorf("%s: node %d, %s, has a total of %d, its sites %d", what, i, n.Name, n.Total, sums[i])
		}
		if share := s.Fraction(n.Total); s.Total > 0 && (sure[i].Low > share+1e-9 || sure[i].High < share-1e-9 || sure[i].High > 1 || sure[i].Low < 0) {
			t.Errorf("%s: node %d, %s, has a share of %v, from %v to %v", what, i, n.Name, share, sure[i].Low, sure[i].High)
		}
		inner := tree.inverted && n.Self == 0
		if !tree.inverted && ends[i] != n.Self {
			t.Errorf("%s: at node %d, %s, end samples of %d; its self is %d", what, i, n.Name, ends[i], n.Self)
		}
		if self, in := s.Fraction(n.Self), sure[i].Self; s.Total > 0 && !inner && (in.Low > self+1e-9 || in.High < self-1e-9 || in.High <= 0 || in.High > 1) {
			t.Errorf("%s: node %d, %s, has a self of %v, from %v to %v", what, i, n.Name, self, in.Low, in.High)
		}
	}
}
