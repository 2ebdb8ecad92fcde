package agent

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// Leaks are found with the sizes that they have by construction: so many thunks of one kind, or a CAF that keeps a list.
func TestLeaks(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "leaks", testprog.Options{Threaded: true})
	for _, c := range []struct {
		kind  string
		count uint64 // closures of the band that has most
		bytes uint64 // that a band, or a CAF, retains at least
		caf   bool
	}{
		{"modify", 500_000, 500_000 * 24, false},
		{"caf", 300_001, 300_001 * 24, true},
	} {
		cmd := exec.Command(exe, c.kind)
		in, out := testprog.Start(t, cmd)
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		for lines, line, err := bufio.NewReader(out), "", error(nil); line != "ready\n"; {
			if line, err = lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(t.TempDir(), "heap.eventlog")
		o := HeapOptions{Options: Options{PID: cmd.Process.Pid, Output: path, Warn: func(string) {}}, Wait: time.Millisecond, Graph: true, GraphMemory: 1 << 30}
		if _, err := Heap(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		log, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var most, retained, byCAF uint64
		for r := eventlog.NewReader(bytes.NewReader(log)); r.Next(); {
			switch e := r.Record().Event.(type) {
			case *eventlog.HeapBand:
				if e.Count > most {
					most, retained = e.Count, e.Retained
				}
			case *eventlog.HeapRoot:
				if e.Kind == eventlog.HeapRootCAF {
					byCAF = max(byCAF, e.Retained)
				}
			}
		}
		if c.caf {
			retained = byCAF
		}
		if most < c.count || most > c.count+c.count/10 || retained < c.bytes || retained > 2*c.bytes {
			t.Errorf("%s: %d closures of one kind, %d bytes retained, want %d and %d", c.kind, most, retained, c.count, c.bytes)
		}
		if _, err := in.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("%s ended with %v", c.kind, err)
		}
	}
}
