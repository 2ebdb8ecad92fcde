package conflicts

import (
	"bytes"
	"math"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
)

func load(t *testing.T, log []byte) *profile.Profile {
	t.Helper()
	p, err := profile.Load(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Attempts are summed up by code, place and address with their weights; writers come from attempts that committed and wrote
// the same addresses.
func TestOf(t *testing.T) {
	l := logtest.New()
	node := l.Stack(l.Unknown())
	attempt := func(end eventlog.TransactionEnd, weight uint64, variables ...eventlog.TransactionVariable) {
		l.Write(3, &eventlog.TransactionVariables{PID: 1, End: end, Attempts: weight, Node: node, Variables: variables})
	}
	attempt(eventlog.TransactionFailed, 6, eventlog.TransactionVariable{Address: 0x10, Place: 3})
	attempt(eventlog.TransactionFailed, 2, eventlog.TransactionVariable{Address: 0x20, Place: 3}, eventlog.TransactionVariable{Address: 0x30, Place: 0})
	attempt(eventlog.TransactionFailed, 2)
	attempt(eventlog.TransactionCommitted, 5, eventlog.TransactionVariable{Address: 0x10})
	attempt(eventlog.TransactionCommitted, 5, eventlog.TransactionVariable{Address: 0x40})
	c := Of(load(t, l.End()))
	if c == nil || c.Samples != 3 || c.Failed != 10 || c.Known.Value != 0.8 || len(c.Places) != 2 || len(c.Variables) != 3 {
		t.Fatalf("%+v", c)
	}
	first, second := c.Places[0], c.Places[1]
	if first.Place != 4 || first.Share.Value != 0.8 || len(first.Addresses) != 2 || first.Addresses[0].Address != 0x10 ||
		first.Addresses[0].Share.Value != 0.6 || len(first.Writers) != 1 || first.Writers[0].Share != 1 {
		t.Errorf("%+v", first)
	}
	if second.Place != 1 || second.Share.Value != 0.2 || len(second.Writers) != 0 {
		t.Errorf("%+v", second)
	}
	for _, s := range []Share{c.Known, first.Share, second.Share} {
		// Three attempts of different weights say little.
		if s.Low > s.Value || s.High < s.Value || s.High-s.Low < 0.5 || math.IsNaN(s.Low+s.High) {
			t.Errorf("%+v", s)
		}
	}
	l = logtest.New()
	l.Write(3, &eventlog.TransactionVariables{End: eventlog.TransactionCommitted, Attempts: 1})
	if c := Of(load(t, l.End())); c != nil {
		t.Errorf("of no failed attempt: %+v", c)
	}
}
