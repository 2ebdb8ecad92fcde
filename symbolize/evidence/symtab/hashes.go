package symtab

import (
	"bytes"
	"math/bits"
	"slices"
	"sort"
)

// hashes are the hashes of a set of names, in order, hashBytes bytes each, the highest first. A name that is not in
// the set is taken for one of it with a probability of a millionth in a program of a million names.
type hashes []byte

const hashBytes = 5

// hashOf is the hash of a name. It is kept between runs.
func hashOf(name string) (h [hashBytes]byte) {
	// FNV-1a, of which the high bits depend on the last bytes too little.
	x := uint64(14695981039346656037)
	for i := range len(name) {
		x = (x ^ uint64(name[i])) * 1099511628211
	}
	high, low := bits.Mul64(x, 0x9e3779b97f4a7c15)
	x = high ^ low
	for i := range h {
		h[i] = byte(x >> (8 * (7 - i)))
	}
	return h
}

// hashesOf gives those of names.
func hashesOf(names []string) hashes {
	all := make([][hashBytes]byte, len(names))
	for i, name := range names {
		all[i] = hashOf(name)
	}
	slices.SortFunc(all, func(a, b [hashBytes]byte) int { return bytes.Compare(a[:], b[:]) })
	all = slices.Compact(all)
	h := make(hashes, 0, hashBytes*len(all))
	for i := range all {
		h = append(h, all[i][:]...)
	}
	return h
}

// decodeHashes takes hashes that were kept; nil if they are none. That they are in order is not looked at: if they are not, names
// are not found.
func decodeHashes(b []byte) hashes {
	if len(b) == 0 || len(b)%hashBytes != 0 {
		return nil
	}
	return b
}

func (h hashes) has(name string) bool {
	want := hashOf(name)
	n := len(h) / hashBytes
	at := func(i int) []byte { return h[i*hashBytes:][:hashBytes] }
	i := sort.Search(n, func(i int) bool { return bytes.Compare(at(i), want[:]) >= 0 })
	return i < n && bytes.Equal(at(i), want[:])
}
