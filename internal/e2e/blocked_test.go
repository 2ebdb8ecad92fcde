package e2e

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// Threads wait for as long as the program measures, each for what it does.
func TestBlocked(t *testing.T) {
	testprog.NeedRoot(t)
	for _, o := range []testprog.Options{
		{Threaded: true}, {Release: "9.6.6", Threaded: true}, {Release: "9.10.3", Threaded: true}, {},
	} {
		t.Run(fmt.Sprintf("GHC %s threaded %v", o.Release, o.Threaded), func(t *testing.T) {
			log, r := record(t, []string{"-e", "blocked"}, testprog.Build(t, "blocked", o), "40")
			said := map[string]float64{} // µs
			words := strings.Fields(r.stdout)
			for i := 0; i+1 < len(words); i += 2 {
				us, err := strconv.ParseFloat(words[i+1], 64)
				if err != nil {
					t.Fatalf("the program says %q", r.stdout)
				}
				said[words[i]] = us
			}
			var h struct {
				Unit  string
				Total float64
				Rows  []hotRow
			}
			view(t, &h, "hot", "--event", "blocked", log)
			if h.Unit != "ns" {
				t.Errorf("the unit is %q", h.Unit)
			}
			share, inclusive := map[string]float64{}, map[string]float64{}
			for _, row := range h.Rows {
				share[row.Element], inclusive[row.Element] = row.Share*h.Total/1e3, row.Inclusive*h.Total/1e3
			}
			t.Logf("the program says %v, the log %v\n%s", said, share, r.stderr)
			// Waits take up almost all of each thread's time, so that the error is of the first and the
			// last look, each for up to a few stretches of 50 ms.
			near := func(element string, got, want float64) {
				t.Helper()
				if got < 0.6*want || got > 1.4*want {
					t.Errorf("%s has %.0f µs, the program says %.0f", element, got, want)
				}
			}
			near("(STM)", share["(STM)"], said["awaitChange"])
			near("(black hole)", share["(black hole)"], said["demand"])
			near("Main.demand", inclusive["Main.demand"], said["demand"])
			// Who waits for a thunk has what evaluates it on its stack. That a value comes between two looks at it is rare.
			var holes struct{ Rows []hotRow }
			view(t, &holes, "hot", "--event", "blocked", "--focus", `^\(black hole\)$`, "--top", "0", log)
			evaluated := map[string]float64{}
			for _, row := range holes.Rows {
				evaluated[row.Element] = row.Inclusive
			}
			if evaluated["Main.demand"] < 0.9 || evaluated["Main.slow"] < 0.9 {
				t.Errorf("of the waits for black holes %.2f are of Main.demand, %.2f for Main.slow", evaluated["Main.demand"], evaluated["Main.slow"])
			}
			if !o.Threaded {
				// A foreign call keeps all other threads from running: those that it wakes wait for their turn.
				near("Main.pause", inclusive["Main.pause"], said["pause"]*4/3) // who serves them pauses as often as one of the three
				if share["(delay)"] < inclusive["Main.pause"] {
					t.Errorf("(delay) has %.0f µs, of which pauses have %.0f", share["(delay)"], inclusive["Main.pause"])
				}
				return
			}
			near("(foreign call)", share["(foreign call)"], said["callOut"])
			near("Main.callOut", inclusive["Main.callOut"], said["callOut"])
			// And the main thread, who serves the others, and who evaluates what they demand.
			if got, least := share["(MVar)"], said["pause"]+said["receive"]; got < 0.6*least || got > 1.4*(least+said["pause"]) {
				t.Errorf("(MVar) has %.0f µs, and at least %.0f are of pause and receive", got, least)
			}
		})
	}
}
