package profile_test

import (
	"os"
	"path/filepath"
	"testing"

	"ccagent/profile"
)

// generations are the committed logs of real captures, by the generation of the format
// that they are of: their samples by event, and the binding with the largest share of the
// first. See docs/log-format.md: none is ever taken away or made anew.
var generations = map[string]struct {
	samples map[string]uint64
	hottest string
}{
	"v1-spin31":     {map[string]uint64{"cycles": 200, "alloc": 6}, "Main.three"},
	"v1-threads100": {map[string]uint64{"cycles": 195, "alloc": 5}, "Main.bottom"},
}

// A log that any earlier version wrote opens, is whole, and says what it said then.
func TestLogsOfEveryGenerationOpen(t *testing.T) {
	const dir = "testdata/generations"
	logs, err := os.ReadDir(dir)
	if err != nil || len(logs) != len(generations) {
		t.Fatalf("%d logs in %s, %d are known, %v", len(logs), dir, len(generations), err)
	}
	for name, want := range generations {
		p, err := profile.Open(filepath.Join(dir, name+".eventlog"), nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		a := &p.Accounting
		if !a.Complete || a.Malformed != 0 || a.Dropped != 0 || a.Redefined != 0 || a.Unknown != 0 {
			t.Errorf("%s: %+v", name, a)
		}
		for event, n := range want.samples {
			if i, ok := p.EventNamed(event); !ok || p.Events[i].Samples != n {
				t.Errorf("%s: %d samples of %s wanted, event %d of %+v", name, n, event, i, p.Events)
			}
		}
		s := p.Select(profile.Filter{})
		if rows := s.Hot(profile.LevelBinding).Rows; len(rows) == 0 || rows[0].Element.Name != want.hottest {
			t.Errorf("%s: the hottest binding is not %s: %+v", name, want.hottest, rows[:min(len(rows), 1)])
		}
	}
}
