package eventlog

import (
	"encoding/binary"
	"math/bits"
)

// BriefSample is what sums over samples need of a sample: all but whose it was.
type BriefSample struct {
	Time    uint64 // ns since the log's begin
	Weight  uint64
	Event   uint32
	Node    uint32
	Centres uint32
	Flags   SampleFlags
	Stop    StopReason
}

// Brief gives what a BriefSample holds of a sample.
func (s *TimedSample) Brief() BriefSample {
	return BriefSample{Time: s.Time, Weight: s.Weight, Event: s.Event, Node: s.Node, Centres: s.Centres, Flags: s.Flags, Stop: s.Stop}
}

// NextBriefs is NextSamples for who needs only sums: it reads the same samples.
func (r *Reader) NextBriefs(out []BriefSample) int {
	time, last, end := r.sampleRun()
	n, pos, before, buf := 0, r.pos, r.times[1], r.buf
	for n < len(out) && end-pos >= 12 {
		b, s := buf[pos:], &out[n]
		at, size := binary.BigEndian.Uint64(b[2:]), int(binary.BigEndian.Uint16(b[10:]))
		if binary.BigEndian.Uint16(b) != IDSample || at < time || at > last || size > end-pos-12 {
			break
		}
		if (len(b) < shortSpace || !s.decodeShort((*[shortSpace]byte)(b), size)) && !s.decode(b[12:12+size]) {
			break
		}
		s.Time = at
		pos += 12 + size
		n++
		if at != time {
			before, time = time, at
		}
	}
	if n > 0 {
		r.pos, r.times = pos, [2]uint64{time, before}
	}
	return n
}

func (s *BriefSample) decode(b []byte) bool {
	var whole TimedSample
	if !whole.decode(b) {
		return false
	}
	*s = whole.Brief()
	return true
}

const (
	maxShort = 24
	// shortSpace is how many bytes decodeShort may look at from an event's first on,
	// whatever its size.
	shortSpace = 12 + 32 + 4
)

// decodeShort reads a payload as nearly all are: of at most 24 bytes, with the ten
// fields that are always there, none of them longer than 4 bytes, and the first
// and the last two of one byte. It reports false for any other, which decode
// reads. It finds where fields end in all bytes at once: the event's field begins the
// payload, and flags, stop reason, node and weight are its last before the absent ones.
func (s *BriefSample) decodeShort(b *[shortSpace]byte, size int) bool {
	if uint(size-10) > maxShort-10 {
		return false
	}
	ends := lastBytes(binary.LittleEndian.Uint64(b[12:])) | lastBytes(binary.LittleEndian.Uint64(b[20:]))<<8
	if size > 16 {
		ends |= lastBytes(binary.LittleEndian.Uint64(b[28:])) << 16
	}
	size &= 31
	all := uint32(1)<<size - 1
	ends &= all
	more := all &^ ends
	tail := uint32(0b111) << ((size - 3) & 31) // ends of node, stop reason and flags
	if more &= more >> 1; more&(more>>2) != 0 || bits.OnesCount32(ends) != 10 || ends&1 == 0 || ends&tail != tail {
		return false
	}
	ends ^= tail
	node := bits.Len32(ends)
	ends ^= 1 << ((node - 1) & 31)
	weight := bits.Len32(ends)
	s.Event = uint32(b[12])
	s.Weight = uint64(shortVarint(b, weight, node-weight))
	s.Node = shortVarint(b, node, size-2-node)
	s.Stop, s.Flags = StopReason(b[10+size]), SampleFlags(b[11+size])
	s.Centres = 0
	return true
}

// lastBytes gives a bit for each byte that ends a varint.
func lastBytes(x uint64) uint32 {
	return uint32((^x & 0x8080808080808080 >> 7) * 0x0102040810204080 >> 56)
}

// shortVarint reads the varint of n ≤ 4 bytes at i of the payload.
func shortVarint(b *[shortSpace]byte, i, n int) uint32 {
	x := binary.LittleEndian.Uint32(b[12+(i&31):]) & (0xffffffff >> ((32 - 8*n) & 31))
	return x&0x7f | x>>1&0x3f80 | x>>2&0x1fc000 | x>>3&0xfe00000
}
