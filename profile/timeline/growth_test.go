package timeline_test

import (
	"bytes"
	"testing"

	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
	"ccagent/profile/timeline"
)

// A band's growth is what it has at the last census of a range more than at the first, whatever lies between.
func TestHeapGrowth(t *testing.T) {
	p, err := profile.Load(bytes.NewReader(logtest.Growing().End()))
	if err != nil {
		t.Fatal(err)
	}
	h := &p.HeapProfiles[0]
	for _, c := range []struct {
		from, to uint64
		steps    int
		before   uint64
		after    uint64
		bands    map[string]timeline.BandGrowth
	}{
		{0, 0, 4, 3600, 13120, map[string]timeline.BandGrowth{
			"main:Main.Node":    {Before: 2400, After: 12000, Gained: 400, Rose: 4},
			"main:Main.Scratch": {Before: 200, After: 120, Gained: -4},
		}},
		{15e8, 45e8, 2, 6004, 10764, map[string]timeline.BandGrowth{
			"main:Main.Node":    {Before: 4800, After: 9600, Gained: 200, Rose: 2},
			"main:Main.Scratch": {Before: 180, After: 140, Gained: -2},
		}},
	} {
		g := timeline.HeapGrowth(h, c.from, c.to)
		if g == nil || g.Steps != c.steps || g.Before != c.before || g.After != c.after || len(g.Bands) != len(c.bands) {
			t.Fatalf("from %d to %d: %+v", c.from, c.to, g)
		}
		for _, b := range g.Bands {
			want := c.bands[h.Bands[b.Band].Name]
			want.Band, want.Counted = b.Band, true
			if b != want {
				t.Errorf("from %d to %d: %s is %+v, want %+v", c.from, c.to, h.Bands[b.Band].Name, b, want)
			}
		}
		if h.Bands[g.Bands[0].Band].Name != "main:Main.Node" {
			t.Errorf("what grew most is not first: %+v", g.Bands)
		}
	}
	if g := timeline.HeapGrowth(h, 0, 15e8); g != nil {
		t.Errorf("of one census: %+v", g)
	}
}

// Bands of censuses that have counted a part of the heap have intervals, and so has their growth.
func TestDrawn(t *testing.T) {
	load := func(l *logtest.Log) *columns.HeapProfile {
		p, err := profile.Load(bytes.NewReader(l.End()))
		if err != nil {
			t.Fatal(err)
		}
		return &p.HeapProfiles[0]
	}
	h := load(logtest.Drawn())
	s := timeline.Heap(h, 0, 0, 1, 0)
	if s.Drawn != 2 || len(s.Rows) != 2 || s.Rows[0].Margins[0] != 400 || s.Rows[1].Margins[0] != 0 {
		t.Errorf("%+v", s)
	}
	g := timeline.HeapGrowth(h, 0, 0)
	if g == nil || len(g.Bands) != 1 || g.Bands[0].Bytes() != 4000 || g.Bands[0].Margin != 500 {
		t.Errorf("%+v", g)
	}
	if whole := timeline.Heap(load(logtest.Growing()), 0, 0, 1, 0); whole.Drawn != 0 || whole.Rows[0].Margins != nil {
		t.Errorf("%+v", whole)
	}
}
