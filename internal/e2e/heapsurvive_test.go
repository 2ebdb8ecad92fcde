package e2e

import (
	"bufio"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"ccagent/agent/procfs"
	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// A program that forks all the time is followed by a series of censuses, and the agent is killed while it waits for one or
// takes one: nothing of the program is left stopped or traced, and it and its children end as they would.
func TestAgentKilledInASeries(t *testing.T) {
	testprog.NeedRoot(t)
	for _, o := range []testprog.Options{{}, {Threaded: true}} {
		t.Run(fmt.Sprintf("threaded=%v", o.Threaded), func(t *testing.T) {
			target := command(t, testprog.Build(t, "restless", o), "fork")
			in, err := target.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			out, to := io.Pipe()
			target.Stdout = to
			wait := background(t, target)
			lines := bufio.NewReader(out)
			if line, err := lines.ReadString('\n'); line != "ready\n" {
				t.Fatalf("it says %q, %v", line, err)
			}
			go io.Copy(io.Discard, lines)
			for range 2 {
				log := filepath.Join(t.TempDir(), "series.eventlog")
				agent := command(t, ccagent, "attach", "-e", "heap=1ms", "--max-overhead", "0", "-o", log, pidOf(target))
				ended := background(t, agent)
				eventually(t, "there are censuses", func() bool {
					return has(log, func(e eventlog.Event) bool { _, is := e.(*eventlog.HeapSampleEnd); return is })
				})
				if err := agent.Process.Kill(); err != nil {
					t.Fatal(err)
				}
				ended()
				threads, err := procfs.Threads(target.Process.Pid)
				if err != nil {
					t.Fatal(err)
				}
				for _, thread := range threads {
					if s, err := procfs.ReadStatus(thread.TID); err == nil && (s.Tracer != 0 || thread.State == 't') {
						t.Errorf("thread %d is in state %c, traced by %d", thread.TID, thread.State, s.Tracer)
					}
				}
			}
			if _, err := in.Write([]byte("\n")); err != nil {
				t.Fatal(err)
			}
			if r := wait(); r.status != 7 {
				t.Errorf("it ended with status %d: %s", r.status, r.stderr)
			}
		})
	}
}

// A series without a census says why, also where it is to be quiet, and fails.
func TestSeriesWithoutCensus(t *testing.T) {
	testprog.NeedRoot(t)
	target := command(t, testprog.Build(t, "footprint", testprog.Options{}), "bare", "1", "rest")
	out, to := io.Pipe()
	target.Stdout = to
	if _, err := target.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	background(t, target)
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); line != "ready\n" {
		t.Fatalf("it says %q, %v", line, err)
	}
	go io.Copy(io.Discard, lines)
	r := run(t, command(t, ccagent, "attach", "--quiet", "-e", "heap", "--duration", "100ms", "-o", filepath.Join(t.TempDir(), "series.eventlog"), pidOf(target)))
	if r.status != 125 {
		t.Errorf("status %d", r.status)
	}
	wantLine(t, r.stderr, "no census", "made no collection of all generations")
}
