package export

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"ccagent/profile"
	"ccagent/profile/logtest"
)

// imported exports a log in a format and opens the export.
func imported(t *testing.T, write func(*bytes.Buffer) error) *profile.Profile {
	t.Helper()
	var b bytes.Buffer
	if err := write(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	q, err := profile.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if q.Import == nil || q.Accounting.Malformed > 0 || q.Accounting.Undefined.Sum() > 0 {
		t.Fatalf("%+v, %+v", q.Import, q.Accounting)
	}
	return q
}

// A log's pprof export, opened again, has the same overlap: the shares of all elements
// are equal to the unit.
func TestPProfComesBack(t *testing.T) {
	p := load(t, logtest.NBody().End())
	s := p.Select(profile.Filter{})
	q := imported(t, func(b *bytes.Buffer) error { return PProf(b, []*profile.Selection{s}, Options{}) })
	back := q.Select(profile.Filter{})
	if back.Total != s.Total || back.Samples != s.Samples || back.EventDef().Name() != s.EventDef().Name() || back.EventDef().Unit != "ns" {
		t.Errorf("%d in %d samples, were %d in %d", back.Total, back.Samples, s.Total, s.Samples)
	}
	was := map[string][2]uint64{}
	for _, r := range s.Hot(profile.LevelBinding).Rows {
		if r.ShareWeight > 0 {
			was[r.Element.Name] = [2]uint64{r.ShareWeight, r.OnlyWeight}
		}
	}
	for _, r := range back.Hot(profile.LevelBinding).Rows {
		if got := [2]uint64{r.ShareWeight, r.OnlyWeight}; r.ShareWeight > 0 && got != was[r.Element.Name] {
			t.Errorf("%s: share and only %v, were %v", r.Element.Name, got, was[r.Element.Name])
		}
		delete(was, r.Element.Name)
	}
	if len(was) > 0 {
		t.Errorf("lost: %v", was)
	}
}

// A log's perf script export, opened again, has the same total, threads and stacks. The
// format has no overlap.
func TestPerfScriptComesBack(t *testing.T) {
	p := load(t, logtest.NBody().End())
	s := p.Select(profile.Filter{})
	q := imported(t, func(b *bytes.Buffer) error { return PerfScript(b, []*profile.Selection{s}, Options{}) })
	back := q.Select(profile.Filter{})
	if back.Total != s.Total || back.Samples != s.Samples || len(q.Threads) != len(p.Threads) || q.Import.Passed > 0 {
		t.Errorf("%d in %d samples of %d threads, were %d in %d of %d", back.Total, back.Samples, len(q.Threads), s.Total, s.Samples, len(p.Threads))
	}
}
