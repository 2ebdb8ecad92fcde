package eventlog

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"
)

// Samples have the origins that were written, also of logs with more origins than have a number at once,
// and of origins that are zero, or too long to be known again.
func TestOrigins(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	all := make([]Origin, 3*MaxOrigins)
	for i := range all {
		all[i] = Origin{Event: uint32(i % 3), CPU: uint32(i % 7), PID: 100, TID: uint32(100 + i), Capability: uint32(i % 5), TSO: uint64(i) << (i % 40)}
	}
	all[0] = Origin{}
	for i := range 10 {
		all[1+i] = Origin{math.MaxUint32, math.MaxUint32, math.MaxUint32, math.MaxUint32, uint32(i), math.MaxUint64}
	}
	for _, use := range []int{1, 11, 200, len(all)} {
		var log bytes.Buffer
		w := NewWriter(&log, nil)
		for i := range 20_000 {
			o := all[rng.IntN(use)]
			s := Sample{
				Event: o.Event, CPU: o.CPU, PID: o.PID, TID: o.TID, Capability: o.Capability, TSO: o.TSO,
				Weight: rng.Uint64() >> rng.IntN(64), Node: uint32(i), Stop: StopReason(i), Flags: SampleFlags(i),
			}
			if i%5 == 0 {
				s.SkippedWords, s.FoldedFrames, s.Centres = rng.Uint64(), rng.Uint32(), rng.Uint32()
			}
			if err := w.Write(uint64(i), NoCap, &s); err != nil {
				t.Fatal(err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		sameFast(t, log.Bytes())
		if use == 200 {
			r, o := NewReader(bytes.NewReader(log.Bytes())), new(Origins)
			named, read := 0, 0
			var out [64]PackedSample
			for more := true; more; more = r.Next() {
				for n := r.NextSamples(out[:], o); n > 0; n = r.NextSamples(out[:], o) {
					named, read = named+len(o.New), read+n
				}
			}
			// Ten are too long for a key, which are new each time: a twentieth of all.
			if read < 15_000 || named > read/10 {
				t.Errorf("origins of %d samples were new %d times", read, named)
			}
		}
	}
}
