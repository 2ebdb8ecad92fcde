package perf

import (
	"encoding/binary"
	"slices"
	"testing"
	"unsafe"

	"ccagent/bpf"
)

func encode(h bpf.SampleHeader, tail []byte) []byte {
	raw := slices.Clone(unsafe.Slice((*byte)(unsafe.Pointer(&h)), headerSize))
	return append(raw, tail...)
}

// A record is decoded with its header and frames; a shortened one is rejected.
func TestDecodeSample(t *testing.T) {
	frames := []uint64{1, 2, 3 << 56}
	var tail []byte
	for _, f := range frames {
		tail = binary.NativeEndian.AppendUint64(tail, f)
	}
	h := bpf.SampleHeader{Time: 7, Pid: 1, Tid: 2, FrameCount: 3, Stop: 4}
	raw := encode(h, tail)
	var s Sample
	if !decodeSample(raw, &s) || s.SampleHeader != h || !slices.Equal(s.Frames, frames) {
		t.Errorf("decoded %+v", s)
	}
	// The ring buffer pads; a record may be longer than it says, never shorter.
	if !decodeSample(append(raw, 0, 0, 0, 0), &s) {
		t.Error("a padded record was refused")
	}
	for n := range raw {
		if decodeSample(raw[:n], &s) {
			t.Errorf("a record cut to %d of %d bytes was taken", n, len(raw))
		}
	}
}

// A label is decoded as valid UTF-8 from the place of the frames; unknown types of records are rejected.
func TestDecodeLabel(t *testing.T) {
	h := bpf.SampleHeader{Tso: 9, Record: bpf.RecordLabel, FrameCount: 4}
	var s Sample
	if !decodeSample(encode(h, []byte("wo\xffk")), &s) || s.Label != "wo�k" || len(s.Frames) != 0 {
		t.Errorf("decoded %+v", s)
	}
	h.Record = 200
	if decodeSample(encode(h, make([]byte, 64)), &s) {
		t.Error("a record of an unknown type was taken")
	}
}

// Decoding never reads beyond a record, whatever its bytes.
func FuzzDecodeSample(f *testing.F) {
	f.Add(encode(bpf.SampleHeader{FrameCount: 2}, make([]byte, 16)))
	f.Add(encode(bpf.SampleHeader{FrameCount: 2, Record: bpf.RecordLabel}, []byte("ab")))
	f.Add(encode(bpf.SampleHeader{FrameCount: 8, Record: bpf.RecordCCS}, make([]byte, 64)))
	f.Add(encode(bpf.SampleHeader{FrameCount: 8, Record: bpf.RecordTicky}, make([]byte, 64)))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, raw []byte) {
		var s Sample
		if decodeSample(raw, &s) && 8*len(s.Frames) > len(raw) {
			t.Errorf("%d frames out of %d bytes", len(s.Frames), len(raw))
		}
	})
}
