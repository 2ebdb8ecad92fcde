package eventlog

import (
	"encoding/binary"
	"math"
)

// PackedSample is a sample as NextSamples reads it, with its time.
type PackedSample struct {
	Time         uint64 // ns since the log's begin
	Weight       uint64
	SkippedWords uint64
	Node         uint32
	FoldedFrames uint32
	Centres      uint32
	Flags        SampleFlags
	Stop         StopReason
	Origin       uint16 // its number, in Origins
}

// Sample gives the sample as Next does.
func (s *PackedSample) Sample(o *Origin) Sample {
	return Sample{
		Event: o.Event, CPU: o.CPU, PID: o.PID, TID: o.TID, Capability: o.Capability, TSO: o.TSO,
		Weight: s.Weight, Node: s.Node, Stop: s.Stop, Flags: s.Flags,
		SkippedWords: s.SkippedWords, FoldedFrames: s.FoldedFrames, Centres: s.Centres,
	}
}

// NextSamples reads consecutive samples into out and returns their number. It stops at
// anything that Next must look at more closely: both together read what Next alone would
// read. It is the fast way to read a log's many samples.
//
// Where samples come from is read only where it is new to origins, which has it then.
func (r *Reader) NextSamples(out []PackedSample, origins *Origins) int {
	origins.New = origins.New[:0]
	time, last, end := r.sampleRun()
	n := 0
	for n < len(out) && end-r.in.pos >= 12 {
		b := r.in.buf[r.in.pos:end]
		at := binary.BigEndian.Uint64(b[2:])
		total := 12 + int(binary.BigEndian.Uint16(b[10:]))
		// Times that go on within the block's are the ones that agree with it.
		if binary.BigEndian.Uint16(b) != IDSample || at < time || at > last || total > len(b) {
			break
		}
		s := &out[n]
		if !s.decode(r.in.buf[r.in.pos+12:], total-12, origins, n) {
			break
		}
		s.Time = at
		r.in.pos += total
		n++
		if at != time {
			r.judge.times[1], r.judge.times[0] = time, at
			time = at
		}
	}
	return n
}

// sampleRun returns what the next samples must satisfy: times between the last event's and
// the block's last one, and an end within the buffer. If no sample can follow, end is at
// most pos.
func (r *Reader) sampleRun() (time, last uint64, end int) {
	if !r.started || r.pending != nil || r.scan.on || r.block.end == 0 || !r.Declares(IDSample) {
		return 0, 0, 0
	}
	first, last := r.block.times[0], r.block.times[1]
	time = r.judge.times[0]
	if time < first || time > last {
		return 0, 0, 0
	}
	end = r.in.end
	if room := r.block.end - r.in.base; room < int64(end) {
		end = int(room)
	}
	return time, last, end
}

// The payload of a sample is its fields as varints. Of the last three, those that are zero are
// left out: both of SkippedWords and FoldedFrames, and Centres. Another writer may leave out any
// at the end.
const (
	sampleFields   = 13
	withoutSkipped = 10
	withoutCentres = 12
)

func (s *Sample) fields() [sampleFields]uint64 {
	return [...]uint64{
		uint64(s.Event), uint64(s.CPU), uint64(s.PID), uint64(s.TID), uint64(s.Capability), s.TSO, s.Weight, uint64(s.Node),
		uint64(s.Stop), uint64(s.Flags), s.SkippedWords, uint64(s.FoldedFrames), uint64(s.Centres),
	}
}

// setFields sets all fields, and reports whether each has room for its number.
func (s *Sample) setFields(v *[sampleFields]uint64) bool {
	s.Event, s.CPU, s.PID, s.TID, s.Capability = uint32(v[0]), uint32(v[1]), uint32(v[2]), uint32(v[3]), uint32(v[4])
	s.TSO, s.Weight, s.Node, s.Stop, s.Flags = v[5], v[6], uint32(v[7]), StopReason(v[8]), SampleFlags(v[9])
	s.SkippedWords, s.FoldedFrames, s.Centres = v[10], uint32(v[11]), uint32(v[12])
	return (v[0]|v[1]|v[2]|v[3]|v[4]|v[7]|v[11]|v[12]) <= math.MaxUint32 && v[8] <= math.MaxUint8 && v[9] <= math.MaxUint16
}

func (s *Sample) layout(c *codec) {
	if !c.encoding {
		var v [sampleFields]uint64
		for i := range v {
			v[i] = c.uvarint()
		}
		if !s.setFields(&v) {
			c.tooLarge()
		}
		return
	}
	v, n := s.fields(), sampleFields
	switch {
	case s.Centres != 0:
	case s.SkippedWords == 0 && s.FoldedFrames == 0:
		n = withoutSkipped
	default:
		n = withoutCentres
	}
	for _, x := range v[:n] {
		c.buf = binary.AppendUvarint(c.buf, x)
	}
}

// decode does what layout does, of a payload of a size that holds the fields and nothing else. It
// reports whether it did. The sample is the n-th that is read, and what follows it in b does not matter.
func (s *PackedSample) decode(b []byte, size int, origins *Origins, n int) bool {
	var v [sampleFields]uint64
	key, i := keyOfOrigin(b, size)
	number, known := origins.number(&key)
	b = b[:size]
	k := originFields
	if !known {
		k, i = 0, 0
	}
	for ; k < len(v) && i < len(b); k++ {
		if b[i] < 0x80 {
			v[k] = uint64(b[i])
			i++
		} else if v[k], i = varint(b, i); i < 0 {
			return false
		}
	}
	if i != len(b) {
		return false
	}
	if !known {
		var whole Sample
		if !whole.setFields(&v) {
			return false
		}
		number = origins.add(&key, n, Origin{
			Event: whole.Event, CPU: whole.CPU, PID: whole.PID, TID: whole.TID, Capability: whole.Capability, TSO: whole.TSO,
		})
	} else if v[7]|v[11]|v[12] > math.MaxUint32 || v[8] > math.MaxUint8 || v[9] > math.MaxUint16 {
		return false
	}
	s.Weight, s.Node, s.Stop, s.Flags = v[6], uint32(v[7]), StopReason(v[8]), SampleFlags(v[9])
	s.SkippedWords, s.FoldedFrames, s.Centres, s.Origin = v[10], uint32(v[11]), uint32(v[12]), number
	return true
}

// varint reads a varint at an offset, and returns the offset behind it; −1 if there is none.
func varint(b []byte, i int) (uint64, int) {
	var v uint64
	for shift := 0; i < len(b); shift += 7 {
		x := b[i]
		i++
		if shift == 63 && x > 1 {
			return 0, -1
		}
		v |= uint64(x&0x7f) << shift
		if x < 0x80 {
			return v, i
		}
		if shift == 63 {
			return 0, -1
		}
	}
	return 0, -1
}
