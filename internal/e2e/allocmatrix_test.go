package e2e

import (
	"bufio"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// needMatrix skips what is measured for docs/benchmarks.md alone: it takes minutes, and
// TestAllocation has some of its rows.
func needMatrix(t *testing.T) {
	t.Helper()
	if os.Getenv("CCAGENT_MATRIX") == "" {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "minutes", Hint: "scripts/bench allocation"})
	}
}

// matrixPrograms allocate in a second or less what is enough to be sampled; several
// times as much where a collection is dear.
var matrixPrograms = []struct {
	name string
	args []string
}{
	{"alloc31", []string{"20000"}},
	{"maps", []string{"50000", "4"}},
	{"example", []string{"400000"}},
	{"classic", []string{"binary-trees", "20"}},
	{"arrays", []string{"2000"}},
}

var matrixNurseries = [][]string{nil, {"-A64k"}, {"-A64m"}, {"-A4m", "-n256k"}}

// The weights add up to what the run-time system counts, for every program, nursery and
// way, by default rates and budget.
func TestAllocationMatrix(t *testing.T) {
	needMatrix(t)
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
		fmt.Printf("| %s | %s | %s | %s | %d | %.0f | %.0f | %+.3f %% |\n", release(c.release), c.name,
			strings.Join(c.rts, " "), way(c.threaded), len(l.allocations), sampled, want, 100*apart)
		if math.Abs(apart) > 0.01 {
			t.Errorf("%+v: %.0f bytes were sampled, the RTS counted %.0f\n%s", c, sampled, want, r.stderr)
		}
	}
	t.Logf("%d rows, at most %.3f %% apart", len(rows), 100*worst)
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

// Between any two collections of a program that was attached to in the middle, and left
// before its end, samples alone have the bytes: nothing is known then of the beginning,
// and the process does not tell its sum. The reference is what +RTS -S prints of each
// collection.
func TestAllocationMatrixInTheMiddle(t *testing.T) {
	needMatrix(t)
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
		told := filepath.Join(t.TempDir(), "collections")
		target := command(t, testprog.Build(t, c.name, testprog.Options{Threaded: c.threaded}), append(c.args, "-S"+told)...)
		background(t, target)
		eventually(t, "the program collects", func() bool { return len(toldCollections(t, told)) > 20 })
		log := filepath.Join(t.TempDir(), "run.eventlog")
		r := run(t, command(t, ccagent, "attach", "-e", "cpu-clock,alloc,gc", "--duration", "3s", "-o", log, pidOf(target)))
		if r.status != 0 {
			t.Fatalf("ccagent attach: status %d\n%s", r.status, r.stderr)
		}
		target.Process.Kill()
		sampled, copied, samples := sampledBetweenCollections(t, log)
		want, ok := allocatedBetween(toldCollections(t, told), copied)
		if !ok {
			t.Errorf("%v: the %d collections of the log are not among those that the RTS told", c, len(copied))
			continue
		}
		fmt.Printf("| %s | %s | %s | %d | %d | %.0f | %.0f | %+.3f %% |\n", c.name, strings.Join(c.args[len(c.args)-1:], " "),
			way(c.threaded), len(copied), samples, sampled, want, 100*(sampled/want-1))
		if math.Abs(sampled/want-1) > 0.01 {
			t.Errorf("%v: samples have %.0f bytes between the first and the last of %d collections, the RTS allocated %.0f", c, sampled, len(copied), want)
		}
	}
}

// collection is what +RTS -S tells of one.
type collection struct{ allocated, copied uint64 }

var toldCollection = regexp.MustCompile(`(?m)^ *(\d+) +(\d+) +\d+ .*\(Gen:`)

func toldCollections(t *testing.T, path string) (all []collection) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	for _, m := range toldCollection.FindAllStringSubmatch(string(text), -1) {
		var c collection
		for i, into := range []*uint64{&c.allocated, &c.copied} {
			if *into, err = strconv.ParseUint(m[i+1], 10, 64); err != nil {
				t.Fatal(err)
			}
		}
		all = append(all, c)
	}
	return all
}

// sampledBetweenCollections sums the allocation samples from the start of the first
// collection of a log to that of the last whose figures are known, and gives what each
// copied.
func sampledBetweenCollections(t *testing.T, path string) (bytes float64, copied []uint64, samples int) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	pending, pendingSamples := 0.0, 0 // since the last start
	begun := false
	r := eventlog.NewReader(bufio.NewReader(f))
	for r.Next() {
		switch e := r.Record().Event.(type) {
		case *eventlog.GCStart:
			begun = true
		case *eventlog.GCStats:
			if len(copied) > 0 {
				bytes, samples = bytes+pending, samples+pendingSamples
			}
			pending, pendingSamples = 0, 0
			copied = append(copied, e.Copied)
		case *eventlog.Sample:
			if e.Event == 1 && begun {
				pending += float64(e.Weight)
				pendingSamples++
			}
		}
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
	return bytes, copied, samples
}

// allocatedBetween finds the collections among all and sums what was allocated from the
// first to the last.
func allocatedBetween(all []collection, copied []uint64) (bytes float64, ok bool) {
	for first := 0; len(copied) > 1 && first+len(copied) <= len(all); first++ {
		ok = true
		bytes = 0
		for i, n := range copied {
			if ok = all[first+i].copied == n; !ok {
				break
			}
			if i > 0 {
				bytes += float64(all[first+i].allocated)
			}
		}
		if ok {
			return bytes, true
		}
	}
	return 0, false
}
