package segments

import (
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// Reading is what the host's clocks show at one moment. The wall clock (CLOCK_REALTIME) can be set; the
// monotonic one (CLOCK_MONOTONIC), by which logs count, stands still while the host is suspended; the
// one since the boot (CLOCK_BOOTTIME) does neither.
type Reading struct {
	Wall            time.Time
	Monotonic, Boot time.Duration
}

// ReadClocks reads the host's clocks.
func ReadClocks() Reading {
	read := func(clock int32) time.Duration {
		var ts unix.Timespec
		if unix.ClockGettime(clock, &ts) != nil { // Linux has all of them
			return 0
		}
		return time.Duration(ts.Nano())
	}
	// Without Go's own monotonic reading, by which it would subtract.
	return Reading{time.Now().Round(0), read(unix.CLOCK_MONOTONIC), read(unix.CLOCK_BOOTTIME)}
}

// Clock gives the ages of pieces by the time that has passed, though the wall clock by which their files are dated
// may have been set meanwhile. The zero value knows of no step.
type Clock struct {
	last  Reading
	begun bool
	steps []step
}

// step is that the wall clock was set.
type step struct {
	before time.Time     // what it showed last
	by     time.Duration // negative if it was set back
}

const (
	// tolerance is by how much clocks may differ from one reading to the next: readings are not taken
	// at one moment, and a clock that is slewed gains half a millisecond a second.
	tolerance = 500 * time.Millisecond
	// maxSteps bounds the steps that are remembered; the oldest are forgotten.
	maxSteps = 256
)

// Pass takes the next reading. It reports whether the wall clock and the monotonic one have come apart since the
// last, by a step or since the host was suspended: by the head of a log that began before, what comes now would have the
// wrong wall clock.
func (c *Clock) Pass(now Reading) (apart bool) {
	last := c.last
	c.last = now
	if !c.begun {
		c.begun = true
		return false
	}
	wall := now.Wall.Sub(last.Wall)
	if by := wall - (now.Boot - last.Boot); by.Abs() > tolerance {
		if len(c.steps) == maxSteps {
			c.steps = c.steps[1:]
		}
		c.steps = append(c.steps, step{last.Wall, by})
	}
	return (wall - (now.Monotonic - last.Monotonic)).Abs() > tolerance
}

// Copy is a clock that stays as it is.
func (c *Clock) Copy() *Clock {
	return &Clock{last: c.last, begun: c.begun, steps: slices.Clone(c.steps)}
}

// Age is how long ago it was, at the last reading, that the wall clock showed a time: less than by that clock if
// it was set ahead since, more if it was set back. Of two times that it has shown the same the later is
// taken; what it has not shown is taken for the moment at which it came nearest from below, and what is to come
// has an age of 0.
func (c *Clock) Age(at time.Time) time.Duration {
	nearest, passed, end := time.Duration(-1), time.Duration(0), c.last.Wall
	for i := len(c.steps) - 1; i >= 0; i-- { // the stretches between steps, the latest first
		begin := c.steps[i].before.Add(c.steps[i].by)
		if !at.Before(begin) {
			if !at.After(end) {
				return passed + end.Sub(at)
			}
			if nearest < 0 {
				nearest = passed
			}
		}
		passed += end.Sub(begin)
		end = c.steps[i].before
	}
	if !at.After(end) || nearest < 0 {
		return passed + max(end.Sub(at), 0)
	}
	return nearest
}
