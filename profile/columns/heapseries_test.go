package columns

import (
	"testing"

	"ccagent/eventlog"
	"ccagent/profile/logtest"
)

// A series that goes on in another log is one series in the log that both were merged into. What a run-time system begins anew is not.
func TestSeriesOverPieces(t *testing.T) {
	for name, c := range map[string]struct {
		accounts         bool
		period           uint64
		series, censuses int
	}{"pieces": {true, 1e9, 1, 2}, "another period": {true, 2e9, 2, 1}, "the run-time system's": {false, 1e9, 2, 1}} {
		l := logtest.New()
		for i, period := range []uint64{1e9, c.period} {
			at := uint64(i+1) * 1e9
			l.Write(at, &eventlog.HeapProfBegin{PeriodNs: period, Breakdown: eventlog.BreakdownClosureType})
			l.Write(at, &eventlog.HeapSampleBegin{Era: uint64(i + 1)})
			l.Write(at, &eventlog.HeapSampleString{Bytes: 10, Label: "Node"})
			l.Write(at, &eventlog.HeapSampleEnd{Era: uint64(i + 1)})
			if c.accounts {
				l.Write(at, &eventlog.HeapSeries{PID: 1, PeriodNs: period, Collections: uint64(i + 1), Taken: uint64(i + 1), Missed: make([]uint64, eventlog.HeapMisses)})
			}
		}
		all := loaded(t, l.End()).HeapProfiles
		if len(all) != c.series || len(all[0].Censuses) != c.censuses {
			t.Errorf("%s: %d series, the first with %d censuses", name, len(all), len(all[0].Censuses))
		}
	}
}
