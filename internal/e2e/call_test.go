package e2e

import (
	"fmt"
	"slices"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// Who waits for a foreign call is known without any sample in Haskell code, and without probes: of threads of the operating system that have
// made nothing but that call since the capture began, as far as the run-time system's variable is found.
func TestLongForeignCall(t *testing.T) {
	for _, o := range []testprog.Options{
		{}, {Threaded: true}, {Threaded: true, Strip: true}, {Dynamic: true}, {Dynamic: true, Threaded: true},
		{Threaded: true, Flags: []string{"-optl-static"}},
		{Release: "9.6.6"}, {Release: "9.6.6", Threaded: true}, {Release: "9.6.6", Dynamic: true, Threaded: true},
		{Release: "9.10.3"}, {Release: "9.10.3", Threaded: true}, {Release: "9.10.3", Dynamic: true, Threaded: true},
	} {
		t.Run(fmt.Sprintf("%s threaded=%v dynamic=%v strip=%v%v", o.Release, o.Threaded, o.Dynamic, o.Strip, o.Flags), func(t *testing.T) {
			exe := testprog.Build(t, "call", o)
			for _, mode := range []string{"main", "forked"} {
				log, _ := record(t, []string{"-e", "cpu-clock", "-F", "997", "--max-overhead", "0"}, exe, mode, "300000000")
				l := readLog(t, log)
				l.wantWhole(t)
				called, known := 0, 0
				for _, s := range l.samples {
					// Without symbols nothing tells the call from what the program begins and ends with.
					frames := l.frames(s)
					if !o.Strip && (len(frames) == 0 || l.source(frames[0]) != "c_long") {
						continue
					}
					called++
					inCaller := func(n eventlog.Node) bool { return o.Strip || l.source(n) == "caller" }
					if s.Flags&eventlog.SampleContext != 0 && s.Stop.Complete() && slices.ContainsFunc(frames, inCaller) {
						known++
					}
				}
				t.Logf("%s: of %d samples in the call %d have its caller", mode, called, known)
				if called < 100 {
					t.Errorf("%s: %d samples in the call, of %d", mode, called, len(l.samples))
				}
				if o.Strip {
					wantShareAbove(t, "samples with a caller", known, called, 0.9)
				} else if called != known {
					t.Errorf("%s: of %d samples in the call only %d have its caller", mode, called, known)
				}
			}
		})
	}
}
