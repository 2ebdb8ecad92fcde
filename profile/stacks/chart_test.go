package stacks_test

import (
	"bytes"
	"slices"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/profile/stacks"
)

// f runs g in the first two of ten columns and h in the third; then nothing runs; then samples are lost; then f itself runs
// most of a column in which it also calls g, and g again.
func TestChart(t *testing.T) {
	l := logtest.New()
	block := func(name string) logtest.Frame { return l.Block(l.Binding("main", "M", name, 0)) }
	f, g, h := block("f"), block("g"), block("h")
	fg, fh, ff := l.Stack(f, g), l.Stack(f, h), l.Stack(f)
	const ms = uint64(1e6)
	for i := range uint64(20) {
		l.Sample(i*ms, ms, fg)
	}
	for i := range uint64(10) {
		l.Sample((20+i)*ms, ms, fh)
	}
	l.Write(45*ms, &eventlog.Loss{Event: 0, Count: 7, Reason: eventlog.LossRingFull})
	for i := range uint64(10) {
		l.Sample((50+i)*ms, ms, map[bool]uint32{true: fg, false: ff}[i < 4])
	}
	l.Sample(99*ms, ms, fg)
	p, err := profile.Load(bytes.NewReader(l.End()))
	if err != nil {
		t.Fatal(err)
	}
	c := stacks.ChartOf(p.Select(profile.Filter{}), profile.Range{To: 100 * ms}, 10)
	names := func(i int) (out []string) {
		for _, n := range c.Columns[i].Path {
			out = append(out, c.Tree.Nodes[n].Name)
		}
		return out
	}
	for i, want := range [][]string{{"M.f", "M.g"}, {"M.f", "M.g"}, {"M.f", "M.h"}, nil, nil, {"M.f"}, nil, nil, nil, {"M.f", "M.g"}} {
		if got := names(i); !slices.Equal(got, want) {
			t.Errorf("column %d: %v, want %v", i, got, want)
		}
		if unknown := c.Columns[i].Unknown(); unknown != (i == 4) {
			t.Errorf("column %d is unknown: %v", i, unknown)
		}
	}
	if of := c.Columns[5].Of; len(of) != 1 || of[0] != 1 {
		t.Errorf("f has %v of its column", of)
	}
	type run struct {
		from, to, depth int
		name            string
	}
	var got []run
	for _, r := range c.Runs() {
		got = append(got, run{r.From, r.To, r.Depth, c.Tree.Nodes[r.Node].Name})
	}
	want := []run{{0, 3, 0, "M.f"}, {5, 6, 0, "M.f"}, {9, 10, 0, "M.f"}, {0, 2, 1, "M.g"}, {2, 3, 1, "M.h"}, {9, 10, 1, "M.g"}}
	if !slices.Equal(got, want) {
		t.Errorf("runs %v, want %v", got, want)
	}
	var samples uint64
	for i := range c.Columns {
		samples += c.Columns[i].Samples
	}
	if samples != 41 {
		t.Errorf("%d samples in all columns", samples)
	}
}
