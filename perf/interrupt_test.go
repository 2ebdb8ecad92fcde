package perf

import (
	"errors"
	"testing"
)

// Each event has the kind of interrupt by which its counter or timer enters the kernel.
func TestInterruptKind(t *testing.T) {
	for name, want := range map[string]Interrupt{
		"cpu-clock": TimerInterrupt, "task-clock": TimerInterrupt, "page-faults": NoInterrupt, "cs": NoInterrupt,
		"cycles": CounterInterrupt, "LLC-load-misses": CounterInterrupt, "r1c2": CounterInterrupt,
	} {
		e, err := Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Interrupt(); got != want {
			t.Errorf("%s: %d, want %d", name, got, want)
		}
	}
}

// An interrupt's cost can be measured for each kind that this machine has, and is
// plausible.
func TestMeasureInterrupt(t *testing.T) {
	memory := make([]byte, 1<<18)
	work := func() {
		for i := range memory {
			memory[i]++
		}
	}
	for kind := NoInterrupt; kind < Interrupts; kind++ {
		ns, err := MeasureInterrupt(kind, work)
		var unavailable *UnavailableError
		switch {
		case err != nil && (errors.As(err, &unavailable) || errors.Is(err, errFewOverflows)):
			t.Logf("kind %d: %v", kind, err)
		case err != nil:
			t.Errorf("kind %d: %v", kind, err)
		case (ns == 0) != (kind == NoInterrupt) || ns < 0 || ns > mostInterruptNs:
			t.Errorf("kind %d: %.0f ns", kind, ns)
		default:
			t.Logf("kind %d: %.0f ns", kind, ns)
		}
	}
}
