package e2e

import (
	"fmt"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// The CPU time of evaluating what another thread evaluates too is what the program itself counts, in pieces of work.
func TestDuplicatedEvaluation(t *testing.T) {
	testprog.NeedRoot(t)
	eager := testprog.Options{Threaded: true, Flags: []string{"-feager-blackholing"}}
	for _, c := range []struct {
		o    testprog.Options
		args []string
	}{
		{testprog.Options{Threaded: true}, []string{"together", "60", "1000"}},
		{testprog.Options{Threaded: true}, []string{"apart", "100", "1000"}},
		{testprog.Options{Threaded: true}, []string{"allocating", "400", "1000"}},
		{testprog.Options{Threaded: true}, []string{"private", "20", "1000"}},
		{eager, []string{"together", "60", "1000"}},
		{testprog.Options{Threaded: true, Prof: true}, []string{"together", "60", "1000"}},
		{testprog.Options{Threaded: true, Dynamic: true}, []string{"together", "60", "1000"}},
		{testprog.Options{Release: "9.6.6", Threaded: true}, []string{"together", "60", "1000"}},
		{testprog.Options{Release: "9.10.3", Threaded: true}, []string{"together", "60", "1000"}},
	} {
		name := strings.TrimSpace(fmt.Sprintf("%s %s", c.o.Release, c.args[0]))
		for what, is := range map[string]bool{"eager": len(c.o.Flags) > 0, "prof": c.o.Prof, "dynamic": c.o.Dynamic} {
			if is {
				name += " " + what
			}
		}
		t.Run(name, func(t *testing.T) {
			exe := testprog.Build(t, "twice", c.o)
			log, r := record(t, []string{"-e", "duplicated", "-F", "997", "--max-overhead", "0"}, exe, append(c.args, "+RTS", "-N2")...)
			var again, all float64
			if _, err := fmt.Sscanf(r.stdout, "%f of %f pieces were done again", &again, &all); err != nil {
				t.Fatalf("the program says %q", r.stdout)
			}
			var info struct {
				Duplicated *figure `json:"duplicated_evaluation"`
			}
			view(t, &info, "info", log)
			d := info.Duplicated
			if d == nil {
				t.Fatalf("the log has no figure\n%s", r.stderr)
			}
			t.Logf("the program says %.3f, the log %+v", again/all, *d)
			// Besides what sampling leaves out: which of two is ahead is known to a sample, of ten or more in an evaluation, and a
			// few hundredths of the CPU time are no pieces.
			const systematic = 0.06
			if truth := again / all; truth < d.Low-systematic || truth > d.High+systematic {
				t.Errorf("%+v of the CPU time, the program says %.3f", *d, truth)
			}
			// A piece that the second thread has begun when it finds out is not counted: one of the thousand of an evaluation.
			if again == 0 && d.Low > 1.0/1000 {
				t.Errorf("%+v of the CPU time, and nothing was done again", *d)
			}
			var h struct{ Rows []hotRow }
			view(t, &h, "hot", "--event", "duplicated", log)
			if again/all > 0.3 && (len(h.Rows) == 0 || h.Rows[0].Element != "Main.spend" || h.Rows[0].Share < 0.8) {
				t.Errorf("rows: %+v", h.Rows)
			}
		})
	}
}

// A stripped program is refused with the reason, and what else was asked for goes on.
func TestDuplicatedEvaluationIsRefused(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "twice", testprog.Options{Threaded: true, Strip: true})
	_, r := record(t, []string{"-e", "cpu-clock,duplicated"}, exe, "private", "2", "1000", "+RTS", "-N2")
	wantLine(t, r.stderr, "event duplicated is not available", "symbol table", "go on")
}
