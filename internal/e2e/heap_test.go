package e2e

import (
	"bufio"
	"cmp"
	"io"
	"math"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
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
	log string
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
		doc.log = log
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
	// The same bytes divided otherwise have intervals too.
	for level, bands := range map[string][]string{
		"kind": {"values of data types"}, "span": {"GHC.Types.:", "GHC.Types.I#"}, "binding": {"GHC.Types.:", "GHC.Types.I#"}, "module": {"GHC.Types"}, "package": {"ghc-prim"},
	} {
		var whole, part heapDoc
		view(t, &whole, "heap", "--level", level, exact.log)
		view(t, &part, "heap", "--level", level, drawn.log)
		if len(part.Total) != 1 || len(part.Drawn) != 1 || part.Drawn[0] == nil || part.Total[0] != drawn.Total[0] || whole.Total[0] != exact.Total[0] {
			t.Errorf("by %s: %+v of %+v", level, part, drawn)
			continue
		}
		for _, name := range bands {
			want, none := whole.band(name)
			got, margin := part.band(name)
			if off := math.Abs(got - want); want < 25e6 || none != 0 || margin == 0 || off > 3*margin+want/50 {
				t.Errorf("by %s, %s: %v ± %v bytes, and %v ± %v", level, name, got, margin, want, none)
			}
		}
		shown := run(t, command(t, ccview, "heap", "--level", level, drawn.log))
		wantLine(t, shown.stdout, "megablocks were counted, within --max-pause")
		wantLine(t, shown.stdout, "bytes            ±")
	}
	// Intervals by source hold the truth in 95 of 100 censuses. That five of eight do not has a chance of 1 in 50 000.
	const draws = 8
	held := map[string]int{}
	var whole heapDoc
	view(t, &whole, "heap", "--level", "span", exact.log)
	for range draws {
		next := census("1us")
		for tries := 1; next.Drawn[0] == nil && tries < 10; tries++ {
			next = census("1us")
		}
		view(t, &next, "heap", "--level", "span", next.log)
		for _, name := range []string{"GHC.Types.:", "GHC.Types.I#"} {
			want, _ := whole.band(name)
			if got, margin := next.band(name); math.Abs(got-want) <= margin {
				held[name]++
			}
		}
	}
	for _, name := range []string{"GHC.Types.:", "GHC.Types.I#"} {
		if held[name] < draws/2 {
			t.Errorf("%s: %d of %d intervals hold what a whole census has", name, held[name], draws)
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

// bySource is what ccview heap --level span has.
type bySource struct {
	Bands []struct {
		Band, Source string
		Closures     []*uint64
	}
}

// A census without pointers says which line has written the thunks that leak.
func TestLeakBySource(t *testing.T) {
	testprog.NeedRoot(t)
	const thunks = 800_000 // two of each of 400 000 steps
	for _, release := range []string{"", "9.6.6", "9.10.3"} {
		t.Run(cmp.Or(release, "own"), func(t *testing.T) {
			exe := testprog.Build(t, "leaks", testprog.Options{Threaded: true, Release: release})
			census := filepath.Join(t.TempDir(), "census.eventlog")
			target := command(t, exe, "foldl")
			untilReady(t, target, func() {
				if r := run(t, command(t, ccagent, "heap", "--wait", "1m", "-o", census, pidOf(target))); r.status != 0 {
					t.Fatalf("status %d\n%s", r.status, r.stderr)
				}
			})
			var d bySource
			view(t, &d, "heap", "--level", "span", census)
			found := uint64(0)
			for _, b := range d.Bands {
				n := *b.Closures[0]
				if b.Band == "thunk Main.mean" && strings.Contains(b.Source, "Main.hs:34:") {
					found += n
				} else if n > thunks/100 {
					t.Errorf("%d closures are %s %s", n, b.Band, b.Source)
				}
			}
			if found < thunks || found > thunks+thunks/100 {
				t.Errorf("%d thunks were written on line 34, want %d", found, thunks)
			}
		})
	}
}

// Thunks of a library's function, which has no source notes, have the line of the program's function that it was specialised for.
func TestLeakOfThunksOfLibrary(t *testing.T) {
	testprog.NeedRoot(t)
	const thunks = 399_000 // of 400 000 steps, but for the first one of each of 1000 keys
	for _, release := range []string{""} {
		t.Run(cmp.Or(release, "own"), func(t *testing.T) {
			exe := testprog.Build(t, "leaks", testprog.Options{Threaded: true, Release: release})
			census := filepath.Join(t.TempDir(), "census.eventlog")
			target := command(t, exe, "map")
			untilReady(t, target, func() {
				if r := run(t, command(t, ccagent, "heap", "--wait", "1m", "-o", census, pidOf(target))); r.status != 0 {
					t.Fatalf("status %d\n%s", r.status, r.stderr)
				}
			})
			var d bySource
			view(t, &d, "heap", "--level", "span", census)
			for _, b := range d.Bands {
				if n := *b.Closures[0]; strings.HasPrefix(b.Band, "thunk Main.") && strings.Contains(b.Source, "Main.hs:4") && n >= thunks && n < thunks+thunks/100 {
					return
				}
			}
			t.Errorf("no band has %d thunks of tally: %+v", thunks, d.Bands[:min(len(d.Bands), 2)])
		})
	}
}

// untilReady starts a program that leaks, calls f when it has done so, and has it end.
func untilReady(t *testing.T, cmd *exec.Cmd, f func()) {
	t.Helper()
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, to := io.Pipe()
	cmd.Stdout = to
	wait := background(t, cmd)
	lines := bufio.NewReader(out)
	for line := ""; line != "ready\n"; {
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	go io.Copy(io.Discard, lines)
	f()
	if _, err := io.WriteString(stdin, "\n"); err != nil {
		t.Fatal(err)
	}
	if r := wait(); r.status != 0 {
		t.Fatalf("status %d\n%s", r.status, r.stderr)
	}
}

// A series names the code of what is alive though no other event was asked for.
func TestSeriesBySource(t *testing.T) {
	testprog.NeedRoot(t)
	log, r := record(t, []string{"-e", "heap=1ms", "--max-overhead", "100"}, testprog.Build(t, "grow", testprog.Options{Threaded: true}), "2000", "100")
	if r.status != 0 {
		t.Fatalf("status %d\n%s", r.status, r.stderr)
	}
	var d struct {
		Bands  []struct{ Band string }
		Growth *struct {
			Bands []struct {
				Band  string
				Bytes int64 `json:"growth_bytes"`
			}
		}
	}
	view(t, &d, "heap", "--level", "span", log)
	if d.Growth == nil || len(d.Growth.Bands) == 0 || d.Growth.Bands[0].Band != "Data.Map.Internal.Bin" || d.Growth.Bands[0].Bytes <= 0 {
		t.Errorf("what grew is %+v", d.Growth)
	}
	if slices.ContainsFunc(d.Bands, func(b struct{ Band string }) bool { return strings.Contains(b.Band, "(unresolved)") }) {
		t.Errorf("bands have no names: %+v", d.Bands)
	}
	view(t, &d, "heap", "--level", "module", log)
	if !slices.ContainsFunc(d.Growth.Bands, func(b struct {
		Band  string
		Bytes int64 `json:"growth_bytes"`
	}) bool {
		return b.Band == "Data.Map.Internal" && b.Bytes > 0
	}) {
		t.Errorf("the module of the map's nodes has not grown: %+v", d.Growth)
	}
}

// The largest stack has its thread's label, where the release keeps one there, and its frames.
func TestLargestStack(t *testing.T) {
	testprog.NeedRoot(t)
	for release, label := range map[string]string{"": "", "9.6.6": "serve", "9.10.3": "serve"} {
		t.Run(cmp.Or(release, "own"), func(t *testing.T) {
			target := command(t, testprog.Build(t, "leaks", testprog.Options{Threaded: true, Release: release}), "stack")
			census := filepath.Join(t.TempDir(), "census.eventlog")
			untilReady(t, target, func() {
				if r := run(t, command(t, ccagent, "heap", "--wait", "1ms", "-o", census, pidOf(target))); r.status != 0 {
					t.Fatalf("status %d\n%s", r.status, r.stderr)
				}
			})
			var d struct {
				Stacks []struct {
					Label  string
					Bytes  uint64
					Frames []string
				}
			}
			view(t, &d, "heap", "--rss", census)
			if len(d.Stacks) == 0 || d.Stacks[0].Bytes < 10<<20 || d.Stacks[0].Label != label {
				t.Fatalf("stacks are %+v", d.Stacks)
			}
			if !slices.ContainsFunc(d.Stacks[0].Frames, func(f string) bool { return strings.HasPrefix(f, "Main.serve") }) || len(d.Stacks[0].Frames) > 20 {
				t.Errorf("its frames are %q", d.Stacks[0].Frames)
			}
		})
	}
}
