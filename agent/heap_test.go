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

// The log of a census is one heap profile, and nothing that the program's byte arrays, strings and
// regions hold is in there. A program that makes no collection is counted as it is.
// The program runs on to its own end.
func TestHeap(t *testing.T) {
	testprog.NeedRoot(t)
	const secret = "correcthorsebattery"
	cmd := exec.Command(testprog.Build(t, "retain", testprog.Options{Threaded: true}), "4000", "100", "rest", secret, "+RTS", "-I0") // no collection when it is idle
	in, out := testprog.Start(t, cmd)
	defer cmd.Process.Kill()
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "at rest\n" {
		t.Fatalf("it says %q, %v", line, err)
	}
	path := filepath.Join(t.TempDir(), "heap.eventlog")
	o := HeapOptions{Options: Options{PID: cmd.Process.Pid, Output: path, NoArgs: true, Warn: func(string) {}}, Wait: time.Millisecond}
	if sum, err := Heap(t.Context(), o); err != nil || !sum.AtRest {
		t.Errorf("of a process that collects nothing: %+v, %v", sum, err)
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	o.Wait, o.Output = time.Minute, path+".2"
	sum, err := Heap(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.ReadFile(o.Output)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(log, []byte(secret[:16])) || bytes.Contains(log, []byte(secret[:8])) {
		t.Error("the log has what the program keeps secret")
	}
	bands := map[string]uint64{}
	for r := eventlog.NewReader(bytes.NewReader(log)); r.Next(); {
		if e, ok := r.Record().Event.(*eventlog.HeapSampleString); ok {
			bands[e.Label] += e.Bytes
		}
	}
	// What has a fixed number of closures in the program, by arithmetic: a node of a map has six
	// words, a region is at least a block, 20 nodes of an unevaluated tree are none.
	if n := bands["containers-0.6.4.1:Data.Map.Internal.Bin"]; n < 4000*6*8 || len(bands) != sum.Bands {
		t.Errorf("%d bytes of a map's nodes in %d bands, want %d of 4000 nodes or more", n, len(bands), 4000*6*8)
	}
	if bands["COMPACT_NFDATA"] == 0 || bands["TSO"] < 25*15*8 || bands["STACK"] == 0 || bands["WEAK"] < 80*5*8 {
		t.Errorf("regions have %d bytes, threads %d, stacks %d, weak pointers %d", bands["COMPACT_NFDATA"], bands["TSO"], bands["STACK"], bands["WEAK"])
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("the program ended with %v", err)
	}
}
