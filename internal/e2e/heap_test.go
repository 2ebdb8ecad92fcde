package e2e

import (
	"bufio"
	"io"
	"math"
	"path/filepath"
	"testing"

	"ccagent/internal/testprog"
)

// heapDoc is what ccview heap gives of censuses.
type heapDoc struct {
	Total []uint64 `json:"total_bytes"`
	Drawn []*struct{ Megablocks, Counted, Stood uint64 }
	Bands []struct {
		Band    string
		Bytes   []uint64
		Margins []uint64 `json:"margin_bytes"`
	}
}

func (d *heapDoc) band(name string) (bytes, margin float64) {
	for _, b := range d.Bands {
		if b.Band == name {
			if bytes = float64(b.Bytes[0]); len(b.Margins) > 0 {
				margin = float64(b.Margins[0])
			}
		}
	}
	return bytes, margin
}

// Within a pause in which not all can be read, of a program that collects its heap all the time, a random part is counted, and
// what a census of the whole heap has lies in the intervals.
func TestDrawnCensus(t *testing.T) {
	testprog.NeedRoot(t)
	target := command(t, testprog.Build(t, "footprint", testprog.Options{}), "live", "100")
	in, out := io.Pipe()
	target.Stdout = out
	if _, err := target.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	background(t, target)
	lines := bufio.NewReader(in)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, lines)
	census := func(pause string) (doc heapDoc) {
		log := filepath.Join(t.TempDir(), "heap.eventlog")
		r := run(t, command(t, ccagent, "heap", "--max-pause", pause, "--wait", "1m", "-o", log, pidOf(target)))
		if r.status != 0 {
			t.Fatalf("status %d\n%s", r.status, r.stderr)
		}
		view(t, &doc, "heap", log)
		if len(doc.Total) != 1 || len(doc.Drawn) != 1 {
			t.Fatalf("%+v", doc)
		}
		if doc.Drawn[0] != nil {
			wantLine(t, r.stderr, "megablocks, with intervals")
		}
		var rss struct {
			RSS       uint64 `json:"rss_bytes"`
			Accounted uint64 `json:"accounted_bytes"`
		}
		if view(t, &rss, "heap", "--rss", log); rss.RSS == 0 || rss.Accounted > rss.RSS+1<<20 {
			t.Errorf("%+v", rss)
		}
		return doc
	}
	exact, drawn := census("0"), census("1us")
	if exact.Drawn[0] != nil {
		t.Errorf("of the exact census %+v was counted", exact.Drawn[0])
	}
	for tries := 1; drawn.Drawn[0] == nil; tries++ { // all could be read before the next collection
		if tries == 10 {
			t.Fatal("each census has counted the whole heap: no interval was tested")
		}
		drawn = census("1us")
	}
	d := drawn.Drawn[0]
	if d.Counted < 8 || d.Counted > d.Megablocks {
		t.Errorf("%+v", d)
	}
	for _, name := range []string{"ghc-prim:GHC.Types.:", "ghc-prim:GHC.Types.I#"} {
		want, _ := exact.band(name)
		got, margin := drawn.band(name)
		if off := math.Abs(got - want); margin == 0 || off > 3*margin+want/50 {
			t.Errorf("%s: %v ± %v bytes, and %v", name, got, margin, want)
		}
	}
}

// What keeps alive what has come between two censuses is found: a map gains nodes of six words with values of three.
func TestWhatRetainsGrowth(t *testing.T) {
	testprog.NeedRoot(t)
	target := command(t, testprog.Build(t, "grow", testprog.Options{}), "2000", "1000000", "20000")
	if _, err := target.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	begin(t, target)
	var logs []string
	for _, name := range []string{"earlier.eventlog", "later.eventlog"} {
		log := filepath.Join(t.TempDir(), name)
		if r := run(t, command(t, ccagent, "heap", "--graph", "--max-pause", "0", "--wait", "1m", "-o", log, pidOf(target))); r.status != 0 {
			t.Fatalf("status %d\n%s", r.status, r.stderr)
		}
		logs = append(logs, log)
	}
	type grown struct {
		Name     string
		More     int64 `json:"growth_retained_bytes"`
		Own      int64 `json:"growth_own_bytes"`
		Closures int64 `json:"growth_closures"`
	}
	var doc struct {
		Problem     string
		Growth      int64 `json:"growth_bytes"`
		Tree, Bands []grown
	}
	view(t, &doc, "heap", "--retained", "--since", logs[0], logs[1])
	if doc.Problem != "" || len(doc.Tree) == 0 || len(doc.Bands) == 0 {
		t.Fatalf("%+v", doc)
	}
	found := false
	for _, b := range doc.Tree {
		if b.Name == "Data.Map.Internal.Bin" && b.Closures > 0 {
			found = b.Own == 48*b.Closures && b.More >= 72*b.Closures && b.More <= doc.Growth+4096
		}
	}
	if b := doc.Bands[0]; !found || b.Name != "Data.Map.Internal.Bin" || b.Own != 48*b.Closures {
		t.Errorf("the map does not retain the growth: %+v", doc)
	}
}
