package alloc

import (
	"fmt"
	"math"

	"ccagent/agent/rtsites"
	"ccagent/bpf"
	"ccagent/internal/ghc"
	"ccagent/perf"
)

// readWords reads how much each capability has allocated, in words, from the
// process's memory. Capabilities that cannot be read are left out.
func (ai *image) readWords() (map[uint16]uint64, error) {
	capabilities, err := ai.sites.Read(ai.im.Memory, ai.bias)
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

// counting is what the probes of an image have counted by a time. It takes one system call.
type counting struct {
	account bpf.AllocAccount
	at      uint64 // ns
}

// reading is a counting with what the process had allocated by then, if known is set, which takes a dozen
// reads of its memory.
type reading struct {
	counting
	words uint64
	known bool
	// Since the last collection, in bytes: all, and large objects. 0 if that is not known.
	cycleAll, cycleLarge uint64
}

// counts returns what the run-time system has counted.
func (r *reading) counts() counts {
	c := countsOf(&r.account)
	c.cycleAll, c.cycleLarge = float64(r.cycleAll), float64(r.cycleLarge)
	return c
}

// hits returns how often the probe at a site was hit.
func (r *counting) hits(site bpf.AllocSite) uint64 {
	switch site {
	case bpf.SiteEnd:
		return 0
	case bpf.SiteNursery:
		return r.account.Hits[site] + r.account.Hits[bpf.SiteEnd] // threads return there for other reasons, too
	}
	return r.account.Hits[site]
}

// count reads what the probes of an image have counted.
func (a *allocation) count(ai *image) (c counting, err error) {
	c.account, err = a.host.Walker.Account(ai.im.Incarnation)
	c.at = perf.Monotonic()
	return c, err
}

// read takes a reading.
func (a *allocation) read(ai *image) (r reading, err error) {
	if r.counting, err = a.count(ai); err != nil {
		return r, err
	}
	before, large, err := ai.readCycle()
	r.words, r.known = ai.readTotal(&r.account)
	if again, errAgain := ai.readCollected(); err == nil && errAgain == nil && before/8 == again && r.known && 8*r.words > before {
		r.cycleAll = 8*r.words - before
		r.cycleLarge = min(large, r.cycleAll)
	}
	r.at = perf.Monotonic()
	return r, nil
}

// readTotal reads how much all capabilities have allocated, in words. If there is no list of
// them, as in a library without its symbol table, it is what the last collection has counted, or
// what those capabilities have that probes have seen, if that is more.
func (ai *image) readTotal(account *bpf.AllocAccount) (words uint64, known bool) {
	if each, err := ai.readWords(); err == nil {
		for _, w := range each {
			words += w
		}
		return words, true
	}
	for _, base := range account.Bases {
		if base == 0 {
			continue
		}
		if w, err := ai.im.Memory.Word(base + ai.totalAllocated); err == nil {
			words += w
		}
	}
	if collected, err := ai.readCollected(); err == nil {
		return max(words, collected), true
	}
	return words, words > 0
}

// readCollected reads how much had been allocated at the last collection, in words.
func (ai *image) readCollected() (uint64, error) {
	if ai.sites.Stats == 0 {
		return 0, fmt.Errorf("process %d has no readable counts of collections", ai.im.PID)
	}
	bytes, err := ai.im.Memory.Word(ai.sites.Stats + ai.bias + ghc.StatsAllocated)
	return bytes / 8, err
}

// readCycle reads how much had been allocated at the last collection, and of large objects since,
// in bytes.
func (ai *image) readCycle() (before, large uint64, err error) {
	if ai.sites.Stats == 0 || ai.sites.Generations == 0 {
		return 0, 0, fmt.Errorf("process %d has no readable counts of a cycle", ai.im.PID)
	}
	if before, err = ai.im.Memory.Word(ai.sites.Stats + ai.bias + ghc.StatsAllocated); err != nil {
		return 0, 0, err
	}
	youngest, err := ai.im.Memory.Word(ai.sites.Generations + ai.bias)
	if err != nil {
		return 0, 0, err
	}
	large, err = ai.im.Memory.Word(youngest + ghc.GenerationNewLarge)
	return before, 8 * large, err
}

// allocated returns what the process has allocated since the capture began, in bytes, as of
// the last poll; 0 while it is not known.
func (ai *image) allocated() uint64 { return 8*ai.words - min(ai.ledger.base, 8*ai.words) }

// unlisted returns how many capabilities the run-time system has, and how many of them were seen:
// a library without its symbol table has no list of them, and counts what probes and samples have
// come across. The numbers are equal where there is a list. A process that ended before its count was read has at
// least one.
func (ai *image) unlisted(account *bpf.AllocAccount) (all, seen int) {
	if ai.sites.Array != 0 || ai.capabilitiesInAll == 1 {
		return ai.capabilitiesInAll, ai.capabilitiesInAll
	}
	for _, base := range account.Bases {
		if base != 0 {
			seen++
		}
	}
	return max(ai.capabilitiesInAll, seen, 1), seen
}

// poll updates how much the process has allocated, and at what rate.
func (ai *image) poll(r *reading) {
	if ai.sites.Count != 0 {
		if n, err := ai.im.Memory.Word(ai.sites.Count + ai.bias); err == nil {
			ai.capabilitiesInAll = int(min(n&math.MaxUint32, rtsites.MaxCapabilities))
		}
	}
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
