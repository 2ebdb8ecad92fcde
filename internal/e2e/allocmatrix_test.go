package e2e

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// needMatrix skips measurements that are only for docs/benchmarks.md: they take minutes, and
// other tests cover some rows.
func needMatrix(t *testing.T, command string) {
	t.Helper()
	if os.Getenv("CCAGENT_MATRIX") == "" {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "minutes", Hint: command})
	}
}

// matrixPrograms allocate enough to be sampled in a second or less; several times as much if
// a GC is expensive.
var matrixPrograms = []struct {
	name string
	args []string
}{
	{"alloc31", []string{"20000"}},
	{"maps", []string{"50000", "4"}},
	{"example", []string{"400000"}},
	{"classic", []string{"binary-trees", "20"}},
	{"arrays", []string{"20000"}},
}

var matrixNurseries = [][]string{nil, {"-A64k"}, {"-A64m"}, {"-A4m", "-n256k"}}

// The weights add up to the run-time system's count for every program, nursery and way, at
// the default rates and budget.
func TestAllocationMatrix(t *testing.T) {
	needMatrix(t, "scripts/bench allocation")
	type row struct {
		release, name string
		args, rts     []string
		threaded      bool
	}
	var rows []row
	for _, p := range matrixPrograms {
		for _, rts := range matrixNurseries {
			rows = append(rows, row{"", p.name, p.args, rts, false}, row{"", p.name, p.args, rts, true})
		}
	}
	for _, release := range testprog.Releases[1:] {
		for _, p := range matrixPrograms {
			rows = append(rows, row{release, p.name, p.args, nil, false}, row{release, p.name, p.args, []string{"-A64k"}, true})
		}
	}
	for _, release := range testprog.Releases {
		rows = append(rows, row{release, "server", []string{"20000", "10", "4"}, []string{"-N2"}, true})
	}
	worst := 0.0
	for _, c := range rows {
		exe := testprog.Build(t, c.name, testprog.Options{Release: c.release, Threaded: c.threaded})
		args := append(append(append([]string{}, c.args...), "+RTS", "-s"), c.rts...)
		log, r := record(t, nil, exe, args...)
		want := counted(t, c.name, r.stderr)
		l := readLog(t, log)
		var sampled float64
		for _, s := range l.allocations {
			sampled += float64(s.Weight)
		}
		apart := sampled/want - 1
		worst = max(worst, math.Abs(apart))
		fmt.Printf("| %s | %s | %s | %s | %d | %.0f | %.0f | %+.3f %% | %s |\n", release(c.release), c.name,
			strings.Join(c.rts, " "), way(c.threaded), len(l.allocations), sampled, want, 100*apart, strings.Join(knownShares(t, c.name, log), " : "))
		if math.Abs(apart) > 0.01 {
			t.Errorf("%+v: %.0f bytes were sampled, the RTS counted %.0f\n%s", c, sampled, want, r.stderr)
		}
	}
	t.Logf("%d rows, at most %.3f %% apart", len(rows), 100*worst)
}

// allocated has the parts of the bytes whose allocating code is known.
var allocated = map[string][]struct {
	element string
	share   float64
}{
	"alloc31": {{"Main.three", 0.75}, {"Main.one", 0.25}},
	"arrays":  {{"Main.wide", 0.6}, {"Main.narrow", 0.2}, {"Main.cells", 0.2}},
}

// knownShares returns their sampled shares in per cent. They are approximate in a run of a
// second that is sampled for parts of it.
func knownShares(t *testing.T, program, log string) (printed []string) {
	t.Helper()
	known := allocated[program]
	if known == nil {
		return nil
	}
	shares := allocShares(t, log)
	for _, k := range known {
		got := shares[k.element]
		printed = append(printed, fmt.Sprintf("%.1f", 100*got))
		if math.Abs(got-k.share) > 0.25 {
			t.Errorf("%s has %.3f of the bytes, not about %.2f", k.element, got, k.share)
		}
	}
	return printed
}

func release(r string) string {
	if r == "" {
		return "9.0.2"
	}
	return r
}

func way(threaded bool) string {
	if threaded {
		return "threaded"
	}
	return ""
}

// Samples have the right weights if a program was attached to in the middle and left before
// its end, so that its sum is not known. The reference is the allocation that GCs report, in
// the same log.
func TestAllocationMatrixInTheMiddle(t *testing.T) {
	needMatrix(t, "scripts/bench allocation")
	testprog.NeedRoot(t)
	for _, c := range []struct {
		name     string
		args     []string
		threaded bool
	}{
		{"alloc31", []string{"100000000", "+RTS"}, false},
		{"alloc31", []string{"100000000", "+RTS", "-A64m"}, true},
		{"maps", []string{"50000", "1000000", "+RTS"}, true},
		{"maps", []string{"50000", "1000000", "+RTS", "-A4m", "-n256k"}, false},
		{"example", []string{"100000000", "+RTS"}, false},
		{"arrays", []string{"100000000", "+RTS"}, false},
		{"arrays", []string{"100000000", "+RTS", "-A64m"}, true},
	} {
		target := command(t, testprog.Build(t, c.name, testprog.Options{Threaded: c.threaded}), c.args...)
		background(t, target)
		log := filepath.Join(t.TempDir(), "run.eventlog")
		r := run(t, command(t, ccagent, "attach", "-e", "cpu-clock,alloc,gc", "--duration", "6s", "-o", log, pidOf(target)))
		if r.status != 0 {
			t.Fatalf("ccagent attach: status %d\n%s", r.status, r.stderr)
		}
		target.Process.Kill()
		sampled, want, samples := sampledBetweenCollections(t, log)
		fmt.Printf("| %s | %s | %s | %d | %.0f | %.0f | %+.1f %% |\n", c.name, strings.TrimPrefix(strings.Join(c.args, " "), c.args[0]),
			way(c.threaded), samples, sampled, want, 100*(sampled/want-1))
		if math.Abs(sampled/want-1) > 0.25 {
			t.Errorf("%v: samples have %.0f bytes between the first and the last collection, the RTS allocated %.0f", c, sampled, want)
		}
	}
}

// sampledBetweenCollections sums the allocation samples between a log's first and last GC,
// and the allocation in that time.
func sampledBetweenCollections(t *testing.T, path string) (sampled, allocated float64, samples int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	first, last := map[uint32]uint64{}, map[uint32]uint64{} // by capability
	pending, pendingSamples := 0.0, 0                       // since the last collection
	r := eventlog.NewReader(bufio.NewReader(f))
	for r.Next() {
		switch e := r.Record().Event.(type) {
		case *eventlog.HeapAllocated:
			capability := uint32(r.Record().Cap)
			if _, known := first[capability]; !known {
				first[capability] = e.Bytes
			}
			last[capability] = e.Bytes
			sampled, samples = sampled+pending, samples+pendingSamples
			pending, pendingSamples = 0, 0
		case *eventlog.Sample:
			if e.Event == 1 && len(first) > 0 {
				pending += float64(e.Weight)
				pendingSamples++
			}
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	for capability := range last {
		allocated += float64(last[capability] - first[capability])
	}
	return sampled, allocated, samples
}
