package cpu

import (
	"slices"
	"testing"
)

func TestThrottle(t *testing.T) {
	var th limit
	const second = 1e9
	for i, step := range []struct {
		limit             int
		target, overflows uint64
		lowered, missed   uint64
	}{
		{100000, 1 * second, 997, 0, 0},
		{100000, 2 * second, 1500, 0, 0}, // slow, but not throttled
		{500, 3 * second, 2000, 100000, 497},
		{500, 4 * second, 2500, 0, 497},
		{100000, 5 * second, 3497, 0, 0},
		{0, 6 * second, 3600, 100000, 0}, // no limit is known
	} {
		// The second is below any limit, the third has a period.
		lowered, missed := th.look(step.limit, step.target, []frequent{{997, step.overflows}, {100, 0}, {0, step.overflows}})
		if lowered != step.lowered || !slices.Equal(missed, []uint64{step.missed, 0, 0}) {
			t.Errorf("step %d: lowered from %v, %d missed; want %v, %d", i, lowered, missed, step.lowered, step.missed)
		}
	}
}
