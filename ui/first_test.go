package ui

import (
	"bytes"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
)

// Where the first line is about code without source, the viewer begins there, with what explains it beside, and not at the
// hottest line of source.
func TestBeginsAtWhatTheFirstLineIsAbout(t *testing.T) {
	for collected, want := range map[uint64]string{45: "read:1", 60: "(GC)"} {
		l := logtest.New()
		read := l.Binding("main", "Main", "read", 0)
		source := l.Stack(l.Block(read, l.Span(l.File("Main.hs", "read = 2\n"), 1, 1, 1, 9, read)))
		collector := l.Stack(l.Code(l.Function("evacuate1", eventlog.CategoryGC), eventlog.QualityExact, eventlog.CategoryGC))
		for i := range uint64(100) {
			node := source
			if i < collected {
				node = collector
			}
			l.Sample(i, 1e6, node)
		}
		p, err := profile.Load(bytes.NewReader(l.End()))
		if err != nil {
			t.Fatal(err)
		}
		s := start(t, p, 120, 40, Options{ASCII: true})
		if at := s.line("|> "); !strings.Contains(at, want) {
			t.Errorf("%s\nbegins at %q, not at %s", s.screen(), at, want)
		}
	}
}
