package eventlog

import (
	"encoding/binary"
	"math"
)

// TimedSample is a sample with its time.
type TimedSample struct {
	Time uint64 // ns since the log's begin
	Sample
}

// NextSamples reads consecutive samples into out and returns their number. It stops at
// anything that Next must look at more closely: both together read what Next alone would
// read. It is the fast way to read a log's many samples.
func (r *Reader) NextSamples(out []TimedSample) int {
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
		if !s.decode(b[12:total]) {
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

// decode does what layout does, of a payload that holds the fields and nothing else. It reports
// whether it did.
func (s *Sample) decode(b []byte) bool {
	var v [sampleFields]uint64
	i := 0
	for k := range v {
		switch {
		case i < len(b) && b[i] < 0x80:
			v[k] = uint64(b[i])
			i++
		case i == len(b):
			return s.setFields(&v)
		default:
			if v[k], i = varint(b, i); i < 0 {
				return false
			}
		}
	}
	return i == len(b) && s.setFields(&v)
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
