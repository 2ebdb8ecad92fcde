package perf

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"
	"unsafe"

	"ccagent/bpf"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
)

// Sample is one record of the stack walker. Frames are leaf first, each with
// its kind in the top byte as package bpf defines it. A record of type
// bpf.RecordLabel has no frames, but tells the label of thread Tso; one of type
// bpf.RecordCCS tells of a cost-centre stack; the frames of a bpf.RecordRTS are words.
type Sample struct {
	bpf.SampleHeader
	Frames []uint64
	Label  string
	Stack  bpf.CCSRecord
}

// Samples reads the walker's ring buffer. It polls: what sends samples never wakes
// user space.
type Samples struct {
	ring *ringbuf.Reader
	raw  ringbuf.Record
	// Undecodable counts records that were not what the walker writes.
	Undecodable uint64
}

// NewSamples reads the ring buffer, which stays the caller's.
func NewSamples(ring *ebpf.Map) (*Samples, error) {
	r, err := ringbuf.NewReader(ring)
	if err != nil {
		return nil, fmt.Errorf("map the ring buffer: %w", err)
	}
	// A deadline in the past: reads take what is there and never wait.
	r.SetDeadline(time.Unix(1, 0))
	return &Samples{ring: r}, nil
}

// Read decodes the next sample into s, reusing its Frames. False when the ring
// buffer is empty.
func (r *Samples) Read(s *Sample) (bool, error) {
	for {
		err := r.ring.ReadInto(&r.raw)
		if errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, ringbuf.ErrFlushed) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("read the ring buffer: %w", err)
		}
		if decodeSample(r.raw.RawSample, s) {
			return true, nil
		}
		r.Undecodable++
	}
}

// Close unmaps the ring buffer.
func (r *Samples) Close() error { return r.ring.Close() }

const (
	headerSize = int(unsafe.Sizeof(bpf.SampleHeader{}))
	stackSize  = int(unsafe.Sizeof(bpf.CCSRecord{}))
)

// decodeSample takes a record apart. Both sides are of one machine and one
// struct definition, so the header is copied as it lies in memory.
func decodeSample(raw []byte, s *Sample) bool {
	if len(raw) < headerSize {
		return false
	}
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&s.SampleHeader)), headerSize), raw)
	frames := raw[headerSize:]
	size := 8 * int(s.FrameCount)
	if s.Record == bpf.RecordLabel {
		size = int(s.FrameCount)
	}
	if len(frames) < size {
		return false
	}
	s.Frames = s.Frames[:0]
	s.Label = ""
	switch s.Record {
	case bpf.RecordSample, bpf.RecordWait, bpf.RecordWake, bpf.RecordRTS, bpf.RecordTicky, bpf.RecordAllocated:
	case bpf.RecordLabel:
		s.Label = strings.ToValidUTF8(string(frames[:s.FrameCount]), "�")
		return true
	case bpf.RecordCCS:
		if size != stackSize {
			return false
		}
		copy(unsafe.Slice((*byte)(unsafe.Pointer(&s.Stack)), stackSize), frames)
		return true
	default:
		return false
	}
	for i := range int(s.FrameCount) {
		s.Frames = append(s.Frames, binary.NativeEndian.Uint64(frames[8*i:]))
	}
	return true
}
