package cpu

import "testing"

// A clock that passes over half of a program's time interrupts it all the same, at each rate that it has had, and as often as
// was counted where that is more.
func TestRestrictedClockInterruptsAllTheSame(t *testing.T) {
	var r restricted
	r.pass(2e9, 250)
	r.pass(4e9, 100)
	if got := r.interrupts(350); got != 700 {
		t.Errorf("%d interrupts, want 700", got)
	}
	if got := r.interrupts(701); got != 701 {
		t.Errorf("%d interrupts, 701 were counted", got)
	}
	r.pass(3e9, 100) // a reading that is older
	if got := r.interrupts(0); got != 700 {
		t.Errorf("%d interrupts, want 700 still", got)
	}
}
