package eventlog

import (
	"encoding/binary"
	"math/bits"
)

// Origin is where a sample comes from: the fields of Sample by these names. A program's samples have few.
type Origin struct {
	Event, CPU, PID, TID, Capability uint32
	TSO                              uint64
}

// originFields is the number of a sample's fields that its origin is, which come first.
const originFields = 6

// MaxOrigins is the number of origins that have a number at once.
const MaxOrigins = originSets * originWays

// A set holds origins by their keys' hash; with few in each, looking one up touches little memory.
const (
	originBits = 10
	originSets = 1 << originBits
	originWays = 4
)

// Origins numbers the origins of samples while a log is read, below MaxOrigins. It knows an origin by its
// encoding, so that it needs to be decoded but once. A number is given to another origin when there are
// too many.
type Origins struct {
	// New has the origins that the last call of NextSamples has given numbers to, in order.
	New []NewOrigin

	keys [originSets][originWays]originKey
	next [originSets]uint8 // the place in the set that the next origin gets
}

// NewOrigin is an origin with its number, which samples from a position on have.
type NewOrigin struct {
	At     int
	Number uint16
	Origin
}

// originKey is the complement of an origin's encoding, and of the zero bytes that fill it up. The last byte
// of a varint has its highest bit clear, so of six no key is zero, and none begins another.
type originKey [3]uint64

const ends = 0x8080808080808080 // of the last bytes of varints this bit is clear

// keyOfOrigin returns the key of the origin that a payload of a size begins with, and its length. The key is
// zero where the origin is longer than a key, or not all there.
func keyOfOrigin(b []byte, size int) (key originKey, n int) {
	if len(b) < 8*len(key) {
		b = append(make([]byte, 0, 8*len(key)), b...)[:8*len(key)]
	}
	left := originFields
	for i := range key {
		w := binary.LittleEndian.Uint64(b[8*i:])
		last := ^w & ends
		if has := bits.OnesCount64(last); has < left {
			left -= has
			key[i] = ^w
			continue
		}
		for range left - 1 {
			last &= last - 1
		}
		used := bits.TrailingZeros64(last) + 1
		if n = 8*i + used/8; n > size {
			break
		}
		key[i] = ^(w & (^uint64(0) >> (64 - used)))
		for i++; i < len(key); i++ {
			key[i] = ^uint64(0)
		}
		return key, n
	}
	return originKey{}, 0
}

func (k *originKey) set() uint64 {
	const odd = 0x9e3779b97f4a7c15 // 2^64 by the golden ratio: spreads keys that are close to each other
	h := ((k[0]*odd ^ k[1]) * odd) ^ k[2]*odd
	return h >> (64 - originBits)
}

// number returns the number of an origin, if it has one.
func (o *Origins) number(key *originKey) (uint16, bool) {
	if *key == (originKey{}) {
		return 0, false
	}
	set := key.set()
	for way := range &o.keys[set] {
		if o.keys[set][way] == *key {
			return uint16(set*originWays) + uint16(way), true
		}
	}
	return 0, false
}

// add gives an origin a number, from the sample at a position on. One without a key has it for that sample
// alone.
func (o *Origins) add(key *originKey, at int, origin Origin) uint16 {
	set := key.set()
	way := o.next[set]
	o.next[set] = (way + 1) % originWays
	o.keys[set][way] = *key
	number := uint16(set*originWays) + uint16(way)
	o.New = append(o.New, NewOrigin{at, number, origin})
	return number
}
