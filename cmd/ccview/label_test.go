package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile/logtest"
)

// --thread takes labels beside ids; a label stands for all threads that have it.
func TestThreadsByLabel(t *testing.T) {
	l := logtest.New()
	l.Write(0, &eventlog.EventDef{Requested: "cycles", Granted: "cycles", Unit: "cycles"})
	leaf := l.Stack(l.Block(l.Binding("main", "Main", "work", 0)))
	for tso, label := range []string{"", "a worker", "a worker", "other"} {
		if label != "" {
			l.Write(1, &eventlog.ThreadLabel{Thread: uint32(tso), Label: label})
			l.SampleOf(uint64(10+tso), eventlog.Sample{Node: leaf, Weight: 1 << tso, TSO: uint64(tso), PID: 1})
		}
	}
	path := filepath.Join(t.TempDir(), "log.eventlog")
	if err := os.WriteFile(path, l.End(), 0o600); err != nil {
		t.Fatal(err)
	}
	for threads, want := range map[string]uint64{"a worker": 2 + 4, "other": 8, "1,other": 2 + 8, "1,a worker": 2 + 4} {
		var h struct{ Total uint64 }
		r := ccview(t, "hot", "--format", "json", "--thread", threads, path)
		if err := json.Unmarshal([]byte(r.stdout), &h); err != nil {
			t.Fatalf("%v\n%s", err, r.stderr)
		}
		if h.Total != want {
			t.Errorf("--thread %q: %d, want %d", threads, h.Total, want)
		}
	}
	if r := ccview(t, "hot", "--thread", "nobody", path); r.status != 2 || !strings.Contains(r.stderr, "a worker, other") {
		t.Errorf("a label that no thread has: exit status %d, %s", r.status, r.stderr)
	}
}
