package e2e

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// totals are a log's samples and their weight by info.
type totals struct {
	Events []struct {
		Name            string
		Samples, Weight uint64
	}
	Program    struct{ End string }
	Symbolised bool
	Complete   bool
}

// Each log of a rotated capture can be read alone, merged they are the capture, and those
// beyond --keep are deleted.
func TestRotation(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "spin31", testprog.Options{})
	for _, c := range []struct {
		name string
		keep []string
		most int
	}{{"all", nil, 1 << 10}, {"keep 2", []string{"--keep", "2"}, 2}} {
		t.Run(c.name, func(t *testing.T) {
			log, r := record(t, append([]string{"-e", "cycles", "--rotate", "1KB"}, c.keep...), exe, "30000")
			pieces, err := filepath.Glob(strings.TrimSuffix(log, ".eventlog") + "*.eventlog")
			if err != nil {
				t.Fatal(err)
			}
			slices.SortFunc(pieces, func(a, b string) int { return len(a) - len(b) })
			if len(pieces) < 2 || len(pieces) > c.most {
				t.Fatalf("%d logs: %v\n%s", len(pieces), pieces, r.stderr)
			}
			var samples, weight uint64
			ends := make(map[string]int)
			for _, p := range pieces {
				st, err := os.Stat(p)
				if err != nil || st.Mode().Perm() != 0o600 {
					t.Errorf("%s: mode %v, %v", p, st.Mode(), err)
				}
				var info totals
				view(t, &info, "info", p)
				if !info.Symbolised || !info.Complete || len(info.Events) != 1 {
					t.Errorf("%s cannot stand alone: %+v", p, info)
					continue
				}
				samples, weight = samples+info.Events[0].Samples, weight+info.Events[0].Weight
				ends[info.Program.End]++
				if l := readLog(t, p); len(l.malformed) > 0 || l.capture == nil || l.end == nil {
					t.Errorf("%s: %v", p, l.malformed)
				}
			}
			if ends["exited"] != 1 || ends["rotated"] != len(pieces)-1 {
				t.Errorf("ends %v of %d logs", ends, len(pieces))
			}
			if len(c.keep) == 0 && !strings.Contains(r.stderr, "cycles (cpu-clock): "+strconv.FormatUint(samples, 10)+" samples") && !strings.Contains(r.stderr, "cycles: "+strconv.FormatUint(samples, 10)+" samples") {
				t.Errorf("%d samples in all logs\n%s", samples, r.stderr)
			}
			merged := filepath.Join(t.TempDir(), "merged.eventlog")
			if m := run(t, command(t, ccview, append([]string{"export", "--to", "eventlog", "-o", merged}, pieces...)...)); m.status != 0 {
				t.Fatalf("merge: %s", m.stderr)
			}
			var info totals
			view(t, &info, "info", merged)
			if len(info.Events) != 1 || info.Events[0].Samples != samples || info.Events[0].Weight != weight || info.Program.End != "exited" {
				t.Errorf("merged: %+v, want %d samples of %d", info, samples, weight)
			}
		})
	}
}
