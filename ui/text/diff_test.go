package text_test

import (
	"bytes"
	"fmt"
	"testing"

	"ccagent/ui/printer"
	diffscreen "ccagent/ui/screen/diff"

	"ccagent/profile"
	"ccagent/profile/diff"
	"ccagent/profile/logtest"
	"ccagent/ui/internal/golden"
)

func runs(t *testing.T, n int, changed bool, level profile.Level) []*diff.Run {
	t.Helper()
	var out []*diff.Run
	for i := range n {
		number := uint64(i)
		if changed {
			number += 100
		}
		p := load(t, logtest.Run(number, changed).End())
		out = append(out, diff.Measure(fmt.Sprintf("run%d.eventlog", i), p.Select(profile.Filter{}), level))
	}
	return out
}

func TestGoldenDiff(t *testing.T) {
	for _, c := range []struct {
		name  string
		n     int
		level profile.Level
		o     diff.Options
		all   bool
		to    printer.Options
	}{
		{"five", 5, profile.LevelBinding, diff.Options{}, false, printer.Options{}},
		{"five-all-80-color", 5, profile.LevelBinding, diff.Options{}, true, printer.Options{Width: 80, Color: true}},
		{"five-span-share", 5, profile.LevelSpan, diff.Options{Normalise: diff.Share}, true, printer.Options{}},
		{"three-file", 3, profile.LevelFile, diff.Options{}, true, printer.Options{}},
		{"one", 1, profile.LevelBinding, diff.Options{}, false, printer.Options{}},
	} {
		r, err := diff.Compare(runs(t, c.n, false, c.level), runs(t, c.n, true, c.level), c.o)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := (diffscreen.Report{Result: r, All: c.all}).Text(&b, c.to); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "diff-"+c.name+".txt", b.String())
		b.Reset()
		if err := (diffscreen.Report{Result: r}).JSON(&b, c.to); err != nil {
			t.Fatal(err)
		}
		if c.n < 5 {
			golden.Check(t, "diff-"+c.name+".json", b.String())
		}
	}
}

// A program against itself, in other runs.
func TestGoldenDiffSame(t *testing.T) {
	a := runs(t, 5, false, profile.LevelBinding)
	var b []*diff.Run
	for i := range 5 {
		p := load(t, logtest.Run(uint64(50+i), false).End())
		b = append(b, diff.Measure("again.eventlog", p.Select(profile.Filter{}), profile.LevelBinding))
	}
	r, err := diff.Compare(a, b, diff.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := (diffscreen.Report{Result: r, All: false}).Text(&out, printer.Options{}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "diff-same.txt", out.String())
}
