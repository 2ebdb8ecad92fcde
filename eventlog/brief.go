package eventlog

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// BriefSample is a compact sample for sums: it has no time and no thread. Nearly all samples
// fit into one.
type BriefSample struct {
	Weight uint32 // less than 1<<BriefWeightBits
	Node   uint32
	Event  uint8
	Stop   StopReason
	Flags  uint8 // SampleFlags
}

// BriefWeightBits is the width of BriefSample.Weight.
const BriefWeightBits = 28

// Brief returns a sample as a BriefSample, and false if it does not fit.
func (s *Sample) Brief() (BriefSample, bool) {
	if s.Weight>>BriefWeightBits != 0 || s.Event > math.MaxUint8 || s.Flags > math.MaxUint8 || s.Centres != 0 {
		return BriefSample{}, false
	}
	return BriefSample{uint32(s.Weight), s.Node, uint8(s.Event), s.Stop, uint8(s.Flags)}, true
}

// NextBriefs is like NextSamples, for callers that need only sums. It also stops before a
// sample that does not fit into a BriefSample; NextSamples reads that. Time returns the last
// sample's time.
func (r *Reader) NextBriefs(out []BriefSample) int {
	time, last, end := r.sampleRun()
	n, pos, before, buf := 0, r.pos, r.times[1], r.buf
	for n < len(out) && end-pos >= 12 && len(buf)-pos >= shortSpace {
		b := (*[shortSpace]byte)(buf[pos:])
		at, size := binary.BigEndian.Uint64(b[2:]), int(binary.BigEndian.Uint16(b[10:]))
		if binary.BigEndian.Uint16(b[:]) != IDSample || at < time || at > last || size > end-pos-12 || !out[n].decode(b, size) {
			break
		}
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

const (
	maxShort = 32
	// shortSpace is the number of bytes that decode may look at, counted from an event's
	// first byte, whatever the event's size.
	shortSpace = 12 + maxShort + 4
)

// decode reads a payload of the usual form: at most 32 bytes, with the ten fields that are
// always there and no cost centre, no field longer than 4 bytes, and event, stop reason and
// flags of one byte. It returns false for any other. It finds the ends of fields in all
// bytes at once.
func (s *BriefSample) decode(b *[shortSpace]byte, size int) bool {
	if uint(size-10) > maxShort-10 {
		return false
	}
	ends := lastBytes(binary.LittleEndian.Uint64(b[12:])) | lastBytes(binary.LittleEndian.Uint64(b[20:]))<<8 |
		lastBytes(binary.LittleEndian.Uint64(b[28:]))<<16
	if size > 24 {
		ends |= lastBytes(binary.LittleEndian.Uint64(b[36:])) << 24
	}
	all := uint64(1)<<(size&63) - 1
	ends &= all
	more := all &^ ends
	more &= more >> 1
	if more&(more>>2) != 0 || ends&1 == 0 || ends <= all>>1 || uint(bits.OnesCount64(ends)-10) > 2 {
		return false
	}
	rest := ends & (ends - 1) // without that of the event, the CPU, …
	rest &= rest - 1
	rest &= rest - 1
	rest &= rest - 1
	rest &= rest - 1
	tso := bits.TrailingZeros64(rest)
	rest &= rest - 1
	weight := bits.TrailingZeros64(rest)
	rest &= rest - 1
	node := bits.TrailingZeros64(rest)
	if ends>>(node&63)&0b111 != 0b111 {
		return false
	}
	s.Event = b[12]
	s.Weight = shortVarint(b, tso+1, weight-tso)
	s.Node = shortVarint(b, weight+1, node-weight)
	s.Stop, s.Flags = StopReason(b[13+(node&31)]), b[14+(node&31)]
	return true
}

// lastBytes returns a mask with a bit for each byte that ends a varint.
func lastBytes(x uint64) uint64 {
	return (^x & 0x8080808080808080 >> 7) * 0x0102040810204080 >> 56
}

// shortVarint reads the varint of n ≤ 4 bytes at i of the payload.
func shortVarint(b *[shortSpace]byte, i, n int) uint32 {
	x := binary.LittleEndian.Uint32(b[12+(i&31):]) & (0xffffffff >> ((32 - 8*n) & 31))
	return x&0x7f | x>>1&0x3f80 | x>>2&0x1fc000 | x>>3&0xfe00000
}
