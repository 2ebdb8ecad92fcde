package e2e

import (
	"fmt"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// figure is an estimate in JSON.
type figure struct{ Value, Low, High float64 }

// stmInfo is what ccview info says of transactions.
type stmInfo struct {
	Exact                                   bool
	Started, Committed, Retried, Exceptions figure
	Failed                                  figure  `json:"failed_validation"`
	In                                      *figure `json:"cpu_in_transactions"`
	Of                                      *figure `json:"cpu_thrown_away_in_transactions"`
	All                                     *figure `json:"cpu_thrown_away"`
	Unknown                                 float64 `json:"end_unknown"`
}

// Attempts to run transactions are counted as the program counts them, and of their CPU time the part is thrown away that is
// by construction.
func TestTransactions(t *testing.T) {
	testprog.NeedRoot(t)
	for _, o := range []testprog.Options{
		{Threaded: true}, {Release: "9.6.6", Threaded: true}, {Release: "9.10.3", Threaded: true}, {},
	} {
		t.Run(fmt.Sprintf("GHC %s threaded %v", o.Release, o.Threaded), func(t *testing.T) {
			log, r := record(t, []string{"-e", "stm", "--max-overhead", "0"}, testprog.Build(t, "conflict", o), "200", "3", "100000")
			var audits, failed, transfers, exceptions float64
			if _, err := fmt.Sscanf(r.stdout, "audits %f failed %f transfers %f exceptions %f", &audits, &failed, &transfers, &exceptions); err != nil {
				t.Fatalf("the program says %q", r.stdout)
			}
			var info struct{ Transactions *stmInfo }
			view(t, &info, "info", log)
			s := info.Transactions
			if s == nil || s.Of == nil || s.All == nil || s.In == nil {
				t.Fatalf("the log says %+v\n%s", s, r.stderr)
			}
			t.Logf("the program says %s%+v %+v %+v %+v\n%s", r.stdout, *s, *s.In, *s.Of, *s.All, r.stderr)
			// Each audit is followed by a transaction that writes, and one that waits for that.
			if want := 3*audits + transfers; s.Committed.Value != want || s.Committed.High != want || !s.Exact {
				t.Errorf("%v have committed, the program says %.0f", s.Committed, want)
			}
			if s.Exceptions.Value != exceptions {
				t.Errorf("%v were left by an exception, the program says %.0f", s.Exceptions, exceptions)
			}
			// Those that wait may fail, or find what they wait for, at another OS thread's pace.
			if f := s.Failed.Value; f < failed || f > failed+audits {
				t.Errorf("%v have failed, the program says %.0f", f, failed)
			}
			if n := s.Retried.Value; n > 2*audits {
				t.Errorf("%v have retried, of %.0f that may wait", n, audits)
			}
			// 60 % by construction. What else the transactions do is less than a twentieth.
			if s.Of.Low > 0.62 || s.Of.High < 0.58 || s.Of.High-s.Of.Low > 0.3 {
				t.Errorf("of the CPU time inside of transactions %+v was thrown away, 60 %% by construction", *s.Of)
			}
			if s.In.Value < 0.7 || s.All.Low > s.Of.Value*s.In.Value || s.All.High < s.Of.Value*s.In.Value {
				t.Errorf("inside %+v, of that thrown away %+v, of all %+v", *s.In, *s.Of, *s.All)
			}
			var h struct {
				Unit string
				Rows []hotRow
			}
			view(t, &h, "hot", "--event", "stm-cpu", "--level", "binding", log)
			share := map[string]hotRow{}
			for _, row := range h.Rows {
				share[row.Element] = row
			}
			if row := share["(failed validation)"]; h.Unit != "ns" || row.Share < 0.5 || row.Share > 0.7 {
				t.Errorf("in %s, failed attempts have %.2f", h.Unit, row.Share)
			}
			if row := share["Main.runAudit"]; row.Inclusive < 0.9 {
				t.Errorf("Main.runAudit, which the CPU time of transactions is of, has %.2f", row.Inclusive)
			}
		})
	}
}

// Probes that would cost too much are in place for windows, and the intervals hold what the program counts.
func TestTransactionWindows(t *testing.T) {
	testprog.NeedRoot(t)
	log, r := record(t, []string{"-e", "stm"}, testprog.Build(t, "conflict", testprog.Options{Threaded: true}), "20000", "3", "300")
	var audits, failed, transfers, exceptions float64
	if _, err := fmt.Sscanf(r.stdout, "audits %f failed %f transfers %f exceptions %f", &audits, &failed, &transfers, &exceptions); err != nil {
		t.Fatalf("the program says %q", r.stdout)
	}
	var info struct{ Transactions *stmInfo }
	view(t, &info, "info", log)
	s := info.Transactions
	if s == nil {
		t.Fatal("the log says nothing of transactions")
	}
	t.Logf("the program says %s%+v\n%s", r.stdout, *s, r.stderr)
	if s.Exact {
		t.Error("250,000 attempts within 1 % of two seconds, and each was counted")
	}
	// All that begin are counted but for the last moment; of how they end, three times the interval: there are few windows.
	if all, want := s.Started.High, 3*audits+transfers+exceptions+failed; all < 0.9*want || all > 1.5*want {
		t.Errorf("at most %.0f attempts, the program says %.0f", all, want)
	}
	within := func(what string, f figure, want float64) {
		t.Helper()
		if low, high := 3*f.Low-2*f.Value, 3*f.High-2*f.Value; want < low || want > high {
			t.Errorf("%s: %+v, the program says %.0f", what, f, want)
		}
	}
	within("committed", s.Committed, 3*audits+transfers)
	within("exceptions", s.Exceptions, exceptions)
	within("failed", s.Failed, failed)
}

// The attempts of a server are as many as it counts itself, by windows and by samples.
func TestAttemptsAreThoseThatTheProgramCounts(t *testing.T) {
	testprog.NeedRoot(t)
	for _, o := range []testprog.Options{{Threaded: true}, {Release: "9.6.6", Threaded: true}} {
		t.Run("GHC "+o.Release, func(t *testing.T) {
			exe := testprog.Build(t, "attempts", o)
			run := func(budget string, requests string) (started, committed, undone float64, s *stmInfo, share map[string]float64, total float64) {
				log, r := record(t, []string{"-e", "stm", "--max-overhead", budget}, exe, requests, "20", "4", "+RTS", "-N2")
				var retried, failed float64
				if _, err := fmt.Sscanf(r.stdout, "started %f committed %f retried %f failed %f", &started, &committed, &retried, &failed); err != nil {
					t.Fatalf("the program says %q", r.stdout)
				}
				var info struct{ Transactions *stmInfo }
				view(t, &info, "info", log)
				var h struct {
					Total float64
					Rows  []hotRow
				}
				view(t, &h, "hot", "--event", "stm", "--level", "binding", log)
				share = map[string]float64{}
				for _, row := range h.Rows {
					share[row.Element] = row.Share
				}
				if info.Transactions == nil {
					t.Fatalf("the log says nothing of transactions\n%s", r.stderr)
				}
				t.Logf("%s%+v\nof %.0f by samples %v", r.stdout, *info.Transactions, h.Total, share)
				return started, committed, retried + failed, info.Transactions, share, h.Total
			}
			// One that is about to wait may find that what it has read has changed: it has failed then.
			started, committed, undone, s, _, _ := run("0", "100000")
			if !s.Exact || s.Started.Value != started || s.Committed.Value != committed || s.Failed.Value+s.Retried.Value != undone {
				t.Errorf("%v attempts, %v committed, %v failed, %v retried: all counted, and the program says %.0f, %.0f, and %.0f of the others",
					s.Started, s.Committed, s.Failed, s.Retried, started, committed, undone)
			}
			started, committed, _, s, share, total := run("1", "400000")
			if s.Exact {
				t.Fatal("half a million attempts within 1 % of the time, and each was counted")
			}
			// As in TestTransactionWindows: at least but for the last moment, and three times the interval.
			if s.Started.High < 0.9*started || s.Started.Low > 1.1*started {
				t.Errorf("%v attempts, the program says %.0f", s.Started, started)
			}
			if low, high := 3*s.Committed.Low-2*s.Committed.Value, 3*s.Committed.High-2*s.Committed.Value; committed < low || committed > high {
				t.Errorf("%v committed, the program says %.0f", s.Committed, committed)
			}
			if total > 1.2*started {
				t.Errorf("samples stand for %.0f attempts, the program says %.0f", total, started)
			}
			if share["(committed)"]+share["(retried)"]+share["(failed validation)"] < 0.98 {
				t.Errorf("by samples attempts end %v", share)
			}
		})
	}
}

// conflictsInfo is what ccview info says of what makes transactions fail.
type conflictsInfo struct {
	Samples int
	Known   figure
	Places  []struct {
		Name      string
		Place     int
		Share     figure
		Addresses []struct{ Address string }
		Writers   []struct {
			Name  string
			Share float64
		}
	}
}

// The program's transaction reads ten variables, and fails nine of ten times because another one has written the fourth. The
// log names that variable by the code that reads it and its place, and the code that writes it.
func TestConflicts(t *testing.T) {
	testprog.NeedRoot(t)
	for _, o := range []testprog.Options{{Threaded: true}, {Release: "9.10.3", Threaded: true}, {}} {
		t.Run(fmt.Sprintf("GHC %s threaded %v", o.Release, o.Threaded), func(t *testing.T) {
			log, r := record(t, []string{"-e", "stm", "--max-overhead", "20"}, testprog.Build(t, "hot", o), "10000", "2000")
			var info struct {
				Transactions *struct{ Conflicts *conflictsInfo }
			}
			view(t, &info, "info", log)
			if info.Transactions == nil || info.Transactions.Conflicts == nil || len(info.Transactions.Conflicts.Places) == 0 {
				t.Fatalf("no conflicts in the log\n%s", r.stderr)
			}
			c := info.Transactions.Conflicts
			t.Logf("%s%+v", r.stdout, *c)
			if c.Known.Value < 0.9 {
				t.Errorf("of %v of the attempts that failed it is known why", c.Known)
			}
			// By construction it is 90 %. An interval of 95 % may miss that, but hardly by as much again.
			first := c.Places[0]
			half := first.Share.High - first.Share.Low
			if first.Place != 4 || !strings.HasPrefix(first.Name, "Main.") || first.Share.Low-half > 0.9 || first.Share.High+half < 0.9 || first.Share.Value < 0.6 {
				t.Errorf("first is the %d. variable of %s with %+v", first.Place, first.Name, first.Share)
			}
			if len(first.Writers) == 0 || first.Writers[0].Name != "Main.runBump" || first.Writers[0].Share < 0.8 {
				t.Errorf("it is written by %+v", first.Writers)
			}
			for _, p := range c.Places {
				if p.Place == 4 {
					continue
				}
				if p.Share.Value > 0.3 {
					t.Errorf("the %d. variable of %s has %+v", p.Place, p.Name, p.Share)
				}
				// A collection may move another variable to where the fourth was, which its writer then seems to have written.
				if len(p.Writers) > 0 && p.Writers[0].Name == "Main.runBump" && p.Writers[0].Share > 0.8 {
					t.Errorf("the %d. variable of %s is written by %+v", p.Place, p.Name, p.Writers)
				}
			}
		})
	}
}
