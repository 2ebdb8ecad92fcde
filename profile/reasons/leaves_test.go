package reasons_test

import (
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
	"ccagent/profile/reasons"
)

// sentence is what is said of a log of one event whose samples have leaves without code.
func sentence(t *testing.T, event string, fill func(l *program, leaf func(addr uint64) logtest.Frame)) reasons.Sentence {
	t.Helper()
	l := newProgram()
	kind := eventlog.FrameTransaction
	unit := "attempts"
	if event == "blocked" {
		kind, unit = eventlog.FrameWait, "ns"
	}
	l.Write(0, &eventlog.EventDef{Index: 2, Requested: event, Granted: event, Unit: unit})
	fill(l, func(addr uint64) logtest.Frame { return logtest.Frame{Kind: kind, Addr: addr} })
	p := l.selection(t).Profile
	at, ok := p.EventNamed(event)
	if !ok {
		t.Fatalf("the log has no event %s", event)
	}
	return reasons.SentenceOf(p.Select(profile.Filter{Event: at + 1}))
}

// Of waits the sentence says what is waited for, and in which function, not in the one that all have in common.
func TestSentenceOfWaits(t *testing.T) {
	said := sentence(t, "blocked", func(l *program, wait func(uint64) logtest.Frame) {
		l.run(2, 70, ms, 0, l.build, l.read, wait(uint64(eventlog.StateMVar)))
		l.run(2, 30, ms, 0, l.build, wait(uint64(eventlog.StateDelay)))
	})
	if want := "70.0% of the time in which threads wait is spent waiting for an MVar to be filled or emptied, 70.0% in Main.read"; said.Text != want {
		t.Errorf("%q, want %q", said.Text, want)
	}
	if want := "; 30.0% for threadDelay to end"; said.More != want || said.Element != "(MVar)" {
		t.Errorf("%q of %q, want %q", said.More, said.Element, want)
	}
}

// Of transactions it says how much was thrown away, why, and where.
func TestSentenceOfTransactions(t *testing.T) {
	said := sentence(t, "stm", func(l *program, end func(uint64) logtest.Frame) {
		l.run(2, 60, 1, 0, l.build, end(uint64(eventlog.TransactionCommitted)))
		l.run(2, 30, 1, 0, l.read, end(uint64(eventlog.TransactionFailed)))
		l.run(2, 10, 1, 0, l.build, end(uint64(eventlog.TransactionRetried)))
	})
	if want := "40.0% of the attempts to run transactions were thrown away: 30.0% failed validation, 10.0% retried"; said.Text != want {
		t.Errorf("%q, want %q", said.Text, want)
	}
	if want := "; what failed validation is in Main.read"; said.More != want {
		t.Errorf("%q, want %q", said.More, want)
	}
	for event, want := range map[string]string{
		"stm":          "40.0% of the attempts to run transactions were thrown away: they failed validation",
		columns.STMCPU: "40.0% of the CPU time in transactions was thrown away: in attempts that failed validation",
	} {
		said = sentence(t, event, func(l *program, end func(uint64) logtest.Frame) {
			l.run(2, 60, 1, 0, l.build, end(uint64(eventlog.TransactionCommitted)))
			l.run(2, 40, 1, 0, l.read, end(uint64(eventlog.TransactionFailed)))
		})
		if said.Text != want {
			t.Errorf("%s: %q, want %q", event, said.Text, want)
		}
	}
	said = sentence(t, "stm", func(l *program, end func(uint64) logtest.Frame) {
		l.run(2, 60, 1, 0, l.build, end(uint64(eventlog.TransactionCommitted)))
	})
	if want := "All of the attempts to run transactions seen have committed"; said.Text != want {
		t.Errorf("%q, want %q", said.Text, want)
	}
}
