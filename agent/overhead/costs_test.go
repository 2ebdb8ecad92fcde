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
	if len(c.needed) != 1 || c.needed[0] != perf.TimerInterrupt || c.needTraps != [trapKinds]bool{} {
		t.Errorf("needed are %v, and traps: %v", c.needed, c.needTraps)
	}
}

// A probe's hit costs something, and less than a thousandth of a second; one whose instruction the kernel does not emulate costs more.
func TestMeasureTrap(t *testing.T) {
	testprog.NeedRoot(t)
	var hits [trapKinds]float64
	for kind := range hits {
		var err error
		if hits[kind], err = measureTrap(trapKind(kind)); err != nil || hits[kind] <= 0 || hits[kind] > 1e6 {
			t.Errorf("a hit costs %v ns, %v", hits[kind], err)
		}
	}
	if hits[steppedTrap] <= hits[emulatedTrap] {
		t.Errorf("an instruction that is emulated costs %v ns, one that is not %v", hits[emulatedTrap], hits[steppedTrap])
	}
}
