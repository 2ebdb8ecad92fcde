package timeline

import (
	"bytes"
	"fmt"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/activity"
	"ccagent/profile/logtest"
)

// damaged is a log of 100 samples, one a millisecond, of which the bytes of those from 40 ms to 60 ms
// are gone. Threads are watched from 5 ms on, and run on capability 0 in the first half of each
// millisecond; collections are watched in the middle 10 ms of what is left.
func damaged(t *testing.T) *profile.Profile {
	t.Helper()
	l := logtest.New()
	b := l.Binding("main", "Main", "main", 0)
	stack := l.Stack(l.Block(b))
	l.Write(5e6, &eventlog.RTSWatch{Group: "threads", Watched: true})
	l.Write(5e6, &eventlog.RTSWatch{Group: "gc", Watched: true})
	var from, to int
	for ms := range uint64(100) {
		switch ms {
		case 40:
			from = l.Len()
		case 60:
			to = l.Len()
		case 70:
			l.Write(70e6, &eventlog.RTSWatch{Group: "gc", Watched: true}) // it was out since some time in the gap
		}
		l.WriteOn(ms*1e6, 0, &eventlog.RunThread{Thread: 1})
		l.WriteOn(ms*1e6+5e5, 0, &eventlog.StopThread{Thread: 1, Status: eventlog.StoppedYielding})
		l.Sample(ms*1e6+6e5, 1e6, stack)
		if ms%10 == 9 {
			l.Len() // as the agent, which writes what it has from time to time
		}
	}
	log := l.End()
	clear(log[from:to])
	p, err := profile.Load(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	if p.Accounting.Malformed == 0 {
		t.Fatal("the log is not damaged")
	}
	return p
}

// What a damaged part of a log would have said is not watched, and no time off the CPU.
func TestDamaged(t *testing.T) {
	p := damaged(t)
	if len(p.Gaps) != 1 || p.Gaps[0].From > 40e6 || p.Gaps[0].From < 35e6 || p.Gaps[0].To < 60e6 || p.Gaps[0].To > 65e6 {
		t.Fatalf("gaps %v, want one from 40 to 60 ms", p.Gaps)
	}
	s := p.Select(profile.Filter{})
	line := Of(s, Options{Buckets: 10, Window: profile.Range{To: 100e6}})
	show := func(not []bool) (out string) {
		for _, n := range not {
			if n {
				out += "╌"
			} else {
				out += "·"
			}
		}
		return out
	}
	for _, c := range []struct {
		what, want string
		not        []bool
	}{
		{"samples", "····╌╌····", line.Missing()},
		{"threads", "╌···╌╌····", Unwatched(p, "threads", 0, 100e6, 10e6, 10)},
		{"collections", "╌···╌╌╌···", Unwatched(p, "gc", 0, 100e6, 10e6, 10)},
	} {
		if got := show(c.not); got != c.want {
			t.Errorf("%s are not watched in %s, want %s", c.what, got, c.want)
		}
	}
	for b, ns := range line.RTS[0].Run {
		if b != 4 && b != 5 && (ns < 4e6 || ns > 6e6) || ns > 6e6 {
			t.Errorf("runs take %s of the 10 ms from %d ms on, want half", fmt.Sprint(ns), 10*b)
		}
	}
	a := activity.Of(s)
	if len(a.Capabilities) > 0 {
		if off := a.Capabilities[0].Shares[activity.Off].Of; off > 0.05 {
			t.Errorf("%.2f of the time is off the CPU: the gap was counted", off)
		}
	}
	if a.Ns > 82e6 || a.Ns < 75e6 {
		t.Errorf("shares are of %d ns, want 80 ms", a.Ns)
	}
}
