package e2e

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// A program whose heap, threads, stacks and capabilities are not what it says of them (circles, counts without bounds, addresses of nothing): a census
// of it, also with pointers, and a list of its threads end, with a log that can be read or a reason. It is neither stopped nor traced
// afterwards, and runs on.
func TestHeapOfALyingProgram(t *testing.T) {
	testprog.NeedRoot(t)
	liar := testprog.Build(t, "pretends", testprog.Options{})
	for _, mode := range []string{"structures", "stacks", "capabilities", "counters"} {
		t.Run(mode, func(t *testing.T) {
			target := exec.Command(liar, mode, "+RTS", "-V0")
			_, out := testprog.Start(t, target)
			t.Cleanup(func() { target.Process.Kill(); target.Wait() })
			if _, err := out.Read(make([]byte, 1)); err != nil {
				t.Fatal(err)
			}
			pid := target.Process.Pid
			for _, args := range [][]string{{"heap"}, {"heap", "--max-pause", "0"}, {"heap", "--graph"}, {"threads"}} {
				log := filepath.Join(t.TempDir(), "lies.eventlog")
				asked := append([]string{args[0], "-o", log}, args[1:]...)
				if args[0] == "heap" {
					asked = append(asked, "--wait", "100ms")
				}
				r := run(t, command(t, ccagent, append(asked, pidOf(target))...))
				t.Logf("%v: status %d, %s", args, r.status, r.stderr)
				switch {
				case r.status == 0:
					if shown := run(t, command(t, ccview, args[0], log)); shown.status != 0 {
						t.Errorf("%v: its log is not readable: %s", args, shown.stderr)
					}
				case r.status != 125 || r.stderr == "" || strings.Contains(r.stderr, "goroutine"):
					t.Errorf("%v ends with status %d and says %q", args, r.status, r.stderr)
				}
				if s := stateOf(t, pid); !strings.Contains(s, "TracerPid:\t0") || strings.Contains(s, "stop") {
					t.Errorf("%v leaves it %s", args, s)
				}
			}
			before := cpuSeconds(t, pid)
			eventually(t, "it runs on", func() bool { return cpuSeconds(t, pid) > before })
		})
	}
}
