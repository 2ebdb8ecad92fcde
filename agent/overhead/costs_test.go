package overhead

import (
	"testing"

	"ccagent/internal/testprog"
	"ccagent/perf"
)

// Before anything is measured costs are what is usual; what is measured replaces that.
func TestCosts(t *testing.T) {
	c := NewCosts()
	if c.Trap() != defaultTrap || c.Interrupt(perf.TimerInterrupt) != perf.DefaultInterruptNs || c.Interrupt(perf.NoInterrupt) != 0 {
		t.Errorf("at first a trap costs %v, an interrupt %v, none %v", c.Trap(), c.Interrupt(perf.TimerInterrupt), c.Interrupt(perf.NoInterrupt))
	}
	c.SetTrap(7)
	c.SetInterrupt(perf.CounterInterrupt, 8)
	if c.Trap() != 7 || c.Interrupt(perf.CounterInterrupt) != 8 || c.Interrupt(perf.TimerInterrupt) != perf.DefaultInterruptNs {
		t.Errorf("measured were 7 and 8: %v, %v", c.Trap(), c.Interrupt(perf.CounterInterrupt))
	}
}

// What is needed is measured once, and nothing else is.
func TestNeededCosts(t *testing.T) {
	c := NewCosts()
	for _, kind := range []perf.Interrupt{perf.TimerInterrupt, perf.NoInterrupt, perf.TimerInterrupt} {
		c.NeedInterrupt(kind)
	}
	if len(c.needed) != 1 || c.needed[0] != perf.TimerInterrupt || c.needTrap {
		t.Errorf("needed are %v, and the trap: %v", c.needed, c.needTrap)
	}
}

// A probe's hit costs something, and less than a thousandth of a second.
func TestMeasureTrap(t *testing.T) {
	testprog.NeedRoot(t)
	if probeSite == 0 {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "an x86-64 machine"})
	}
	if ns, err := measureTrap(); err != nil || ns <= 0 || ns > 1e6 {
		t.Errorf("a hit costs %v ns, %v", ns, err)
	}
}
