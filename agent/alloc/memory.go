package alloc

import (
	"fmt"
	"math"

	"ccagent/bpf"
	"ccagent/internal/ghc"
	"ccagent/perf"
)

// maxCapabilities bounds the capabilities that are read; the process says how many
// there are.
const maxCapabilities = 1024

// readWords reads how much each capability has allocated, in words, from the
// process's memory. Capabilities that cannot be read are left out.
func (ai *image) readWords() (map[uint16]uint64, error) {
	capabilities, err := ai.capabilities()
	if err != nil {
		return nil, err
	}
	words := map[uint16]uint64{}
	for i, capability := range capabilities {
		number, err := ai.im.Memory.Word(capability + ghc.BaseOfCapability + ghc.BaseCapabilityNo)
		if err != nil || uint32(number) != uint32(i) {
			continue // not made yet, or no capability
		}
		w, err := ai.im.Memory.Word(capability + ghc.BaseOfCapability + ai.totalAllocated)
		if err == nil {
			words[uint16(i)] = w
		}
	}
	return words, nil
}

// capabilities returns the addresses of the process's capabilities.
func (ai *image) capabilities() ([]uint64, error) {
	s, bias := ai.sites, ai.bias
	if s.Count == 0 {
		return nil, fmt.Errorf("process %d has no readable list of capabilities", ai.im.PID)
	}
	n, err := ai.im.Memory.Word(s.Count + bias)
	if err != nil {
		return nil, err
	}
	n &= math.MaxUint32
	array := s.Array + bias
	switch {
	case s.Array == 0:
		// A library without its symbol table exports only the first.
		if n != 1 || s.Main == 0 {
			return nil, fmt.Errorf("process %d has no readable list of capabilities", ai.im.PID)
		}
		return []uint64{s.Main + bias}, nil
	case !s.InPlace:
		first, err := ai.im.Memory.Word(array)
		if err != nil {
			return nil, err
		}
		if s.Main == 0 || first != s.Main+bias {
			array = first
		}
	}
	capabilities := make([]uint64, min(n, maxCapabilities))
	return capabilities, ai.im.Memory.Words(array, capabilities)
}

// reading holds what the probes of an image have counted by a time, and what it had allocated
// by then if known is set.
type reading struct {
	account bpf.AllocAccount
	words   uint64
	known   bool
	at      uint64 // ns
}

// read takes a reading.
func (a *allocation) read(ai *image) (r reading, err error) {
	if each, err := ai.readWords(); err == nil {
		for _, w := range each {
			r.words += w
		}
		r.known = true
	}
	r.at = perf.Monotonic()
	r.account, err = a.host.Walker.Account(ai.im.Incarnation)
	return r, err
}

// since returns what was counted between two readings.
func (r *reading) since(before *reading, site bpf.AllocSite) count {
	if !before.known || !r.known || r.words < before.words {
		return count{} // not known, or capabilities went away
	}
	return count{
		hits:  float64(r.account.Hits[site] - before.account.Hits[site]),
		large: float64(r.account.Large - before.account.Large),
		bytes: 8 * float64(r.words-before.words),
	}
}

// poll updates how much the process has allocated, and at what rate.
func (ai *image) poll(r *reading) {
	if !r.known || r.words < ai.words {
		return // capabilities went away
	}
	if ai.readAt != 0 && r.at > ai.readAt {
		ai.byteRate = 8 * float64(r.words-ai.words) * 1e9 / float64(r.at-ai.readAt)
	}
	ai.words, ai.readAt = r.words, r.at
	if r.words > 0 {
		ai.polls++
	}
}
