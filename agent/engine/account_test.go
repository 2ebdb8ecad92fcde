package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/agent/invoker"
	"ccagent/agent/sink"
	"ccagent/eventlog"
	"ccagent/perf"
)

// Changes of what processes run that the kernel has dropped are in the log, as often as they
// were, and the user is warned once.
func TestSideBandLossIsTold(t *testing.T) {
	who, err := invoker.Find("")
	if err != nil {
		t.Fatal(err)
	}
	var warned []string
	path := filepath.Join(t.TempDir(), "log.eventlog")
	log := sink.New(sink.Config{Who: who})
	if err := log.Create(path, "", 0); err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	e := &Engine{sideBand: &perf.SideBand{}}
	e.config.Logs = sink.NewSet(func(line string) { warned = append(warned, line) }, log)
	for _, lost := range []uint64{0, 3, 3, 5} {
		e.sideBand.Lost = lost
		if err := e.accountSideBand(); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.Flush(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var reported uint64
	for r := eventlog.NewReader(f); r.Next(); {
		if l, ok := r.Record().Event.(*eventlog.Loss); ok && l.Reason == eventlog.LossSideBand {
			reported += l.Count
		}
	}
	if reported != 5 {
		t.Errorf("the log reports %d lost changes, want 5", reported)
	}
	if len(warned) != 1 || !strings.Contains(warned[0], "were lost") {
		t.Errorf("the warnings are %q", warned)
	}
}
