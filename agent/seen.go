package agent

import (
	"cmp"
	"slices"

	"ccagent/eventlog"
	"ccagent/symbolize"
)

// address is a module address.
type address struct {
	module uint32
	addr   uint64
}

// sighting is how an address was seen.
type sighting struct {
	samples uint64 // that hit it
	call    bool   // only ever as a return address in C code
}

// maxSeen bounds the distinct addresses that are symbolised: about 100 MB. The
// code of one program is far smaller; crafted stacks may not be.
const maxSeen = 1 << 20

// seenAddresses are all addresses in the log's stacks, and those of closures' code.
type seenAddresses struct {
	sightings map[address]sighting
}

func newSeenAddresses() *seenAddresses { return &seenAddresses{sightings: map[address]sighting{}} }

func (s *seenAddresses) addNodes(nodes []eventlog.Node) {
	for _, n := range nodes {
		switch n.Kind {
		case eventlog.FrameSkipped, eventlog.FrameContext, eventlog.FrameFolded:
			continue
		}
		a, call := address{n.Module, n.Addr}, n.Kind == eventlog.FrameC
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

// addCode adds an address that is in no stack.
func (s *seenAddresses) addCode(module uint32, addr uint64) {
	s.addNodes([]eventlog.Node{{Kind: eventlog.FramePC, Module: module, Addr: addr}})
}

func (s *seenAddresses) countLeaf(module uint32, addr uint64) {
	a := address{module, addr}
	if old, ok := s.sightings[a]; ok {
		old.samples++
		s.sightings[a] = old
	}
}

// byModule lists each module's addresses, sorted.
func (s *seenAddresses) byModule() map[uint32][]symbolize.Address {
	of := map[uint32][]symbolize.Address{}
	for a, seen := range s.sightings {
		of[a.module] = append(of[a.module], symbolize.Address{Addr: a.addr, Call: seen.call})
	}
	for _, list := range of {
		slices.SortFunc(list, func(a, b symbolize.Address) int { return cmp.Compare(a.Addr, b.Addr) })
	}
	return of
}
