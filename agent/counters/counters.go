// Package counters reads what the run-time system of a process counts by itself, from the process's
// memory: nothing is put into the process. What is read may be torn, when a collection ends meanwhile,
// and is what the program says; callers check that it makes sense.
package counters

import (
	"encoding/binary"
	"errors"

	"ccagent/agent/process"
	"ccagent/internal/ghc"
)

// RTS is what a run-time system has counted by the end of its last collection, in bytes.
type RTS struct {
	Collections, Major uint64 // the number of all, and of those of the oldest generation
	Allocated, Copied  uint64 // since the start
	// Live is what the last collection left: one of a young generation takes the old ones for live.
	Live  uint64
	InUse uint64 // of memory that was taken from the operating system
}

// ErrNoCounters is returned where the run-time system's counters cannot be found by a symbol.
var ErrNoCounters = errors.New("the run-time system's symbols do not say where its counters are")

// Read reads the counters of a process.
func Read(im *process.Image) (c RTS, err error) {
	if im.RTS == nil {
		return c, ErrNoCounters
	}
	symbols, err := im.RTS.RTSSymbols()
	if err != nil {
		return c, err
	}
	at := symbols.Addr(ghc.SymStats)
	if at == 0 {
		return c, ErrNoCounters
	}
	var raw [ghc.StatsGC + ghc.GCDetailsInUse + 8]byte
	if _, err := im.Memory.ReadAt(raw[:], int64(at+im.BiasOf(im.RTS))); err != nil {
		return c, err
	}
	word := func(at int) uint64 { return binary.NativeEndian.Uint64(raw[at:]) }
	return RTS{
		Collections: uint64(binary.NativeEndian.Uint32(raw[ghc.StatsGCs:])),
		Major:       uint64(binary.NativeEndian.Uint32(raw[ghc.StatsMajorGCs:])),
		Allocated:   word(ghc.StatsAllocated), Copied: word(ghc.StatsCopied),
		Live: word(ghc.StatsGC + ghc.GCDetailsLive), InUse: word(ghc.StatsGC + ghc.GCDetailsInUse),
	}, nil
}

// Since is what was counted since an earlier reading. Counters that have gone back have not moved.
func (c RTS) Since(before RTS) RTS {
	ahead := func(now, then uint64) uint64 { return now - min(now, then) }
	return RTS{
		Collections: ahead(c.Collections, before.Collections), Major: ahead(c.Major, before.Major),
		Allocated: ahead(c.Allocated, before.Allocated), Copied: ahead(c.Copied, before.Copied),
		Live: c.Live, InUse: c.InUse,
	}
}
