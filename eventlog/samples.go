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
	for n < len(out) && end-r.pos >= 12 {
		b := r.buf[r.pos:end]
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
		r.pos += total
		n++
		if at != time {
			r.times[1], r.times[0] = time, at
			time = at
		}
	}
	return n
}

// sampleRun returns what the next samples must satisfy: times between the last event's and
// the block's last one, and an end within the buffer. If no sample can follow, end is at
// most pos.
func (r *Reader) sampleRun() (time, last uint64, end int) {
	if !r.started || r.pending != nil || r.scan.on || r.blockEnd == 0 || !r.Declares(IDSample) {
		return 0, 0, 0
	}
	first, last := r.blockTimes[0], r.blockTimes[1]
	time = r.times[0]
	if time < first || time > last {
		return 0, 0, 0
	}
	end = r.end
	if room := r.blockEnd - r.base; room < int64(end) {
		end = int(room)
	}
	return time, last, end
}

// decode reads a payload that holds all fields and nothing else, and reports whether it did.
// It must agree with layout, field by field.
func (s *TimedSample) decode(b []byte) bool {
	var v [10]uint64
	i := 0
	for k := range v {
		if i < len(b) && b[i] < 0x80 {
			v[k] = uint64(b[i])
			i++
		} else if v[k], i = longVarint(b, i); i < 0 {
			return false
		}
	}
	if (v[0]|v[1]|v[2]|v[3]|v[4]|v[7]) > math.MaxUint32 || v[8] > math.MaxUint8 || v[9] > math.MaxUint16 {
		return false
	}
	s.Event, s.CPU, s.PID, s.TID = uint32(v[0]), uint32(v[1]), uint32(v[2]), uint32(v[3])
	s.Capability, s.TSO, s.Weight, s.Node = uint32(v[4]), v[5], v[6], uint32(v[7])
	s.Stop, s.Flags = StopReason(v[8]), SampleFlags(v[9])
	s.SkippedWords, s.FoldedFrames, s.Centres = 0, 0, 0
	if i == len(b) {
		return true
	}
	var more [3]uint64
	for k := range more {
		if i == len(b) {
			break
		}
		if more[k], i = longVarint(b, i); i < 0 {
			return false
		}
	}
	if more[1]|more[2] > math.MaxUint32 {
		return false
	}
	s.SkippedWords, s.FoldedFrames, s.Centres = more[0], uint32(more[1]), uint32(more[2])
	return i == len(b)
}

// longVarint reads a varint of any length; the next offset is −1 if there is none.
func longVarint(b []byte, i int) (uint64, int) {
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
