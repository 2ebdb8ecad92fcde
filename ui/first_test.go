package ui

import (
	"bytes"
	"fmt"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
)

// firstRow is the element that the viewer begins at, of a log with a module of many
// procedures without source, and a file with one of the given weight.
func firstRow(t *testing.T, bare int, weight uint64) string {
	t.Helper()
	l := logtest.New()
	sample := func(w uint64, f logtest.Frame) { l.Sample(w, w, l.Stack(f)) }
	for i := range bare {
		sample(uint64(10+i), l.Code(l.Binding("lib-1.0", "Lib", fmt.Sprintf("f%d", i), 0), eventlog.QualityExact, eventlog.CategoryHaskell))
	}
	mine := l.Binding("main", "Main", "mine", 0)
	sample(weight, l.Block(mine, l.Span(l.File("Main.hs", "mine = 1\n"), 1, 1, 1, 9, mine)))
	p, err := profile.Load(bytes.NewReader(l.End()))
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, p, 120, 40, Options{ASCII: true})
	for _, r := range s.app.c.Data.Hot.Rows {
		if r.Key == s.app.c.Selected {
			return r.Full
		}
	}
	return ""
}

// The viewer begins at what has a source to show, unless other code is much hotter or
// fills the list's first page.
func TestFirstRow(t *testing.T) {
	for _, c := range []struct {
		bare   int
		weight uint64
		want   string
	}{
		{2, 30, "Main.mine"}, // the hottest
		{2, 10, "Main.mine"}, // half as hot, in sight
		{2, 1, "Lib.f1"},     // next to nothing
		{30, 400, "Lib.f29"}, // below the first page
		{30, 900, "Main.mine"},
	} {
		if got := firstRow(t, c.bare, c.weight); got != c.want {
			t.Errorf("%d procedures without source, one of %d with: begins at %q, want %q", c.bare, c.weight, got, c.want)
		}
	}
}
