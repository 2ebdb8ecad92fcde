package segments

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// clocks are a host's, as they are when time passes, the host is suspended, or the wall clock set.
type clocks struct {
	Reading
	clock Clock
}

func newClocks() *clocks {
	c := &clocks{Reading: Reading{Wall: noon, Monotonic: time.Hour, Boot: 2 * time.Hour}}
	c.clock.Pass(c.Reading)
	return c
}

// pass has time pass in turns of the daemon's loop, and reports whether the clocks came apart.
func (c *clocks) pass(d time.Duration) (apart bool) {
	const turn = 100 * time.Millisecond
	for ; d > 0; d -= turn {
		c.Wall, c.Monotonic, c.Boot = c.Wall.Add(turn), c.Monotonic+turn, c.Boot+turn
		apart = c.clock.Pass(c.Reading) || apart
	}
	return apart
}

// Time that passes, also by a clock that is slewed as fast as the kernel does it, and slow turns of the loop, bring
// no clocks apart, and an age is what has passed.
func TestClocksThatRun(t *testing.T) {
	c := newClocks()
	if c.pass(10 * time.Minute) {
		t.Error("the clocks are apart after ten minutes")
	}
	for range 1000 {
		c.Wall = c.Wall.Add(50 * time.Microsecond)
		if c.pass(100 * time.Millisecond) {
			t.Fatal("a clock that is slewed is apart")
		}
	}
	c.Wall, c.Monotonic, c.Boot = c.Wall.Add(time.Minute), c.Monotonic+time.Minute, c.Boot+time.Minute
	if c.clock.Pass(c.Reading) {
		t.Error("the clocks are apart after a slow turn")
	}
	if got, want := c.clock.Age(noon), c.Wall.Sub(noon); got != want {
		t.Errorf("the age is %v, want %v", got, want)
	}
}

// Where the wall clock is set, logs begin anew, and pieces are as old as before. Where the host is suspended logs
// begin anew too, and pieces are older by the time of that.
func TestClocksThatComeApart(t *testing.T) {
	const hour = time.Hour
	for what, c := range map[string]struct {
		set, suspended time.Duration
	}{
		"set ahead": {set: 30 * hour}, "set back": {set: -30 * hour}, "set ahead by a little": {set: time.Second}, "set back by a little": {set: -time.Second},
		"suspended": {suspended: 30 * hour}, "suspended, and set ahead": {30 * hour, hour},
	} {
		k := newClocks()
		k.pass(time.Minute)
		before := k.Wall
		k.Wall, k.Boot = k.Wall.Add(c.set+c.suspended), k.Boot+c.suspended
		if !k.pass(100 * time.Millisecond) {
			t.Errorf("%s: logs do not begin anew", what)
		}
		if k.pass(time.Minute) {
			t.Errorf("%s: logs begin anew without a reason", what)
		}
		after := k.Wall
		k.pass(time.Minute)
		near := func(moment string, at time.Time, want time.Duration) {
			t.Helper()
			if got := k.clock.Age(at); (got - want).Abs() > 200*time.Millisecond {
				t.Errorf("%s: the age of %s is %v, want %v", what, moment, got, want)
			}
		}
		passed := 2*time.Minute + c.suspended
		if c.set.Abs() > time.Second { // else the clock has shown the same time twice
			near("what was before", before, passed)
			near("what was long before", before.Add(-20*hour), passed+20*hour)
		}
		near("what was after", after, time.Minute)
		near("what is to come", k.Wall.Add(100*hour), 0)
	}
}

// A clock that is set ahead by days, as at the boot of a machine without a battery, removes no piece of a minute ago;
// one that is set back does not keep the old ones for ever, nor remove the young ones first.
func TestRetentionWhenTheClockIsSet(t *testing.T) {
	for _, by := range []time.Duration{72 * time.Hour, -72 * time.Hour} {
		f, err := Open(filepath.Join(t.TempDir(), "state"))
		if err != nil {
			t.Fatal(err)
		}
		k := newClocks()
		var paths []string
		put := func() {
			t.Helper()
			path, err := nameOf(f, "api", 7, k.Wall)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, make([]byte, 10), 0o600); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, k.Wall, k.Wall); err != nil {
				t.Fatal(err)
			}
			paths = append(paths, path)
		}
		check := func(l Limits, want ...int) {
			t.Helper()
			pieces, _, err := f.Retain(l, k.clock.Age, func(string) bool { return false })
			if err != nil || pieces != len(want) {
				t.Errorf("set by %v: %d pieces are left, want %d; %v", by, pieces, len(want), err)
			}
			for _, i := range want {
				if _, err := os.Stat(paths[i]); err != nil {
					t.Errorf("set by %v: piece %d: %v", by, i, err)
				}
			}
		}
		put()
		k.pass(time.Minute)
		put()
		k.Wall = k.Wall.Add(by)
		k.pass(time.Minute)
		put()
		check(Limits{Age: 24 * time.Hour}, 0, 1, 2)
		check(Limits{Bytes: 20}, 1, 2)
		check(Limits{Age: 30 * time.Second}, 2)
	}
}
