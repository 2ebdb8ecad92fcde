package profile

import (
	"ccagent/eventlog"
	"ccagent/profile/columns"
)

// waitingElement is the element of what threads of the parallel collector spend on waiting
// for each other. It is a part of (GC), which has it as well.
const waitingElement = "(GC waiting)"

// spinning are functions of the run-time system in which threads of the parallel collector
// wait for each other without working: rts/SpinLock.c, whose locks the collector alone uses,
// and the loops of rts/sm/GC.c that wait for other threads to start, to hand on work, or to
// end. They yield the CPU in between, so they spend time in the kernel too.
var spinning = map[string]bool{
	"acquire_spin_lock_slow_path": true,
	"waitForGcThreads":            true,
	"wakeup_gc_threads":           true,
	"shutdown_gc_threads":         true,
	"any_work":                    true,
	eventlog.NamelessGCLock:       true,
}

// workOrWait is the function of the collector that works in what it calls of the collector, and
// yields until others are done.
const workOrWait = "scavenge_until_all_done"

// yields are functions that those call to give up the CPU.
var yields = map[string]bool{"yieldThread": true}

// waits reports whether a place is code in which threads of the collector wait.
func (p *Profile) waits(place uint32) bool {
	switch p.Locations[place].Category {
	case eventlog.CategoryGC, eventlog.CategoryRTS:
		return spinning[p.Symbols.Bindings[p.Owner(place)].Name]
	}
	return false
}

// Collector is the garbage collector's part of a selection, as fractions of its total.
type Collector struct {
	// Share is of samples in the collector's own code, and so the share of (GC).
	Share float64
	// Kernel is of samples in the kernel on behalf of the collector: page faults on what it
	// copies to, memory that it asks for or gives back, and yielding.
	Kernel float64
	// Waiting is of samples of collector threads that wait for each other, in their own code,
	// the C library's or the kernel's. It overlaps with both of the above.
	Waiting float64
	// Inclusive is of all samples with the collector on the stack.
	Inclusive float64
}

// Flags of Profile.Collecting.
const (
	InGC      = 1 << iota // the collector is on the stack
	GCWaiting             // and waits for its other threads
)

// Collecting returns for each node whether its stack is the collector's: flags.
func (p *Profile) Collecting() []uint8 {
	const inGC, waiting = InGC, GCWaiting
	state := make([]uint8, len(p.Nodes.Parent)) // by node: of its stack
	for n := 1; n < len(state); n++ {
		k := p.Nodes.Kind[n]
		if k == eventlog.FrameContext {
			continue
		}
		state[n] = state[p.Nodes.Parent[n]]
		if columns.Structural(k) {
			continue
		}
		pl := p.Nodes.Place[n]
		switch c := p.Locations[pl].Category; {
		case p.waits(pl):
			state[n] = inGC | waiting
		case c == eventlog.CategoryGC && p.Symbols.Bindings[p.Owner(pl)].Name == workOrWait:
			state[n] = inGC | waiting
		case c == eventlog.CategoryGC:
			state[n] = inGC
		case c == eventlog.CategoryRTS && !yields[p.Symbols.Bindings[p.Owner(pl)].Name]:
			state[n] &^= waiting
		case c == eventlog.CategoryHaskell, c == eventlog.CategorySTG:
			state[n] = 0
		}
	}
	return state
}

// Collector returns the garbage collector's part of the selection.
func (s *Selection) Collector() Collector {
	p := s.Profile
	state := p.Collecting()
	var own, kernel, wait, all uint64
	cats := p.siteCategories()
	for i, n := range s.Count {
		if n == 0 {
			continue
		}
		st, w := state[p.Sites[i].Node], s.Weight[i]
		if st&InGC == 0 {
			continue
		}
		all = columns.SatAdd(all, w)
		switch cats[i] {
		case eventlog.CategoryKernel:
			kernel = columns.SatAdd(kernel, w)
		case eventlog.CategoryGC:
			own = columns.SatAdd(own, w)
		case eventlog.CategoryRTS:
			if leaf := s.Leaf[i]; leaf != 0 && p.waits(p.Nodes.Place[leaf]) {
				own = columns.SatAdd(own, w) // a log of before these functions were the collector's
			}
		}
		if st&GCWaiting != 0 {
			wait = columns.SatAdd(wait, w)
		}
	}
	return Collector{Share: s.Fraction(own), Kernel: s.Fraction(kernel), Waiting: s.Fraction(wait), Inclusive: s.Fraction(all)}
}
