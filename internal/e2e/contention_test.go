package e2e

import (
	"slices"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// What keeps threads waiting in the documentation's examples is found: a deadlock, a convoy, and a queue for a value that one thread
// computes.
func TestContention(t *testing.T) {
	testprog.NeedRoot(t)
	for _, release := range []string{"", "9.10.3"} {
		exe := testprog.Build(t, "contention", testprog.Options{Release: release, Threaded: true})
		for _, mode := range []string{"deadlock", "convoy", "lazy"} {
			t.Run(release+" "+mode, func(t *testing.T) {
				cmd := command(t, exe, mode, "+RTS", "-N2", "-qg") // a parallel collection beside other load takes most of the time
				standsStill(t, cmd, func(line string) { t.Fatalf("the program says %q", line) })
				d := dumpThreads(t, cmd.Process.Pid)
				// Who computes runs: its stack is not known where it collected whenever it was looked at.
				for tries := 0; mode == "lazy" && tries < 20 && len(d.Queues) > 0 && d.Queues[0].Evaluates == nil; tries++ {
					d = dumpThreads(t, cmd.Process.Pid)
				}
				if mode == "deadlock" {
					if len(d.Deadlocks) != 1 || len(d.Deadlocks[0]) != 2 {
						t.Fatalf("deadlocks: %v", d.Deadlocks)
					}
					for _, th := range d.Threads {
						in := slices.Contains(d.Deadlocks[0], th.ID)
						if at := len(th.Stack) > 0 && th.Stack[0].Name == "Main.transfer"; in != at {
							t.Errorf("thread %d is in the deadlock: %v; its stack is %v", th.ID, in, th.Stack)
						}
					}
					return
				}
				if len(d.Deadlocks) != 0 {
					t.Errorf("deadlocks: %v", d.Deadlocks)
				}
				if len(d.Queues) == 0 {
					t.Fatal("there is no queue")
				}
				q := d.Queues[0]
				if len(q.Waiting) != 6 || len(q.For) != 1 || !q.Convoy {
					t.Errorf("first queue: %+v", q)
				}
				switch {
				case mode == "convoy" && !strings.HasPrefix(q.Object, "MVar"):
					t.Errorf("they wait for %s", q.Object)
				case mode == "lazy" && (q.Evaluates == nil || q.Evaluates.Name != "Main.lazy" && q.Evaluates.Name != "Main.table"):
					t.Errorf("they wait for %s, which %+v computes", q.Object, q.Evaluates)
				}
			})
		}
	}
}
