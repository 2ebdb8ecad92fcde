package cfi

import (
	"encoding/binary"
	"sort"
)

// Row begins a range of addresses that one rule holds for; the next row ends
// it.
type Row struct {
	Addr uint32 // from Table.Base
	Rule uint32 // index into Table.Rules
}

// RowSize is the number of bytes of an encoded Row.
const RowSize = 8

// Append encodes a row, little-endian: u32 addr, u32 rule.
func (r Row) Append(b []byte) []byte {
	b = binary.LittleEndian.AppendUint32(b, r.Addr)
	return binary.LittleEndian.AppendUint32(b, r.Rule)
}

// Table is the call frame information of one module. It is immutable.
type Table struct {
	Base  uint64 // module address
	Rows  []Row  // sorted by Addr, each once; the last has KindNone
	Rules []Rule // each once; Rules[0] is KindNone
	Stats Stats
}

// Stats are counts of what a table was made of.
type Stats struct {
	Haskell   int // FDEs of GHC's with code
	Malformed int // entries that could not be read, in part or as a whole
	Repaired  int // GHC's FDEs whose range was wrong
	Code      int // ranges of Haskell code that rows were computed for
	// FirstFault is the first malformed entry, nil if there was none.
	FirstFault *EntryError
}

// Lookup returns the rule at a module address. Where no row covers it, that is
// the rule of KindNone.
func (t *Table) Lookup(addr uint64) Rule {
	if addr < t.Base {
		return Rule{}
	}
	rel := addr - t.Base
	i := sort.Search(len(t.Rows), func(i int) bool { return uint64(t.Rows[i].Addr) > rel })
	if i == 0 {
		return Rule{}
	}
	return t.Rules[t.Rows[i-1].Rule]
}
