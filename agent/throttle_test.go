package agent

import "testing"

func TestThrottle(t *testing.T) {
	var th throttle
	const second = 1e9
	for i, step := range []struct {
		limit             int
		target, overflows uint64
		lowered           bool
		missed            uint64
	}{
		{100000, 1 * second, 997, false, 0},
		{100000, 2 * second, 1500, false, 0}, // slow, but not throttled
		{500, 3 * second, 2000, true, 497},
		{500, 4 * second, 2500, false, 497},
		{100000, 5 * second, 3497, false, 0},
		{0, 6 * second, 3600, true, 0}, // no limit is told
	} {
		lowered, missed := th.look(step.limit, step.target, step.overflows, 997)
		if lowered != step.lowered || missed != step.missed {
			t.Errorf("step %d: lowered %v, %d missed; want %v, %d", i, lowered, missed, step.lowered, step.missed)
		}
	}
}
