package snapshot

import (
	"cmp"
	"slices"
)

// Arch names a register map.
type Arch string

const (
	X86   Arch = "x86"
	ARM64 Arch = "arm64"
)

// Registers returns the number of words of a thread's registers, 0 for an unknown
// architecture.
func (a Arch) Registers() int {
	switch a {
	case X86:
		return 21
	case ARM64:
		return 34
	}
	return 0
}

// Range is a range of addresses, [Lo, Hi).
type Range struct{ Lo, Hi uint64 }

// Segment is a range of memory with its contents.
type Segment struct {
	Address uint64
	Bytes   []byte
}

// Rule describes where a register's value in the calling frame is. Offsets are relative to
// the canonical frame address (CFA).
type Rule struct {
	Kind   RuleKind
	Offset int64
}

// RuleKind is the kind of a Rule.
type RuleKind uint8

const (
	RuleSame            RuleKind = iota // unchanged
	RuleAt                              // saved at CFA + Offset
	RuleValue                           // is CFA + Offset
	RuleUnknown                         // lost; for the return address: there is no caller
	RuleOther                           // an expression, which this format cannot represent
	RuleFromCFARegister                 // saved at the CFA register's value + Offset
	numRuleKinds
)

// Row is one row of a call-frame table, valid from Lo up to Hi. Registers have DWARF
// numbers.
type Row struct {
	Lo, Hi      uint64
	Haskell     bool // the CFA is on the STG stack: the caller's info pointer is at it
	Signal      bool // the caller was interrupted by a signal, it made no call
	Deref       bool // the CFA is the word at register + offset, not the sum itself
	CFARegister uint8
	CFAOffset   int64
	Return      Rule
	Saved       []SavedRegister
}

// SavedRegister is the rule of one callee-saved register. Registers without one are
// unchanged.
type SavedRegister struct {
	Register uint8
	Rule     Rule
}

// Name is an address with its description: "Main_down_info", "near
// base_GHCziBase_map_info+0x40".
type Name struct {
	Address uint64
	Text    string
}

// Snapshot is one interrupted thread.
type Snapshot struct {
	Arch      Arch
	GHC       string // "9.0.2"
	Threaded  bool
	Profiled  bool
	Comment   string
	Registers []uint64
	Text      [2]Range
	Task      uint64
	Memory    []Segment // sorted; neither touching nor overlapping
	Rows      []Row     // sorted by Lo
	Names     []Name    // sorted by Address
}

// Name returns the description of an address, "" if the snapshot has none.
func (s *Snapshot) Name(address uint64) string {
	i, ok := slices.BinarySearchFunc(s.Names, address, func(n Name, a uint64) int { return cmp.Compare(n.Address, a) })
	if !ok {
		return ""
	}
	return s.Names[i].Text
}

// Join sorts segments and merges those that are adjacent or overlap. Overlapping segments
// must agree.
func Join(segments []Segment) []Segment {
	sorted := slices.Clone(segments)
	slices.SortStableFunc(sorted, func(a, b Segment) int { return cmp.Compare(a.Address, b.Address) })
	var joined []Segment
	for _, s := range sorted {
		if len(s.Bytes) == 0 {
			continue
		}
		if n := len(joined); n > 0 {
			last := &joined[n-1]
			if skip := s.Address - last.Address; skip <= uint64(len(last.Bytes)) {
				if have := uint64(len(last.Bytes)) - skip; have < uint64(len(s.Bytes)) {
					last.Bytes = append(last.Bytes[:len(last.Bytes):len(last.Bytes)], s.Bytes[have:]...)
				}
				continue
			}
		}
		joined = append(joined, s)
	}
	return joined
}
