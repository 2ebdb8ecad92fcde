package text_test

import (
	"bytes"
	"fmt"
	"testing"

	"ccagent/profile"
	"ccagent/profile/diff"
	"ccagent/profile/logtest"
	"ccagent/ui/internal/golden"
	"ccagent/ui/text"
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
		do    text.DiffOptions
		to    text.Options
	}{
		{"five", 5, profile.LevelBinding, diff.Options{}, text.DiffOptions{}, text.Options{}},
		{"five-all-80-color", 5, profile.LevelBinding, diff.Options{}, text.DiffOptions{All: true}, text.Options{Width: 80, Color: true}},
		{"five-span-share", 5, profile.LevelSpan, diff.Options{Normalise: diff.Share}, text.DiffOptions{All: true}, text.Options{}},
		{"three-file", 3, profile.LevelFile, diff.Options{}, text.DiffOptions{All: true}, text.Options{}},
		{"one", 1, profile.LevelBinding, diff.Options{}, text.DiffOptions{}, text.Options{}},
	} {
		r, err := diff.Compare(runs(t, c.n, false, c.level), runs(t, c.n, true, c.level), c.o)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := text.Diff(&b, r, c.do, c.to); err != nil {
			t.Fatal(err)
		}
		golden.Check(t, "diff-"+c.name+".txt", b.String())
		b.Reset()
		if err := text.DiffJSON(&b, r, c.to); err != nil {
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
	if err := text.Diff(&out, r, text.DiffOptions{}, text.Options{}); err != nil {
		t.Fatal(err)
	}
	golden.Check(t, "diff-same.txt", out.String())
}
