package sink

import (
	"slices"
	"testing"

	"ccagent/eventlog"
)

// A warning about one process stands in that process's log alone, and there once. The user reads it once, also if it is true of
// several processes.
func TestWarnOf(t *testing.T) {
	one, _ := testSink(t, 0)
	two, _ := testSink(t, 0)
	three, _ := testSink(t, 0)
	var told []string
	set := NewSet(func(line string) { told = append(told, line) }, one, two, three)
	set.WarnOf(one, "no symbols", "no symbols; see ps")
	set.WarnOf(one, "no symbols", "no symbols; see ps")
	set.WarnOf(two, "no symbols", "no symbols; see ps")
	set.Warn("for all")
	if want := []string{"no symbols; see ps", "for all"}; !slices.Equal(told, want) {
		t.Errorf("the user was told %q, want %q", told, want)
	}
	for log, want := range map[*Sink][]string{one: {"no symbols", "for all"}, two: {"no symbols", "for all"}, three: {"for all"}} {
		var got []string
		each(t, log, func(e eventlog.Event) {
			if w, ok := e.(*eventlog.Warning); ok {
				got = append(got, w.Text)
			}
		})
		if !slices.Equal(got, want) {
			t.Errorf("a log has %q, want %q", got, want)
		}
	}
}
