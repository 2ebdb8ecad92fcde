package agent

import "ccagent/eventlog"

// address is a module address.
type address struct {
	module uint32
	addr   uint64
}

// maxSeen bounds the distinct addresses that are symbolised: about 100 MB. The
// code of one program is far smaller; crafted stacks may not be.
const maxSeen = 1 << 20

// seenAddresses are all addresses in the log's stacks, with the number of
// samples that hit each.
type seenAddresses struct {
	samples map[address]uint64
}

func newSeenAddresses() *seenAddresses { return &seenAddresses{samples: map[address]uint64{}} }

func (s *seenAddresses) addNodes(nodes []eventlog.Node) {
	for _, n := range nodes {
		switch n.Kind {
		case eventlog.FrameSkipped, eventlog.FrameContext, eventlog.FrameFolded:
			continue
		}
		a := address{n.Module, n.Addr}
		if _, ok := s.samples[a]; !ok && len(s.samples) < maxSeen {
			s.samples[a] = 0
		}
	}
}

func (s *seenAddresses) countLeaf(module uint32, addr uint64) {
	a := address{module, addr}
	if n, ok := s.samples[a]; ok {
		s.samples[a] = n + 1
	}
}
