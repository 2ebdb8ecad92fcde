package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/printable"
	"ccagent/profile/logtest"
)

// threadedLog writes a log of three threads, with the weights 2, 4 and 8.
func threadedLog(t *testing.T) string {
	t.Helper()
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
	return path
}

// --thread takes labels beside ids; a label stands for all threads that have it.
func TestThreadsByLabel(t *testing.T) {
	path := threadedLog(t)
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
	// Rows of threads are chosen in their table, and keep their shares of all.
	var table struct {
		Threads []struct {
			ID  uint64
			CPU struct{ Share float64 }
		}
	}
	r := ccview(t, "threads", "--format", "json", "--thread", "other,1", path)
	if err := json.Unmarshal([]byte(r.stdout), &table); err != nil {
		t.Fatalf("%v\n%s", err, r.stderr)
	}
	if n := table.Threads; len(n) != 2 || n[0].ID != 3 || n[1].ID != 1 || n[0].CPU.Share != 8./14 || n[1].CPU.Share != 2./14 {
		t.Errorf("the table of two threads: %+v", n)
	}
	if out := ccview(t, "threads", "--thread", "other", path).stdout; !strings.Contains(out, `3 "other"`) || strings.Contains(out, "a worker") {
		t.Errorf("the table of one thread:\n%s", out)
	}
}

// A thread that a log does not have is a wrong call in every command that can show one alone, and
// the others refuse to, or say that it changes nothing. The message says which threads there are.
func TestUnknownThread(t *testing.T) {
	path := threadedLog(t)
	calls := map[string][]string{
		"source": {path, "Main.work"}, "code": {path, "Main.work"}, "diff": {path, path}, "export": {"--to", "folded", path},
		"report": {"-o", filepath.Join(t.TempDir(), "page.html"), path}, "push": {"--to", "otlp=http://localhost:1", path},
	}
	discard := printable.NewWriter(io.Discard)
	check := func(name string, args []string, refuses bool) {
		for thread, want := range map[string]string{"nobody": "a worker, other", "77": "threads 1-3"} {
			if refuses {
				want = "no samples to choose"
			}
			if r := ccview(t, append(args, "--thread", thread)...); r.status != 2 || r.stdout != "" || !strings.Contains(r.stderr, want) {
				t.Errorf("%s --thread %s: exit status %d, %q; want 2 and %q", name, thread, r.status, r.stderr, want)
			}
		}
	}
	for _, c := range rootCommand(discard, discard).Commands() {
		f := c.Flags().Lookup("thread")
		if f == nil {
			continue
		}
		if c.Name() == "info" || c.Name() == "doctor" {
			if r := ccview(t, c.Name(), path, "--thread", "nobody"); r.status != 0 || !strings.Contains(r.stderr, "--thread changes nothing") {
				t.Errorf("%s: exit status %d, %q", c.Name(), r.status, r.stderr)
			}
			continue
		}
		args, ok := calls[c.Name()]
		if !ok {
			args = []string{path}
		}
		check(c.Name(), append([]string{c.Name()}, args...), f.Hidden)
	}
	check("ccview FILE", []string{path}, false)
	check("export --to eventlog", []string{"export", "--to", "eventlog", "-o", filepath.Join(t.TempDir(), "out"), path, path}, false)
}

// A dump's threads are chosen as a table's are; what concerns them stays.
func TestThreadOfDump(t *testing.T) {
	l := logtest.New()
	l.Write(1, &eventlog.ThreadDump{PID: 1})
	for tso := uint64(1); tso <= 4; tso++ {
		on := uint32(0)
		if tso < 3 {
			on = 1
		}
		l.Write(1, &eventlog.HaskellThread{TSO: tso, Label: []string{"", "a", "b", "a", ""}[tso], State: eventlog.StateMVar, On: on, Capability: eventlog.NoCapability, Stop: eventlog.StopRoot})
		l.Write(1, &eventlog.OSThread{TID: uint32(100 + tso), TSO: tso, Role: eventlog.OSThreadBound, State: 'S', Name: "os"})
	}
	l.Write(1, &eventlog.Blocker{ID: 1, Kind: eventlog.BlockerMVar, Address: 0x1000, Queue: []uint64{1, 2}})
	path := filepath.Join(t.TempDir(), "dump.eventlog")
	if err := os.WriteFile(path, l.End(), 0o600); err != nil {
		t.Fatal(err)
	}
	type dump struct {
		Threads []struct{ ID uint64 }
		Queues  []struct{ Waiting []uint64 }
		OS      []struct{ TID uint32 } `json:"os_threads"`
	}
	for thread, want := range map[string]string{
		"a": "{[{1} {3}] [{[1 2]}] [{101} {103}]}", "2": "{[{2}] [{[1 2]}] [{102}]}", "4": "{[{4}] [] [{104}]}",
	} {
		var d dump
		r := ccview(t, "threads", "--format", "json", "--thread", thread, path)
		if err := json.Unmarshal([]byte(r.stdout), &d); err != nil {
			t.Fatalf("%v\n%s", err, r.stderr)
		}
		if got := fmt.Sprint(d); got != want {
			t.Errorf("--thread %s: %s, want %s", thread, got, want)
		}
	}
	if out := ccview(t, "threads", "--thread", "b", path).stdout; !strings.Contains(out, `thread 2 "b"`) || strings.Contains(out, "103") || strings.Contains(out, "thread 4") {
		t.Errorf("a dump's thread:\n%s", out)
	}
	if r := ccview(t, "threads", "--thread", "5", path); r.status != 2 || !strings.Contains(r.stderr, "threads 1-4") {
		t.Errorf("a thread that a dump does not have: exit status %d, %s", r.status, r.stderr)
	}
}

// A thread may be in one of several logs that are merged.
func TestThreadOfSome(t *testing.T) {
	a := threadedLog(t)
	b := filepath.Join(t.TempDir(), "b.eventlog")
	l := logtest.New()
	l.Write(0, &eventlog.EventDef{Requested: "cycles", Granted: "cycles", Unit: "cycles"})
	l.SampleOf(20, eventlog.Sample{Node: l.Stack(l.Block(l.Binding("main", "Main", "work", 0))), Weight: 16, TSO: 9, PID: 1})
	if err := os.WriteFile(b, l.End(), 0o600); err != nil {
		t.Fatal(err)
	}
	out := filepath.Join(t.TempDir(), "out.eventlog")
	if r := ccview(t, "export", "--to", "eventlog", "-o", out, "--thread", "9,other", a, b); r.status != 0 {
		t.Fatalf("merge of two threads: %s", r.stderr)
	}
	var h struct{ Total uint64 }
	if err := json.Unmarshal([]byte(ccview(t, "hot", "--format", "json", out).stdout), &h); err != nil || h.Total != 8+16 {
		t.Errorf("merged samples of two threads: %d, want %d (%v)", h.Total, 8+16, err)
	}
}
