package graph

import (
	"cmp"
	"encoding/binary"
	"io"
	"slices"

	"ccagent/heap"
)

// Region is a stretch of a module: code and constants of its file, or static data as the process
// has them.
type Region struct {
	Start, Length uint64 // run-time addresses
	// Data is set where static closures may be.
	Data bool
	// Memory has the bytes from Offset on.
	Memory io.ReaderAt
	Offset int64
}

// Block is a group of blocks of the heap with its words: of a pinned block, a large byte array and a
// compact region at least the first heap.HeadWords, of all others those in use.
type Block struct {
	heap.Group
	Words []uint64
}

// Snapshot is what was copied of a process.
type Snapshot struct {
	GHCVersion         string
	Profiled, Threaded bool
	Regions            []Region
	Blocks             []Block
	Stable             []uint64 // closures that stable pointers lead to
	// Filling are starts of blocks that capabilities fill with pinned byte arrays. They are not in a
	// census, as in none of the run-time system's.
	Filling []uint64
	// AtRest is set if the heap was copied between collections: threads that have ended are no roots.
	AtRest bool
	// Running are threads that ran Haskell code then.
	Running []heap.Running
}

// modules reads the program's modules by run-time addresses.
type modules struct {
	regions []Region // by address
	last    int
}

func newModules(regions []Region) *modules {
	m := &modules{regions: slices.Clone(regions)}
	slices.SortFunc(m.regions, func(a, b Region) int { return cmp.Compare(a.Start, b.Start) })
	return m
}

func (m *modules) find(at uint64) *Region {
	if m.last < len(m.regions) {
		if r := &m.regions[m.last]; at-r.Start < r.Length {
			return r
		}
	}
	i, found := slices.BinarySearchFunc(m.regions, at, func(r Region, at uint64) int { return cmp.Compare(r.Start, at) })
	if !found {
		i--
	}
	if i < 0 || at-m.regions[i].Start >= m.regions[i].Length {
		return nil
	}
	m.last = i
	return &m.regions[i]
}

// ReadAt implements io.ReaderAt within one region.
func (m *modules) ReadAt(b []byte, at int64) (int, error) {
	r := m.find(uint64(at))
	if r == nil {
		return 0, io.EOF
	}
	in := uint64(at) - r.Start
	n := min(uint64(len(b)), r.Length-in)
	k, err := r.Memory.ReadAt(b[:n], r.Offset+int64(in))
	if err == nil && n < uint64(len(b)) {
		err = io.ErrUnexpectedEOF
	}
	return k, err
}

func (m *modules) word(at uint64) (uint64, bool) {
	var b [8]byte
	if at > 1<<62 {
		return 0, false
	}
	_, err := m.ReadAt(b[:], int64(at))
	return binary.LittleEndian.Uint64(b[:]), err == nil
}
