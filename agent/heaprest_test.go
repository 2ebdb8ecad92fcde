package agent

import (
	"bufio"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// Nurseries that are too large to be followed while the program stands are followed when it runs on, and what they have is counted,
// also of those that were filled and given up for others. Their memory is theirs.
func TestLargeNurseriesAtRest(t *testing.T) {
	testprog.NeedRoot(t)
	for _, threaded := range []bool{false, true} {
		args := []string{"fresh", "100", "rest", "+RTS", "-A256m", "-RTS"}
		if threaded {
			args = append(args, "+RTS", "-I0", "-N2", "-RTS") // no collection when it is idle
		}
		cmd := exec.Command(testprog.Build(t, "footprint", testprog.Options{Threaded: threaded}), args...)
		in, out := testprog.Start(t, cmd)
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		lines := bufio.NewReader(out)
		for line, err := "", error(nil); line != "ready\n"; {
			if line, err = lines.ReadString('\n'); err != nil {
				t.Fatal(err)
			}
		}
		go io.Copy(io.Discard, lines)
		count := func(pause time.Duration) *HeapSummary {
			o := HeapOptions{Options: Options{PID: cmd.Process.Pid, Output: filepath.Join(t.TempDir(), "heap.eventlog"), Warn: func(string) {}}, Wait: time.Millisecond, MaxPause: pause}
			sum, err := Heap(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			log, err := os.ReadFile(sum.Log)
			if err != nil {
				t.Fatal(err)
			}
			parts := map[eventlog.FootprintKind]uint64{}
			for r := eventlog.NewReader(bytes.NewReader(log)); r.Next(); {
				if e, ok := r.Record().Event.(*eventlog.FootprintPart); ok {
					parts[e.Kind] += e.Bytes
				}
			}
			if parts[eventlog.FootprintNursery] < 150<<20 || parts[eventlog.FootprintRTS] > 10<<20 {
				t.Errorf("threaded=%v: of its memory nurseries are %d bytes, the run-time system's own %d", threaded, parts[eventlog.FootprintNursery], parts[eventlog.FootprintRTS])
			}
			return sum
		}
		all, some := count(0), count(time.Nanosecond)
		// More than is followed however long that takes, and the same, but for what it allocates in between.
		if !some.AtRest || all.Bytes < 70<<20 || some.Bytes+8192 < all.Bytes || some.Bytes > all.Bytes+8192 {
			t.Errorf("threaded=%v: at rest: %v; %d bytes, and %d when it stands for as long as it takes", threaded, some.AtRest, some.Bytes, all.Bytes)
		}
		t.Logf("%v and %v", all.Stops, some.Stops)
		if _, err := in.Write([]byte("\n")); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Wait(); err != nil {
			t.Errorf("the program ended with %v", err)
		}
	}
}
