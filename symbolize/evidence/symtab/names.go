package symtab

import (
	"hash/maphash"
	"math/bits"
)

// names is a set of the names of symbols. A large program has a million, which a map takes five
// times as long to hold.
type names struct {
	all  []string
	seed maphash.Seed
	// slots hold positions in all, plus one: a name's is at its hash, or in the next that was free.
	slots []uint32
}

func newNames(symbols Symbols) *names {
	var all []string
	symbols.EachNamed("", "", func(_ int, name string) { all = append(all, name) })
	n := &names{all: all, seed: maphash.MakeSeed(), slots: make([]uint32, 2<<bits.Len(uint(len(all))))}
	for i := range all {
		if at := n.find(all[i]); n.slots[at] == 0 {
			n.slots[at] = uint32(i) + 1
		}
	}
	return n
}

// find returns the slot of a name, or the free one where it would be.
func (n *names) find(name string) uint64 {
	mask := uint64(len(n.slots) - 1)
	at := maphash.String(n.seed, name) & mask
	for n.slots[at] != 0 && n.all[n.slots[at]-1] != name {
		at = (at + 1) & mask
	}
	return at
}

func (n *names) has(name string) bool { return n.slots[n.find(name)] != 0 }
