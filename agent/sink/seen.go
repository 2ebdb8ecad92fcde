package sink

import (
	"cmp"
	"slices"

	"ccagent/eventlog"
	"ccagent/symbolize"
)

// Address is a module address.
type Address struct {
	Module uint32
	Addr   uint64
}

// sighting is how an address was seen.
type sighting struct {
	samples uint64 // that hit it in user space
	clock   uint64 // of a clock, that hit it in user space
	call    bool   // only ever as a return address in C code
}

// maxSeen bounds the distinct addresses that are symbolised: about 100 MB. The
// code of one program is far smaller; crafted stacks may not be.
const maxSeen = 1 << 20

// Seen are all addresses in the log's stacks, and those of closures' code.
type Seen struct {
	sightings map[Address]sighting
}

func (s *Seen) addNodes(nodes []eventlog.Node) {
	for _, n := range nodes {
		if !n.Kind.HasAddress() {
			continue
		}
		a, call := Address{n.Module, n.Addr}, n.Kind == eventlog.FrameC
		old, known := s.sightings[a]
		switch {
		case !known && len(s.sightings) < maxSeen:
			s.sightings[a] = sighting{call: call}
		case known && old.call && !call:
			old.call = false
			s.sightings[a] = old
		}
	}
}

// AddCode adds an address that is in no stack.
func (s *Seen) AddCode(module uint32, addr uint64) {
	s.addNodes([]eventlog.Node{{Kind: eventlog.FramePC, Module: module, Addr: addr}})
}

// CountLeaf counts a sample that hit an address in user space.
func (s *Seen) CountLeaf(module uint32, addr uint64) {
	a := Address{module, addr}
	if old, ok := s.sightings[a]; ok {
		old.samples++
		s.sightings[a] = old
	}
}

// CountClock counts a sample of a clock that hit an address in user space.
func (s *Seen) CountClock(module uint32, addr uint64) {
	a := Address{module, addr}
	if old, ok := s.sightings[a]; ok {
		old.clock++
		s.sightings[a] = old
	}
}

// Clock counts the samples of clocks that hit an address in user space.
func (s *Seen) Clock(a Address) uint64 { return s.sightings[a].clock }

// Any reports whether the log has any code to name.
func (s *Seen) Any() bool { return len(s.sightings) > 0 }

// ByModule lists each module's addresses, sorted.
func (s *Seen) ByModule() map[uint32][]symbolize.Address {
	of := map[uint32][]symbolize.Address{}
	for a, seen := range s.sightings {
		of[a.Module] = append(of[a.Module], symbolize.Address{Addr: a.Addr, Call: seen.call})
	}
	for _, list := range of {
		slices.SortFunc(list, func(a, b symbolize.Address) int { return cmp.Compare(a.Addr, b.Addr) })
	}
	return of
}

// Samples counts the samples that hit an address.
func (s *Seen) Samples(a Address) uint64 { return s.sightings[a].samples }

// LeafSamples counts the samples that hit a user-space address.
func (s *Seen) LeafSamples() uint64 {
	var n uint64
	for _, seen := range s.sightings {
		n += seen.samples
	}
	return n
}

// ResolvedBy counts the samples whose leaf got a category from the event.
func (s *Seen) ResolvedBy(l *eventlog.Locations) uint64 {
	var n uint64
	for _, loc := range l.Locations {
		if loc.Category != eventlog.CategoryUnresolved {
			n += s.Samples(Address{l.Module, loc.Addr})
		}
	}
	return n
}
