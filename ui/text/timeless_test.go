package text_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/profile"
	"ccagent/profile/timeline"
	"ccagent/ui/printer"
	"ccagent/ui/text"

	pprof "github.com/google/pprof/profile"
)

// A pprof profile says how long it took, and not when its samples were taken: it has a duration
// and no timeline.
func TestNoTimes(t *testing.T) {
	f := &pprof.Function{ID: 1, Name: "work"}
	l := &pprof.Location{ID: 1, Line: []pprof.Line{{Function: f}}}
	in := &pprof.Profile{
		DurationNanos: 5e9, SampleType: []*pprof.ValueType{{Type: "cpu", Unit: "nanoseconds"}},
		Sample: []*pprof.Sample{{Location: []*pprof.Location{l}, Value: []int64{3e9}}}, Location: []*pprof.Location{l}, Function: []*pprof.Function{f},
	}
	var data bytes.Buffer
	if err := in.Write(&data); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "profile.pb.gz")
	if err := os.WriteFile(path, data.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	p, err := profile.Open(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Duration != 0 || p.Lasted() != 5e9 {
		t.Errorf("times up to %d ns, lasted %d ns", p.Duration, p.Lasted())
	}
	s := p.Select(profile.Filter{})
	report := text.OverTime{Selection: s, Timeline: timeline.Of(s, timeline.Options{Buckets: 10})}
	var out, doc bytes.Buffer
	if err := report.Text(&out, printer.Options{File: "x", Width: 100}); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); !strings.Contains(got, "does not say when") || strings.Contains(got, "peak") {
		t.Errorf("a timeline of what has no times:\n%s", got)
	}
	if err := report.JSON(&doc, printer.Options{}); err != nil || !strings.Contains(doc.String(), `"weight": []`) {
		t.Errorf("%v\n%s", err, doc.String())
	}
}
