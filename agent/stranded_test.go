package agent

import (
	"bufio"
	"bytes"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// The threads that wait for what nothing else can reach are those that the program has made so, with what they wait for.
func TestStranded(t *testing.T) {
	testprog.NeedRoot(t)
	for _, o := range []testprog.Options{{}, {Threaded: true}, {Release: "9.6.6"}, {Threaded: true, Release: "9.10.3"}} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			cmd := exec.Command(testprog.Build(t, "stranded", o))
			want := map[string]string{
				"alone": "0 true", "left": "0 true", "right": "0 true", "evaluator": "0 true", "deaf": "0 true",
				"forcer": "1 true", "thrower": "2 true", "transaction": "3 true",
			}
			if !o.Threaded { // with threads, one that is idle is collected
				cmd.Args = append(cmd.Args, "loose")
				want["loose"] = "0 false"
			}
			_, out := testprog.Start(t, cmd)
			t.Cleanup(func() {
				_ = cmd.Process.Kill()
				_ = cmd.Wait()
			})
			labels := map[uint64]string{}
			for lines := bufio.NewScanner(out); ; {
				if !lines.Scan() {
					t.Fatal("it has ended: ", lines.Err())
				}
				if lines.Text() == "ready" {
					break
				}
				var id uint64
				var label string
				if _, err := fmt.Sscanf(lines.Text(), "thread %d %s", &id, &label); err != nil {
					t.Fatalf("it says %q: %v", lines.Text(), err)
				}
				labels[id] = label
			}
			sum, _, _ := graphOf(t, cmd.Process.Pid, 0)
			if !sum.Graph.StuckKnown || sum.Graph.Stuck != uint64(len(want)) {
				t.Errorf("the graph is %+v", sum.Graph)
			}
			log, err := os.ReadFile(sum.Log)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]string{}
			for r := eventlog.NewReader(bytes.NewReader(log)); r.Next(); {
				if e, is := r.Record().Event.(*eventlog.HeapStuck); is {
					got[labels[e.TSO]] = fmt.Sprint(e.Kind, " ", e.Held)
					if e.Label != "" && !strings.HasPrefix(e.Label, labels[e.TSO]) {
						t.Errorf("thread %d is called %q, and calls itself %q", e.TSO, e.Label, labels[e.TSO])
					}
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("threads that nothing can wake: %v; they are %v", got, want)
			}
		})
	}
}
