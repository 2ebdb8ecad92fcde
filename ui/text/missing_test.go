package text_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/profile/timeline"
	"ccagent/ui/printer"
	"ccagent/ui/text"
)

// sampled is a log with a sample each 4 ms of 400 ms, of which the bytes from 160 to 240 ms are gone if
// damage is set.
func sampled(t *testing.T, damage bool) *profile.Profile {
	t.Helper()
	l := logtest.New()
	stack := l.Stack(l.Block(l.Binding("main", "Main", "main", 0)))
	var from, to int
	for at := uint64(0); at < 400e6; at += 4e6 {
		switch at {
		case 160e6:
			from = l.Len()
		case 240e6:
			to = l.Len()
		}
		l.Sample(at, 4e6, stack)
	}
	log := l.End()
	if damage {
		clear(log[from:to])
	}
	p, err := profile.Load(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// capRow is the columns of capability 0.
func capRow(t *testing.T, p *profile.Profile, window profile.Range) (row, all string) {
	t.Helper()
	s := p.Select(profile.Filter{})
	report := text.OverTime{Selection: s, Timeline: timeline.Of(s, timeline.Options{Buckets: 40, Window: window})}
	var out, doc bytes.Buffer
	if err := report.Text(&out, printer.Options{File: "x"}); err != nil {
		t.Fatal(err)
	}
	if err := report.JSON(&doc, printer.Options{}); err != nil {
		t.Fatal(err)
	}
	var fields struct {
		Unrecorded []float64 `json:"unrecorded_seconds"`
	}
	if err := json.Unmarshal(doc.Bytes(), &fields); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, seconds := range fields.Unrecorded {
		sum += seconds
	}
	if want := float64(p.Log.Unrecorded(0, p.Duration+1)) / 1e9; window == (profile.Range{}) && (sum < want-1e-3 || sum > want+1e-3) {
		t.Errorf("JSON has %v s without a record, want %v", sum, want)
	}
	for _, line := range strings.Split(out.String(), "\n") {
		if cells, ok := strings.CutPrefix(line, " cap 0   "); ok {
			return string([]rune(cells)[:40]), out.String()
		}
	}
	t.Fatalf("no row of capability 0:\n%s", &out)
	return "", ""
}

// What a damaged log lacks is drawn as such, and not as idle.
func TestMissingIsNotIdle(t *testing.T) {
	row, all := capRow(t, sampled(t, true), profile.Range{})
	if strings.Contains(row, "·") || strings.Count(row, "╌") < 7 || strings.Count(row, "╌") > 9 {
		t.Errorf("of 40 columns, 8 are gone: %s", row)
	}
	for _, want := range []string{"╌ not watched", "is not known: the log is damaged", "What happened in 8"} {
		if !strings.Contains(all, want) {
			t.Errorf("no %q in\n%s", want, all)
		}
	}
	if row, all = capRow(t, sampled(t, false), profile.Range{}); strings.ContainsAny(row, "·╌") || strings.Contains(all, "╌") {
		t.Errorf("of a whole log:\n%s", all)
	}
}

// Columns shorter than the time between two samples are not idle for having none.
func TestBetweenSamplesIsNotIdle(t *testing.T) {
	row, all := capRow(t, sampled(t, false), profile.Range{From: 100e6, To: 140e6})
	if strings.Contains(row, "·") || strings.Count(row, "R") != 10 || !strings.Contains(all, "no letter: no sample") || strings.Contains(all, "· idle") {
		t.Errorf("columns of 1 ms with samples each 4 ms:\n%s", all)
	}
}
