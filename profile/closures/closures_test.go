package closures

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/ghc"
	"ccagent/profile"
	sure "ccagent/profile/interval"
	"ccagent/profile/logtest"
)

func load(t *testing.T, log []byte) *profile.Profile {
	t.Helper()
	p, err := profile.Load(strings.NewReader(string(log)))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func block(places, used, read uint64, counts ...eventlog.ClosureCount) *eventlog.NurseryBlock {
	return &eventlog.NurseryBlock{PID: 100, Places: places, Used: used, Read: read, Closures: counts}
}

func show(t *Table) string {
	var out []string
	for i := range t.Rows {
		r := &t.Rows[i]
		out = append(out, fmt.Sprintf("%s %s %.3f %.0f", r.Name, r.Kind, r.Share, r.Mean))
	}
	return strings.Join(out, "; ")
}

// Shares are of the bytes that blocks stand for: a block counts for as many as it could have
// been chosen from, one of a group for all that the group holds. What is the same to a reader is
// one row.
func TestTable(t *testing.T) {
	l := logtest.New()
	l.Write(1, &eventlog.Closure{ID: 1, Module: 1, Addr: 0x100, Type: uint32(ghc.Constr20), Name: "main:Main.Node"})
	l.Write(1, &eventlog.Closure{ID: 2, Module: 1, Addr: 0x200, Type: uint32(ghc.Constr20), Name: "main:Main.Node"})
	l.Write(1, &eventlog.Closure{ID: 3, Module: 1, Addr: 0x300, Type: uint32(ghc.Blackhole)})
	l.Write(1, &eventlog.Closure{ID: 4, Module: 1, Addr: 0x400, Type: uint32(ghc.Ind)})
	l.Write(10, block(100, 4000, 4000, eventlog.ClosureCount{Closure: 1, Count: 100, Bytes: 3000}, eventlog.ClosureCount{Closure: 3, Count: 50, Bytes: 1000}))
	l.Write(20, block(300, 4000, 4000, eventlog.ClosureCount{Closure: 2, Count: 100, Bytes: 3000}, eventlog.ClosureCount{Closure: 4, Count: 50, Bytes: 1000}))
	l.Write(30, block(100, 8000, 4000, eventlog.ClosureCount{Closure: 0, Count: 1, Bytes: 3000}, eventlog.ClosureCount{Closure: 99, Count: 1, Bytes: 1000}))
	p := load(t, l.End())
	// 100·4000 + 300·4000 + 100·8000 = 2,400,000, of which 1,200,000 are nodes.
	const want = "Main.Node constructor 0.500 30; (not read)  0.333 2000; (evaluated thunks)  0.167 20"
	table := Of(p, All)
	if got := show(table); got != want || table.Blocks != 3 || table.Stands != 2.4e6 {
		t.Errorf("%d blocks that stand for %.0f bytes: %s; want %s", table.Blocks, table.Stands, got, want)
	}
	if p.Accounting.Undefined.Closures != 1 {
		t.Errorf("%d references to closures that are not defined", p.Accounting.Undefined.Closures)
	}
	f := All
	f.Range = profile.Range{From: 15, To: 25}
	if got := show(Of(p, f)); got != "Main.Node constructor 0.750 30; (evaluated thunks)  0.250 20" {
		t.Errorf("in a range: %s", got)
	}
	f = All
	f.PID = 7
	if got := Of(p, f); len(got.Rows) != 0 || got.Blocks != 0 {
		t.Errorf("of another process: %s", show(got))
	}
}

// The interval holds the true share as often as it says where blocks differ, also if blocks that
// follow each other resemble each other, and is not several times wider than it need be.
func TestIntervalHolds(t *testing.T) {
	const trials = 400
	for _, c := range []struct {
		name   string
		blocks int
		run    float64 // mean length of a run of blocks of one kind
		least  float64 // of the intervals that hold
	}{
		{"independent", 40, 1, 0.92}, {"independent, many", 400, 1, 0.92}, {"runs of 5 in 400", 400, 5, 0.9},
	} {
		rng := rand.New(rand.NewPCG(1, uint64(c.blocks)))
		hold, width := 0, 0.0
		const p = 0.3
		for range trials {
			x, w := make([]float64, c.blocks), make([]float64, c.blocks)
			is := rng.Float64() < p
			for i := range x {
				if i > 0 && rng.Float64() < 1/c.run {
					is = rng.Float64() < p
				}
				w[i] = 4000 + 96*rng.Float64()
				part := 0.1
				if is {
					part = 0.9
				}
				x[i] = w[i] * part
			}
			in := sure.Ratio(x, w, perBlock)
			if truth := 0.1 + 0.8*p; in.Low <= truth && truth <= in.High {
				hold++
			}
			width += in.High - in.Low
		}
		t.Logf("%s: %d of %d hold, width %.3f", c.name, hold, trials, width/trials)
		if float64(hold) < c.least*trials {
			t.Errorf("%s: %d of %d intervals hold", c.name, hold, trials)
		}
	}
}

// Intervals are within 0 and 1, and hold the share itself, whatever the blocks have.
func TestIntervalsAreSane(t *testing.T) {
	for _, c := range []struct{ x, w []float64 }{
		{nil, nil}, {[]float64{0}, []float64{0}}, {[]float64{0}, []float64{4096}}, {[]float64{4096}, []float64{4096}},
		{[]float64{1, 2}, []float64{4, 8}}, {[]float64{0, 4096, 0}, []float64{4096, 4096, 4096}}, {[]float64{1e-9, 1}, []float64{1e15, 1}},
		{[]float64{1e48, 0}, []float64{1e48, 1e48}},
	} {
		if in := sure.Ratio(c.x, c.w, perBlock); !(in.Low >= 0 && in.High <= 1 && in.Low <= in.High && in.Effective >= 0) {
			t.Errorf("%v of %v: %+v", c.x, c.w, in)
		}
	}
}

// The order of rows that differ by chance is within noise, and is claimed to be known as seldom as it
// says; of rows that differ beyond it it is known. That both are large where the program is in one
// phase does not blur it.
func TestOrderOfUnits(t *testing.T) {
	const trials, blocks = 1000, 60
	for _, c := range []struct {
		name        string
		a, b        float64 // mean parts of a block
		least, most float64 // of the trials in which the order is known
	}{{"alike", 0.2, 0.2, 0, 0.04}, {"apart", 0.3, 0.2, 0.95, 1}} {
		rng := rand.New(rand.NewPCG(7, 1))
		ordered := 0
		for range trials {
			a, b := make([]float64, blocks), make([]float64, blocks)
			phase := 1.0
			for i := range a {
				if rng.Float64() < 0.1 {
					phase = 2 * rng.Float64()
				}
				a[i], b[i] = phase*c.a*(0.5+rng.Float64()), phase*c.b*(0.5+rng.Float64())
			}
			if sure.OrderedUnits(a, b, perBlock) {
				ordered++
			}
		}
		t.Logf("%s: %d of %d known", c.name, ordered, trials)
		if n := float64(ordered) / trials; n < c.least || n > c.most {
			t.Errorf("%s: the order is known in %d of %d", c.name, ordered, trials)
		}
	}
	if sure.OrderedUnits([]float64{900, 0, 0}, []float64{100, 0, 0}, perBlock) {
		t.Error("one block alone orders two rows")
	}
}

// A row whose order after the one before is within noise is marked, and no other; a table gives what
// its blocks are worth.
func TestTied(t *testing.T) {
	l := logtest.New()
	for i, name := range []string{"A", "B", "C"} {
		l.Write(1, &eventlog.Closure{ID: uint32(i + 1), Module: 1, Addr: uint64(i+1) * 0x100, Type: uint32(ghc.Constr20), Name: "main:Main." + name})
	}
	for i := range uint64(50) {
		more := uint32(i % 2 * 200)
		l.Write(10+i, block(100+1900*(i/49), 4000, 4000, eventlog.ClosureCount{Closure: 1, Count: 100, Bytes: 2400},
			eventlog.ClosureCount{Closure: 2, Count: 30, Bytes: 710 + more}, eventlog.ClosureCount{Closure: 3, Count: 30, Bytes: 890 - more}))
	}
	table := Of(load(t, l.End()), All)
	var tied []bool
	for i := range table.Rows {
		tied = append(tied, table.Rows[i].Tied)
	}
	if fmt.Sprint(tied) != "[false false true]" {
		t.Errorf("%s: tied %v", show(table), tied)
	}
	// Kish: (49 · 100 + 2000)² / (49 · 100² + 2000²), each in equal units.
	if want := 6900.0 * 6900 / (49*100*100 + 2000*2000); table.Effective < want-0.01 || table.Effective > want+0.01 {
		t.Errorf("50 blocks are worth %.2f, want %.2f", table.Effective, want)
	}
}
