//go:build linux && cgo

package replay

import (
	"bytes"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"ccagent/bpf/replay/oracle"
	"ccagent/bpf/replay/snapshot"
)

// build is what was recorded of one build: the folders of its archives.
type build struct{ snapshots, goldens fs.FS }

// builds are those of testdata, by VERSION/WAY.
var builds = sync.OnceValues(func() (map[string]build, error) {
	paths, err := filepath.Glob("testdata/*/*.zip")
	if err != nil {
		return nil, err
	}
	found := map[string]build{}
	for _, file := range paths {
		file = strings.TrimSuffix(file, ".zip")
		var b build
		if b.snapshots, b.goldens, err = snapshot.OpenArchives(file); err != nil {
			return nil, err
		}
		found[strings.TrimPrefix(filepath.ToSlash(file), "testdata/")] = b
	}
	return found, nil
})

// snapshots lists the recorded snapshots as VERSION/WAY/SITUATION.
func snapshots(tb testing.TB) []string {
	tb.Helper()
	all, err := builds()
	if err != nil {
		tb.Fatal(err)
	}
	var names []string
	for _, way := range slices.Sorted(maps.Keys(all)) {
		files, err := fs.Glob(all[way].snapshots, "*.snap")
		if err != nil {
			tb.Fatal(err)
		}
		for _, file := range files {
			names = append(names, way+"/"+strings.TrimSuffix(file, ".snap"))
		}
	}
	if len(names) < 400 {
		tb.Fatalf("only %d snapshots: run scripts/snapshots", len(names))
	}
	return names
}

// find returns the build that a snapshot is of, and its situation.
func find(tb testing.TB, name string) (build, string) {
	tb.Helper()
	all, err := builds()
	if err != nil {
		tb.Fatal(err)
	}
	way, situation := path.Split(name)
	return all[path.Clean(way)], situation
}

func readSnapshot(tb testing.TB, name string) *snapshot.Snapshot {
	tb.Helper()
	b, situation := find(tb, name)
	data, err := fs.ReadFile(b.snapshots, situation+".snap")
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	s, err := snapshot.Decode(data)
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return s
}

func readGolden(tb testing.TB, name string) *oracle.Truth {
	tb.Helper()
	b, situation := find(tb, name)
	text, err := fs.ReadFile(b.goldens, situation+".txt")
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	truth, err := oracle.ReadText(bytes.NewReader(text))
	if err != nil {
		tb.Fatalf("%s: %v", name, err)
	}
	return truth
}

// differing lists the snapshots for which the walker's record is known to be wrong, with
// what is wrong. The list may only get shorter: a snapshot whose record is right must be
// removed from it.
func differing(t *testing.T) map[string]string {
	t.Helper()
	text, err := os.ReadFile("testdata/differing.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		name, what, _ := strings.Cut(line, "\t")
		known[name] = what
	}
	return known
}

// The walk of every snapshot gives its golden stack, within the limits on reads and
// iterations.
func TestGoldenStacks(t *testing.T) {
	known := differing(t)
	for _, name := range snapshots(t) {
		t.Run(name, func(t *testing.T) {
			s, truth := readSnapshot(t, name), readGolden(t, name)
			r, err := Walk(FromSnapshot(s, SnapshotFrames))
			if err != nil {
				t.Fatal(err)
			}
			d := Differences(&r, truth)
			switch what, listed := known[name]; {
			case listed && len(d) == 0:
				t.Errorf("the record is right now: remove it from testdata/differing.txt (%s)", what)
			case listed:
				t.Logf("known to differ: %s", strings.Join(d, "\n"))
			case len(d) > 0:
				var text strings.Builder
				for _, f := range r.Frames {
					text.WriteString("\t" + f.Kind.String() + " " + s.Name(f.Address) + "\n")
				}
				t.Errorf("%s\nthe record:\n%sstop %s; the golden stack is in the .txtar", strings.Join(d, "\n"), text.String(), Stop(r.Stop))
			}
		})
		delete(known, name)
	}
	for name := range known {
		t.Errorf("testdata/differing.txt names %s, but there is no such snapshot", name)
	}
}

// A record for any budget is true as far as it goes: no frame is wrong, and either the root
// is recovered or the stop reason says that it is not.
func TestBudgets(t *testing.T) {
	for _, name := range snapshots(t) {
		s, truth := readSnapshot(t, name), readGolden(t, name)
		for _, budget := range []int{1, 2, 3, 7, 16, 33, 100, SnapshotFrames} {
			r, err := Walk(FromSnapshot(s, budget))
			if err != nil {
				t.Fatal(err)
			}
			leaf := 0
			for leaf < len(r.Frames) && r.Frames[leaf].Kind != KindSkipped {
				leaf++
			}
			if leaf > budget+2 { // markers of context and folding are not counted
				t.Errorf("%s: %d frames before the skipped part, with a budget of %d", name, leaf, budget)
			}
			if stop := Stop(r.Stop); stop == StopRecovered && leaf == len(r.Frames) || stop == StopRoot && leaf < len(r.Frames) {
				t.Errorf("%s: stop reason %s with %d of %d frames before the skipped part, budget %d", name, stop, leaf, len(r.Frames), budget)
			}
			if n := len(r.Frames); leaf < n && (r.Frames[n-1].Kind != KindStop || truth.Frames[len(truth.Frames)-1].Kind != "stop") {
				t.Errorf("%s: what follows the skipped part does not end at the root, budget %d", name, budget)
			}
		}
	}
}

func BenchmarkWalk(b *testing.B) {
	for _, name := range []string{"recursion", "mutual", "underflow", "deep", "unsafe-deeper", "safe"} {
		s := readSnapshot(b, "9.0.2/O2/"+name)
		target := FromSnapshot(s, SnapshotFrames)
		b.Run(name, func(b *testing.B) {
			var r Record
			for b.Loop() {
				var err error
				if r, err = Walk(target); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(r.Reads), "reads")
			b.ReportMetric(float64(r.Iterations), "iterations")
		})
	}
}
