package eventlog

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// A brief read gives the same as a full one, for samples with every width of every field and
// for random payloads.
func TestBriefSamples(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 14))
	upTo := func(bits int) uint64 { return rng.Uint64() >> (64 - rng.IntN(bits+1)) }
	for _, plain := range []bool{true, false} {
		var log bytes.Buffer
		w := NewWriter(&log, &WriterOptions{Buffer: 8 << 10})
		for i := range 20_000 {
			s := Sample{
				Event: uint32(upTo(3)), CPU: uint32(upTo(8)), PID: uint32(upTo(22)), TID: uint32(upTo(22)), Capability: uint32(upTo(7)),
				TSO: upTo(20), Weight: upTo(28), Node: uint32(upTo(28)), Stop: StopReason(upTo(5)), Flags: SampleFlags(upTo(7)),
				SkippedWords: upTo(28) * uint64(i%2), FoldedFrames: uint32(upTo(12)) * uint32(i%3),
			}
			if !plain {
				s.Event, s.TSO, s.Weight, s.Node = uint32(upTo(32)), upTo(64), upTo(64), uint32(upTo(32))
				s.Stop, s.Flags = StopReason(upTo(8)), SampleFlags(upTo(16))
				s.SkippedWords, s.FoldedFrames, s.Centres = upTo(64), uint32(upTo(32)), uint32(upTo(32))
			}
			if err := w.Write(uint64(i/3), NoCap, &s); err != nil {
				t.Fatal(err)
			}
			if plain || i%4 > 0 {
				continue
			}
			raw := make([]byte, rng.IntN(30))
			for j := range raw {
				raw[j] = byte(rng.Uint32()) & byte(0x7f|rng.IntN(2)<<7)
			}
			if err := w.WriteRaw(uint64(i/3), NoCap, IDSample, raw); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		sameBrief(t, log.Bytes())
	}
}

// The samples of a capture fit into a BriefSample.
func TestBriefSamplesAreShort(t *testing.T) {
	s := newSteady()
	var buf [shortSpace]byte
	for i := range uint32(1000) {
		s.next()
		s.sample.SkippedWords, s.sample.FoldedFrames = uint64(i%2*i), i%3*i // of deep recursion
		c := codec{encoding: true}
		s.sample.layout(&c)
		copy(buf[12:], c.buf)
		var b BriefSample
		want, brief := s.sample.Brief()
		if !b.decode(&buf, len(c.buf)) || !brief || b != want {
			t.Fatalf("%+v is read as %+v", s.sample, b)
		}
	}
}
