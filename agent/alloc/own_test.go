package alloc

import (
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/source"
	"ccagent/bpf"
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
		if n := looks(length, false); n > ownLooks+1 || n < 2 && length > overhead.ShortSleep {
			t.Errorf("a window of %v of a process that was not seen has %d looks", length, n)
		}
	}
}

// nothing is a probe in no process.
type nothing struct{}

func (nothing) Close() error { return nil }

// A process whose probe is hit seldom has it put in once, and not for windows, as soon as all processes together have saved up
// half of what they may, which is less than half of what the process may.
func TestProbeThatIsHitSeldomStays(t *testing.T) {
	const second = 1e9
	budget := overhead.NewBudget(0.003)
	a := &allocation{host: &source.Host{OwnLogs: true, Budget: budget}}
	own := budget.Process(0.01, func() uint64 { return 0 })
	attached := 0
	ai := &image{im: &process.Image{}, ledger: newLedger(false, nil, 0), share: 0.024, bucket: newBucket(own)}
	b := ai.bucket.Bucket
	b.Pass(100*second, 0)
	if b.Level() != b.Most() || b.Most() > b.Depth()/2 {
		t.Fatalf("all have saved up %v, the process may have %v of %v", b.Level(), b.Most(), b.Depth())
	}
	for _, rate := range []float64{0, 5} {
		attached = 0
		seldom := &probe{site: bpf.SiteNursery, hitRate: rate, attach: func() (io.Closer, error) {
			attached++
			return nothing{}, nil
		}}
		ai.probes[bpf.SiteNursery] = seldom
		for range 10 {
			a.placeNext(ai, b)
		}
		if attached != 1 || !seldom.continuous() {
			t.Errorf("a probe with %v hits a second was put in %d times, and stays: %t", rate, attached, seldom.continuous())
		}
	}
	if often := (&probe{site: bpf.SiteNursery, hitRate: 300}); a.mayStay(ai, often, 0, b) {
		t.Error("a probe stays that is hit 300 times a second in a process that uses a fortieth of a CPU")
	}
}
