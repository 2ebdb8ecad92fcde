package overhead

import (
	"errors"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"ccagent/perf"
)

const (
	// defaultTrap is what a probe's hit is taken to cost outside BPF where it could not be
	// measured, ns.
	defaultTrap = 1000
	// defaultStepped is the same where the kernel does not emulate the instruction, ns.
	defaultStepped = 6000
	// DefaultHit is what a hit of a probe with its stack walk is taken to cost before it has
	// been measured, ns.
	DefaultHit = 4000
)

// Costs is what one of each costs the thread that it hits, in ns, outside of BPF: measured
// on this machine once Calibrate is through, until then taken to be what is usual. It may be
// used by several goroutines.
type Costs struct {
	needTraps [trapKinds]bool
	needed    []perf.Interrupt
	path      string // where root keeps them; empty for others

	mu         sync.Mutex
	traps      [trapKinds]float64
	interrupts [perf.Interrupts]float64
	measured   [perf.Interrupts]bool
	measuring  chan struct{} // closed when the interrupts are measured; nil if they are not to be
	under      bool          // something is being measured
	at         time.Duration // of the last measurement, since the boot
}

// NewCosts returns the usual costs.
func NewCosts() *Costs {
	c := &Costs{traps: [trapKinds]float64{emulatedTrap: defaultTrap, steppedTrap: defaultStepped}}
	c.interrupts[perf.TimerInterrupt] = perf.DefaultInterruptNs
	c.interrupts[perf.CounterInterrupt] = perf.DefaultInterruptNs
	return c
}

// Trap is what a hit of a probe costs whose instruction the kernel emulates.
func (c *Costs) Trap() float64 { return c.trap(emulatedTrap) }

// SteppedTrap is what a hit of a probe costs whose instruction the kernel does not emulate, but has the program execute apart.
func (c *Costs) SteppedTrap() float64 { return c.trap(steppedTrap) }

func (c *Costs) trap(kind trapKind) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.traps[kind]
}

// Interrupt is what an overflow's interrupt costs.
func (c *Costs) Interrupt(kind perf.Interrupt) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.interrupts[kind]
}

// Measured is Interrupt after the measurement, if there is one under way: it is waited for.
// False if it was not measured, or could not be.
func (c *Costs) Measured(kind perf.Interrupt) (ns float64, measured bool) {
	c.mu.Lock()
	measuring := c.measuring
	c.mu.Unlock()
	if measuring != nil {
		<-measuring
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.interrupts[kind], c.measured[kind]
}

// SetTrap sets what a hit of a probe costs whose instruction the kernel emulates.
func (c *Costs) SetTrap(ns float64) { c.setTrap(emulatedTrap, ns) }

func (c *Costs) setTrap(kind trapKind, ns float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.traps[kind] = ns
}

// SetInterrupt sets what an overflow's interrupt costs.
func (c *Costs) SetInterrupt(kind perf.Interrupt, ns float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.interrupts[kind], c.measured[kind] = ns, true
}

// NeedTrap, NeedSteppedTrap and NeedInterrupt have Calibrate measure what will be used.
func (c *Costs) NeedTrap() { c.needTraps[emulatedTrap] = true }

func (c *Costs) NeedSteppedTrap() { c.needTraps[steppedTrap] = true }

func (c *Costs) NeedInterrupt(kind perf.Interrupt) {
	if kind != perf.NoInterrupt && !slices.Contains(c.needed, kind) {
		c.needed = append(c.needed, kind)
	}
}

// Calibrate measures what is needed, beside what else is to be done, unless root has kept it
// of an earlier capture. What cannot be measured is left as it is.
func (c *Costs) Calibrate() {
	if os.Geteuid() == 0 {
		c.path = keptPath
	}
	c.calibrate()
}

func (c *Costs) calibrate() {
	k, err := kept{}, errors.ErrUnsupported
	if c.path != "" {
		k, err = loadKept(c.path)
	}
	if err != nil {
		k = kept{}
	}
	var kinds []perf.Interrupt // to be measured
	for _, kind := range c.needed {
		if ns := k.Interrupts[kind]; ns > 0 {
			c.SetInterrupt(kind, ns)
		} else {
			kinds = append(kinds, kind)
		}
	}
	traps := c.needTraps // likewise
	for kind := range traps {
		if ns := *k.trap(trapKind(kind)); traps[kind] && ns > 0 {
			c.setTrap(trapKind(kind), ns)
			traps[kind] = false
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = k.At
	if len(kinds) > 0 || traps != [trapKinds]bool{} {
		c.measure(kinds, traps, k)
	}
}

// freshFor is for how long what was measured is true enough: a hypervisor's exits were seen to cost half as
// much again an hour later.
const freshFor = 10 * time.Minute

// Refresh measures again what is needed, beside what else is to be done, if it was measured long ago.
func (c *Costs) Refresh() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.needed) == 0 && c.needTraps == [trapKinds]bool{} || c.under {
		return
	}
	if now, err := sinceStart(); err == nil && now-c.at > freshFor {
		c.measure(c.needed, c.needTraps, kept{})
	}
}

// measure has the costs measured, and kept with those that are. c is locked.
func (c *Costs) measure(kinds []perf.Interrupt, traps [trapKinds]bool, k kept) {
	if now, err := sinceStart(); err == nil {
		c.at = now // also if it fails: it is not tried all the time
	}
	measuring := make(chan struct{})
	c.measuring, c.under = measuring, true
	k.Interrupts = maps.Clone(k.Interrupts)
	go func() {
		measured := 0
		for _, kind := range kinds {
			ns, err := measureInterrupt(kind)
			if err != nil {
				continue
			}
			c.SetInterrupt(kind, ns)
			if k.Interrupts == nil {
				k.Interrupts = map[perf.Interrupt]float64{}
			}
			k.Interrupts[kind] = ns
			measured++
		}
		close(measuring)
		for kind, need := range traps {
			if !need {
				continue
			}
			if ns, err := measureTrap(trapKind(kind)); err == nil && ns > 0 {
				c.setTrap(trapKind(kind), ns)
				*k.trap(trapKind(kind)) = ns
				measured++
			}
		}
		c.mu.Lock()
		c.under = false
		c.mu.Unlock()
		if c.path != "" && measured > 0 {
			_ = k.store(c.path)
		}
	}()
}

// measureInterrupt measures what an interrupt costs a program that goes through its working set, ns. It costs
// a loop that stays in the nearest cache a sixth less.
func measureInterrupt(kind perf.Interrupt) (float64, error) {
	memory := newWorkingSet()
	return perf.MeasureInterrupt(kind, func() { memory.use(2 * workingBytes) })
}
