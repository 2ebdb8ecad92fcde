package stacks_test

import (
	"bytes"
	"math"
	"testing"

	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/profile/stacks"
)

// sampled is a log whose samples fall on functions at the root, by name and number of samples, in turns.
func sampled(t *testing.T, counts map[string]int, order ...string) *profile.Selection {
	t.Helper()
	l := logtest.New()
	nodes := map[string]uint32{}
	most := 0
	for _, name := range order {
		nodes[name] = l.Stack(l.Block(l.Binding("main", "M", name, 0)))
		most = max(most, counts[name])
	}
	at := uint64(0)
	for i := range most {
		for _, name := range order {
			if i < counts[name] {
				at += 1e6
				l.Sample(at, 1e6, nodes[name])
			}
		}
	}
	p, err := profile.Load(bytes.NewReader(l.End()))
	if err != nil {
		t.Fatal(err)
	}
	return p.Select(profile.Filter{})
}

// Paths are matched by name. What one side alone has is gone or new, unless that may be by chance, and
// a change beyond the noise of sampling is found in its direction.
func TestPair(t *testing.T) {
	a := sampled(t, map[string]int{"same": 300, "less": 300, "gone": 80, "rare": 1}, "same", "less", "gone", "rare")
	b := sampled(t, map[string]int{"new": 100, "less": 100, "same": 310}, "new", "less", "same")
	p := stacks.PairOf([]*profile.Selection{a}, []*profile.Selection{b}, 0.0005)
	want := map[string]struct {
		differs bool
		sign    float64
		only    int
	}{"M.same": {true, 1, -1}, "M.less": {true, -1, -1}, "M.gone": {true, -1, 0}, "M.new": {true, 1, 1}, "M.rare": {false, -1, 0}}
	for i := 1; i < len(p.Nodes); i++ {
		n := &p.Nodes[i]
		w, ok := want[n.Name]
		if !ok {
			t.Errorf("a node %q", n.Name)
			continue
		}
		delete(want, n.Name)
		only, is := n.Only()
		if !is {
			only = -1
		}
		if n.Differs() != w.differs || n.Change()*w.sign <= 0 || only != w.only || n.Change() < n.Low || n.Change() > n.High {
			t.Errorf("%s: %+v, only %d", n.Name, n, only)
		}
	}
	if len(want) > 0 {
		t.Errorf("no nodes for %v", want)
	}
	back := stacks.PairOf([]*profile.Selection{b}, []*profile.Selection{a}, 0.0005)
	for i := range p.Nodes {
		for j := range back.Nodes {
			if x, y := &p.Nodes[i], &back.Nodes[j]; x.Name == y.Name && (math.Abs(x.Change()+y.Change()) > 1e-12 || math.Abs(x.Low+y.High) > 1e-9) {
				t.Errorf("%s: %+v one way, %+v the other", x.Name, x, y)
			}
		}
	}
}

// A log against itself has no change at all, however many runs.
func TestPairOfItself(t *testing.T) {
	a := sampled(t, map[string]int{"f": 90, "g": 10}, "f", "g")
	p := stacks.PairOf([]*profile.Selection{a, a}, []*profile.Selection{a}, 0.0005)
	if len(p.Nodes) != 3 {
		t.Fatalf("%d nodes", len(p.Nodes))
	}
	for i := range p.Nodes {
		if n := &p.Nodes[i]; math.Abs(n.Change()) > 1e-12 || n.Differs() {
			t.Errorf("%+v", n)
		}
	}
}
