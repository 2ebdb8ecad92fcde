package eventlog

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// steady generates the capture of a steady program: stacks of depth 50 from a few hot paths
// with varying leaves, four threads on four capabilities, a sample about every millisecond,
// and a new stack now and then.
type steady struct {
	rng    *rand.Rand
	time   uint64
	nodes  uint32
	leaves []uint32
	fresh  Nodes
	sample Sample
}

func newSteady() *steady {
	return &steady{rng: rand.New(rand.NewPCG(9, 10))}
}

// next sets s.sample, and s.fresh to the new nodes that it needs.
func (s *steady) next() {
	s.time += 200e3 + s.rng.Uint64N(100e3)
	s.fresh.Nodes = s.fresh.Nodes[:0]
	leaf := uint32(0)
	switch n := len(s.leaves); {
	case n < 20:
		leaf = s.grow(0, 50) // a hot path
	case n < 2000 && s.rng.IntN(100) == 0 || s.rng.IntN(1000) == 0:
		leaf = s.grow(s.leaves[s.rng.IntN(20)], 3) // leaves a known one by a few frames
	default:
		leaf = s.leaves[s.rng.IntN(n)]
	}
	cap := uint32(s.rng.IntN(4))
	s.sample = Sample{
		Event: 1, CPU: cap, PID: 41234, TID: 41234 + cap, Capability: cap, TSO: uint64(100 + s.rng.IntN(50)),
		Weight: 2_900_000 + s.rng.Uint64N(100_000), Node: leaf, Stop: StopRoot, Flags: SampleTopCFI,
	}
}

func (s *steady) grow(from uint32, frames int) uint32 {
	s.fresh.First = s.nodes + 1
	for range frames {
		s.nodes++
		s.fresh.Nodes = append(s.fresh.Nodes, Node{Parent: from, Kind: FrameReturn, Module: 1, Addr: 0x400000 + s.rng.Uint64N(1<<22)})
		from = s.nodes
	}
	s.leaves = append(s.leaves, from)
	return from
}

func (s *steady) write(w *Writer) error {
	s.next()
	if len(s.fresh.Nodes) > 0 {
		if err := w.Write(s.time, NoCap, &s.fresh); err != nil {
			return err
		}
	}
	return w.Write(s.time, NoCap, &s.sample)
}

func steadyLog(tb testing.TB, samples int) []byte {
	tb.Helper()
	var log bytes.Buffer
	w := NewWriter(&log, nil)
	s := newSteady()
	for range samples {
		if err := s.write(w); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return log.Bytes()
}

func BenchmarkWriteSamples(b *testing.B) {
	// Samples are generated beforehand, so that only writing is measured.
	s := newSteady()
	type entry struct {
		time   uint64
		fresh  Nodes
		sample Sample
	}
	entries := make([]entry, 100_000)
	for i := range entries {
		s.next()
		entries[i] = entry{s.time, Nodes{s.fresh.First, append([]Node(nil), s.fresh.Nodes...)}, s.sample}
	}
	w := NewWriter(io.Discard, nil)
	b.ReportAllocs()
	n, begin := 0, cpuTime(b)
	for b.Loop() {
		e := &entries[n%len(entries)]
		if len(e.fresh.Nodes) > 0 {
			if err := w.Write(e.time, NoCap, &e.fresh); err != nil {
				b.Fatal(err)
			}
		}
		if err := w.Write(e.time, NoCap, &e.sample); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "samples/s")
	b.ReportMetric(float64(n)/(cpuTime(b)-begin).Seconds(), "samples/cpu-s")
	b.ReportMetric(float64(w.Size())/float64(n), "B/sample")
}

func BenchmarkReadSamples(b *testing.B) {
	batch, origins := make([]PackedSample, 1024), new(Origins)
	benchmarkRead(b, func(r *Reader) int { return r.NextSamples(batch, origins) })
}

// benchmarkRead reads a log with a function that reads many samples at once.
func benchmarkRead(b *testing.B, take func(*Reader) int) {
	const samples = 500_000
	log := steadyLog(b, samples)
	b.SetBytes(int64(len(log)))
	b.ReportAllocs()
	n := 0
	begin := cpuTime(b)
	for b.Loop() {
		r := NewReader(bytes.NewReader(log))
		for more := true; more; {
			n += take(r)
			if more = r.Next(); more {
				if _, ok := r.Record().Event.(*Sample); ok {
					n++
				}
			}
		}
		if r.Err() != nil || !r.Complete() {
			b.Fatal(r.Err())
		}
	}
	b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "samples/s")
	b.ReportMetric(float64(n)/(cpuTime(b)-begin).Seconds(), "samples/cpu-s")
}

// cpuTime returns the CPU time of this process.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A sample of a steady program takes at most 40 bytes, including its share of the stack
// nodes.
func TestBytesPerSample(t *testing.T) {
	const samples = 200_000
	log := steadyLog(t, samples)
	if per := float64(len(log)) / samples; per > 40 {
		t.Errorf("%.1f bytes a sample", per)
	} else {
		t.Logf("%.1f bytes a sample", per)
	}
}
