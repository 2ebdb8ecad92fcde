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

// Sample is one record of the stack walker. Frames are leaf first, each with its kind in the
// top byte as defined in package bpf. A record of type bpf.RecordLabel has the label of
// thread Tso in place of frames, one of type bpf.RecordCCS a cost-centre stack, one of type
// bpf.RecordRTS the words of a GC, and one of type bpf.RecordBlock a block of a nursery.
type Sample struct {
	bpf.SampleHeader
	Frames []uint64
	Label  string
	Stack  bpf.CCSRecord
	Block  []uint64
}

// Samples reads the walker's ring buffer by polling: samples never wake user space.
type Samples struct {
	ring *ringbuf.Reader
	raw  ringbuf.Record
	// Undecodable counts records that have not the walker's format.
	Undecodable uint64
}

// NewSamples reads the ring buffer; the caller keeps the ownership of it.
func NewSamples(ring *ebpf.Map) (*Samples, error) {
	r, err := ringbuf.NewReader(ring)
	if err != nil {
		return nil, fmt.Errorf("map the ring buffer: %w", err)
	}
	// The deadline in the past makes reads return at once if nothing is there.
	r.SetDeadline(time.Unix(1, 0))
	return &Samples{ring: r}, nil
}

// Read decodes the next sample into s, reusing its Frames. It returns false if the ring
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

// decodeSample splits a record. Both sides have the same machine and struct definition, so
// the header is copied as it is in memory.
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
	s.Label, s.Block = "", nil
	switch s.Record {
	case bpf.RecordSample, bpf.RecordWait, bpf.RecordWake, bpf.RecordRTS, bpf.RecordTicky, bpf.RecordAllocated,
		bpf.RecordThreadEnds, bpf.RecordThreadEnded, bpf.RecordEvaluating:
	case bpf.RecordBlock:
		// Its words are many, and not kept with those of the samples that later use s.
		s.Block = make([]uint64, s.FrameCount)
		for i := range s.Block {
			s.Block[i] = binary.NativeEndian.Uint64(frames[8*i:])
		}
		return true
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
