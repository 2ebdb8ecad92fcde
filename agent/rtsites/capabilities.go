package rtsites

import (
	"errors"
	"math"

	"ccagent/internal/ghc"
)

// Capabilities holds the addresses of the variables that lead to a run-time system's
// capabilities; 0 for one that was not found.
type Capabilities struct {
	Array, Count, Main uint64
	// InPlace is set if the variable is an array of pointers (GHC 9.6), not a pointer to one.
	// An array of one element is recognised by its content.
	InPlace bool
}

// Known reports whether capabilities can be found by the variables.
func (c Capabilities) Known() bool { return c.Count != 0 && (c.Array != 0 || c.Main != 0) }

func (s *Symbols) capabilities() Capabilities {
	return Capabilities{
		Array: s.Addr(ghc.SymCapabilities), Count: s.Addr(ghc.SymNCapabilities), Main: s.Addr(ghc.SymMainCapability),
		InPlace: s.Named(ghc.SymCapabilities).Size > 8,
	}
}

// Memory is a process's, by words of 8 bytes.
type Memory interface {
	Word(addr uint64) (uint64, error)
	Words(addr uint64, words []uint64) error
}

// ErrNoCapabilities is returned where a process's list of capabilities cannot be found.
var ErrNoCapabilities = errors.New("the process has no readable list of capabilities")

// MaxCapabilities bounds the capabilities that are read; the process says how many there are.
const MaxCapabilities = 1024

// Read returns the addresses of a process's capabilities. bias is where the run-time system's module lies.
func (c Capabilities) Read(m Memory, bias uint64) ([]uint64, error) {
	if c.Count == 0 {
		return nil, ErrNoCapabilities
	}
	n, err := m.Word(c.Count + bias)
	if err != nil {
		return nil, err
	}
	n &= math.MaxUint32
	array := c.Array + bias
	switch {
	case c.Array == 0:
		// A library without its symbol table exports only the first.
		if n != 1 || c.Main == 0 {
			return nil, ErrNoCapabilities
		}
		return []uint64{c.Main + bias}, nil
	case !c.InPlace:
		first, err := m.Word(array)
		if err != nil {
			return nil, err
		}
		if c.Main == 0 || first != c.Main+bias {
			array = first
		}
	}
	capabilities := make([]uint64, min(n, MaxCapabilities))
	return capabilities, m.Words(array, capabilities)
}
