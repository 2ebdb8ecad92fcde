package dwarfindex

import (
	"context"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"ccagent/internal/testprog"

	"golang.org/x/sys/unix"
)

// benchFile is the program to read: CCAGENT_BENCH_ELF, or one of the test
// programs.
func benchFile(b *testing.B) string {
	if p := os.Getenv("CCAGENT_BENCH_ELF"); p != "" {
		return p
	}
	return testprog.Build(b, "example", testprog.Options{})
}

// BenchmarkBuild indexes a program's whole debug information.
func BenchmarkBuild(b *testing.B) {
	s, f := load(b, benchFile(b))
	entries, blocks, bytes := 0, 0, 0
	b.ReportAllocs()
	for b.Loop() {
		x, err := Build(context.Background(), s, Options{Executable: executable(f)})
		if err != nil {
			b.Fatal(err)
		}
		entries, blocks, bytes = x.Entries, x.Blocks(), x.Bytes()
	}
	b.ReportMetric(float64(entries)*float64(b.N)/b.Elapsed().Seconds(), "DIE/s")
	b.ReportMetric(float64(bytes)/float64(blocks), "B/block")
	b.ReportMetric(float64(blocks), "blocks")
}

// BenchmarkRead reads the entries into blocks, notes and procedures, and leaves
// out what only an index needs: line tables, sorting, lookup. It is what to
// compare with a walk of the tree by debug/dwarf.
func BenchmarkRead(b *testing.B) {
	s, f := load(b, benchFile(b))
	s.Line = nil
	entries := 0
	b.ReportAllocs()
	begin := cpuTime(b)
	for b.Loop() {
		r := newBuilder(s, Options{Memory: defaultMemory, Executable: executable(f)})
		r.reserve()
		if err := r.units(context.Background()); err != nil {
			b.Fatal(err)
		}
		entries = r.x.Entries
	}
	b.ReportMetric(float64(entries)*float64(b.N)/b.Elapsed().Seconds(), "DIE/s")
	b.ReportMetric(float64(entries)*float64(b.N)/(cpuTime(b)-begin).Seconds(), "DIE/cpu-s")
}

// BenchmarkDebugDWARF walks the same tree with Go's own reader.
func BenchmarkDebugDWARF(b *testing.B) {
	_, f := load(b, benchFile(b))
	d, err := f.DWARF()
	if err != nil {
		b.Fatal(err)
	}
	entries := 0
	b.ReportAllocs()
	begin := cpuTime(b)
	for b.Loop() {
		entries = 0
		for r := d.Reader(); ; entries++ {
			e, err := r.Next()
			if err != nil {
				b.Fatal(err)
			}
			if e == nil {
				break
			}
		}
	}
	b.ReportMetric(float64(entries)*float64(b.N)/b.Elapsed().Seconds(), "DIE/s")
	b.ReportMetric(float64(entries)*float64(b.N)/(cpuTime(b)-begin).Seconds(), "DIE/cpu-s")
}

// cpuTime is what this process has used, the garbage collector's share included:
// on a busy machine it says more than the clock.
func cpuTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkLookup finds the blocks of addresses all over a program.
func BenchmarkLookup(b *testing.B) {
	s, f := load(b, benchFile(b))
	x, err := Build(context.Background(), s, Options{Executable: executable(f)})
	if err != nil {
		b.Fatal(err)
	}
	lo, hi := x.segs.starts[0], x.segs.starts[len(x.segs.starts)-1]
	r := rand.New(rand.NewPCG(1, 2))
	addrs := make([]uint64, 4096)
	for i := range addrs {
		addrs[i] = lo + r.Uint64N(hi-lo)
	}
	i := 0
	for b.Loop() {
		x.Lookup(addrs[i&4095])
		i++
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "lookups/s")
}

// BenchmarkCauses collects the cause sets of a program's blocks.
func BenchmarkCauses(b *testing.B) {
	s, f := load(b, benchFile(b))
	x, err := Build(context.Background(), s, Options{Executable: executable(f)})
	if err != nil {
		b.Fatal(err)
	}
	var dst []Cause
	i := 0
	for b.Loop() {
		dst = x.Causes(dst[:0], BlockID(1+i%x.Blocks()))
		i++
	}
}
