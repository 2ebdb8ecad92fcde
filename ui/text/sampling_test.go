package text

import (
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// What was not watched of waits is said where there is such, with both bounds.
func TestNotWatched(t *testing.T) {
	e := &columns.Event{Sampling: eventlog.Sampling{UnwatchedLeastNs: 2e9, UnwatchedMostNs: 3e9}}
	if j := notWatchedOf(e); j == nil || j.Low != 2 || j.High != 3 {
		t.Errorf("%+v", j)
	}
	if lines := samplingOf(e); len(lines) != 1 || !strings.Contains(lines[0], "2.00 s to 3.00 s off the CPU") {
		t.Errorf("%q", lines)
	}
	if e := new(columns.Event); notWatchedOf(e) != nil || samplingOf(e) != nil {
		t.Error("said where all was watched")
	}
}
