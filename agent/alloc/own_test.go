package alloc

import (
	"math/rand/v2"
	"testing"
	"time"

	"ccagent/agent/overhead"
)

// Up to thirty processes have two windows a second together, so that what these take the agent does not grow with their number;
// with more each has one about every fifteen seconds. Few processes have as many as each may have by itself.
func TestWindowsOfManyProcesses(t *testing.T) {
	const minutes = 30
	for _, c := range []struct {
		processes     int
		length        time.Duration
		second, least float64 // of all processes together; a minute, of the one that has the fewest
	}{
		{1, time.Millisecond, 1.2, 60}, {1, 100 * time.Millisecond, 0.15, 7},
		{17, time.Millisecond, 2.1, 6}, {17, 100 * time.Millisecond, 2.1, 6},
		{30, 100 * time.Millisecond, 2.1, 3.4}, {300, 100 * time.Millisecond, 20.5, 3.2},
	} {
		random := rand.New(rand.NewPCG(1, 2))
		all, least := 0, minutes*60
		for range c.processes {
			n := 0
			for now := uint64(0); now < minutes*60e9; n++ {
				cycle := ownCycleOf(c.length, c.processes)
				now += cycle + random.Uint64N(cycle)
			}
			all, least = all+n, min(least, n)
		}
		if got := float64(all) / (minutes * 60); got > c.second {
			t.Errorf("%d processes with windows of %v have %.2f of them a second, want at most %v", c.processes, c.length, got, c.second)
		}
		if got := float64(least) / minutes; got < c.least {
			t.Errorf("one of %d processes with windows of %v has %.2f of them a minute, want at least %v", c.processes, c.length, got, c.least)
		}
	}
}

// Where it is known how often a probe is hit a window wakes the agent once, at its end.
func TestLooksInAWindow(t *testing.T) {
	looks := func(length time.Duration, known bool) (n int) {
		for left := length; left > 0; left -= ownLookAfter(length, known) {
			n++
		}
		return n
	}
	for _, length := range []time.Duration{time.Millisecond, 4 * time.Millisecond, 33 * time.Millisecond, 100 * time.Millisecond} {
		if n := looks(length, true); n != 1 {
			t.Errorf("a window of %v has %d looks", length, n)
		}
		n := looks(length, false)
		if n > ownLooks+1 {
			t.Errorf("a window of %v of a process that was not seen has %d looks", length, n)
		}
		if length > ownLook && n < 2 || length > overhead.ShortSleep && n < 1 {
			t.Errorf("a window of %v of a process that was not seen has no look before its end", length)
		}
	}
}
