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

// Registers gives how many words a thread's registers are, 0 for an unknown
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

// Range is a stretch of addresses, [Lo, Hi).
type Range struct{ Lo, Hi uint64 }

// Segment is a stretch of memory.
type Segment struct {
	Address uint64
	Bytes   []byte
}

// Rule tells where a register's value in the calling frame is. Offsets are from
// the canonical frame address (CFA).
type Rule struct {
	Kind   RuleKind
	Offset int64
}

// RuleKind sorts rules.
type RuleKind uint8

const (
	RuleSame            RuleKind = iota // unchanged
	RuleAt                              // saved at CFA + Offset
	RuleValue                           // is CFA + Offset
	RuleUnknown                         // lost; of the return address: there is no caller
	RuleOther                           // an expression, which this format cannot say
	RuleFromCFARegister                 // saved at the CFA register's value + Offset
	numRuleKinds
)

// Row is one row of a call-frame table: what holds from Lo up to Hi. Registers
// have DWARF's numbers.
type Row struct {
	Lo, Hi      uint64
	Haskell     bool // the CFA is that of the STG stack: at it is the caller's info pointer
	Signal      bool // the caller was interrupted, not called from
	Deref       bool // the CFA is not register + offset but the word there
	CFARegister uint8
	CFAOffset   int64
	Return      Rule
	Saved       []SavedRegister
}

// SavedRegister is the rule of one callee-saved register. Those without one are
// unchanged.
type SavedRegister struct {
	Register uint8
	Rule     Rule
}

// Name is an address in words: "Main_down_info", "near base_GHCziBase_map_info+0x40".
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

// Name gives an address in words, "" if the snapshot has none for it.
func (s *Snapshot) Name(address uint64) string {
	i, ok := slices.BinarySearchFunc(s.Names, address, func(n Name, a uint64) int { return cmp.Compare(n.Address, a) })
	if !ok {
		return ""
	}
	return s.Names[i].Text
}

// Join sorts segments and makes one of those that touch or overlap. Where two
// overlap they must agree.
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
