package e2e

import (
	"fmt"
	"math"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// counted returns a run's allocation as reported by +RTS -s.
func counted(t *testing.T, name, stderr string) float64 {
	t.Helper()
	m := regexp.MustCompile(`([\d,]+) bytes allocated in the heap`).FindStringSubmatch(stderr)
	if m == nil {
		t.Fatalf("%s: +RTS -s says nothing of allocation:\n%s", name, stderr)
	}
	n, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// The weights of allocation samples add up to the run-time system's own count, and are
// attributed to the code that allocates.
func TestAllocation(t *testing.T) {
	for _, c := range []struct {
		name    string
		options testprog.Options
		flags   []string
		args    []string
	}{
		{"alloc31", testprog.Options{}, []string{"--max-overhead", "5"}, []string{"30000"}},
		{"alloc31", testprog.Options{Threaded: true}, nil, []string{"30000", "+RTS", "-N2"}},
		{"alloc31", testprog.Options{}, nil, []string{"20000", "+RTS", "-A64m"}},
		{"maps", testprog.Options{}, nil, []string{"50000", "4", "+RTS", "-A64k"}},
		{"maps", testprog.Options{}, nil, []string{"50000", "4", "+RTS", "-A4m", "-n256k"}},
		{"maps", testprog.Options{Release: "9.6.6"}, nil, []string{"50000", "4"}},
		// At its end there are more records than are read at once.
		{"classic", testprog.Options{}, nil, []string{"binary-trees", "20", "+RTS", "-A64k"}},
		// Symbols of stripped libraries are those that they export.
		{"maps", testprog.Options{Dynamic: true}, nil, []string{"50000", "4"}},
		{"maps", testprog.Options{Dynamic: true, Threaded: true}, nil, []string{"50000", "4", "+RTS", "-A64k"}},
		{"server", testprog.Options{Dynamic: true, Threaded: true}, nil, []string{"20000", "10", "4", "+RTS", "-N2"}},
		{"example", testprog.Options{}, nil, nil},
		{"deep", testprog.Options{}, nil, []string{"recursion", "20000", "20"}},
	} {
		name := fmt.Sprintf("%s %v %v", c.name, c.flags, c.args)
		log, r := record(t, c.flags, testprog.Build(t, c.name, c.options), append(c.args, "+RTS", "-s")...)
		want := counted(t, name, r.stderr)
		l := readLog(t, log)
		var sampled float64
		for _, s := range l.allocations {
			sampled += float64(s.Weight)
		}
		t.Logf("%s: %.0f bytes in %d samples, the RTS counted %.0f", name, sampled, len(l.allocations), want)
		if sampled < 0.99*want || sampled > 1.01*want {
			t.Errorf("%s: %.0f bytes were sampled, the RTS counted %.0f", name, sampled, want)
		}
		if c.name != "alloc31" || c.flags == nil {
			continue
		}
		// Two and a half times the interval are five standard deviations.
		h := hotOf(t, log, "--event", "alloc")
		for name, want := range map[string]float64{"Main.three": 0.75, "Main.one": 0.25} {
			if r := h.element(t, name); math.Abs(r.Share-want) > 0.01+2.5*max(r.High-r.Share, r.Share-r.Low) {
				t.Errorf("%s has %.4f of the bytes (%.4f to %.4f), want %.2f", name, r.Share, r.Low, r.High, want)
			}
		}
	}
}

// allocShares gives the bindings' shares of the bytes.
func allocShares(t *testing.T, log string) map[string]float64 {
	t.Helper()
	var h struct {
		Unit string
		Rows []hotRow
	}
	view(t, &h, "hot", "--event", "alloc", log)
	if h.Unit != "bytes" {
		t.Errorf("unit is %q", h.Unit)
	}
	shares := map[string]float64{}
	for _, row := range h.Rows {
		shares[row.Element] = row.Share
	}
	return shares
}

// The run-time system allocates large objects; they are attributed to the Haskell code that
// requested them.
func TestLargeObjects(t *testing.T) {
	log, r := record(t, []string{"-e", "cpu-clock,alloc", "--max-overhead", "0"}, testprog.Build(t, "arrays", testprog.Options{}), "8000", "+RTS", "-s")
	want := counted(t, "arrays", r.stderr)
	var sampled float64
	for _, s := range readLog(t, log).allocations {
		sampled += float64(s.Weight)
	}
	if sampled < 0.99*want || sampled > 1.01*want {
		t.Errorf("%.0f bytes were sampled, the RTS counted %.0f", sampled, want)
	}
	shares := allocShares(t, log)
	for element, want := range map[string]float64{"Main.wide": 0.6, "Main.narrow": 0.2, "Main.cells": 0.2} {
		// The probe at blocks is attached a little later than the others.
		if got := shares[element]; got < want-0.1 || got > want+0.1 {
			t.Errorf("%s has %.3f of the bytes, not about %.1f", element, got, want)
		}
	}
}

// What the run-time system allocates for itself is what it counts, and is named so: the chunks
// of a growing stack, and threads with their stacks. That does not depend on how many samples
// there are.
func TestRunTimeSystemsOwnAllocation(t *testing.T) {
	for _, c := range []struct {
		element string
		args    []string
		// least and most are the bytes of what is counted by the program's own arguments.
		least, most float64
	}{
		// A round's 400,000 frames of 8 bytes take 98 chunks of 32 KiB or, with an underflow
		// frame and a header in each, 99.
		{"(stack chunks)", []string{"stack", "400000", "150"}, 150 * 98 * 32768, 150 * 100 * 32768},
		// A thread and its first stack take 1 KiB.
		{"(thread stacks)", []string{"threads", "300000"}, 300000 * 1024, 300000 * 1024},
	} {
		log, r := record(t, []string{"-e", "cpu-clock,alloc", "--max-overhead", "0"}, testprog.Build(t, "own", testprog.Options{}), append(c.args, "+RTS", "-s")...)
		all := counted(t, "own", r.stderr)
		share := allocShares(t, log)[c.element]
		t.Logf("%s has %.4f of the bytes, by their number %.4f to %.4f", c.element, share, c.least/all, c.most/all)
		if share < c.least/all-0.02 || share > c.most/all+0.02 {
			t.Errorf("%s has %.3f of the bytes, not %.3f to %.3f", c.element, share, c.least/all, c.most/all)
		}
	}
}

// At the default budget, a program that makes large arrays fills its nursery with small
// objects and never finds it full in a heap check. These bytes are attributed to the code
// that allocates them, more precisely the longer the program runs: if hits are expensive, a
// window at blocks may be late, and may miss a program that waits for a CPU.
func TestSmallObjectsBesideLarge(t *testing.T) {
	exe := testprog.Build(t, "arrays", testprog.Options{})
	about := func(share, want float64) bool { return share > want/3 && share < (1+want)/2 }
	for _, rounds := range []string{"60000", "200000", "600000"} {
		log, _ := record(t, []string{"-e", "cpu-clock,alloc"}, exe, rounds)
		shares := allocShares(t, log)
		wide, narrow, cells := shares["Main.wide"], shares["Main.narrow"], shares["Main.cells"]
		t.Logf("%s rounds: wide %.3f, narrow %.3f, cells %.3f", rounds, wide, narrow, cells)
		if about(wide, 0.6) && about(narrow, 0.2) && about(cells, 0.2) {
			return
		}
	}
	t.Error("the bytes are not divided by about 60 : 20 : 20")
}

// A budget has full nurseries watched for a part of the time only, in the program that allocates
// most and pays a hundred times as much without one, and all of its bytes are sampled nevertheless.
// What measuring costs is the machine's affair, stalls included: that the budget is kept is tested
// in agent/overhead, with costs of its own.
func TestOverheadBudget(t *testing.T) {
	log, r := record(t, []string{"-e", "cpu-clock,alloc", "--max-overhead", "0.5"}, testprog.Build(t, "alloc31", testprog.Options{}), "240000", "+RTS", "-s")
	var info struct {
		Agent struct {
			Budget *struct {
				Asked, Measured float64
				Nursery         struct{ Mean float64 } `json:"alloc_nursery"`
			}
		}
	}
	view(t, &info, "info", log)
	b := info.Agent.Budget
	if b == nil {
		t.Fatal("the log has no overhead")
	}
	t.Logf("measured %.3f %%, full nurseries watched %.1f %% of the time", 100*b.Measured, 100*b.Nursery.Mean)
	if b.Asked != 0.005 || b.Nursery.Mean <= 0 || b.Nursery.Mean > 0.5 || b.Measured <= 0 || b.Measured > 20*b.Asked {
		t.Errorf("measured overhead is %.5f, allowed %.5f; full nurseries are watched for %.3f of the time", b.Measured, b.Asked, b.Nursery.Mean)
	}
	want := counted(t, "alloc31", r.stderr)
	l := readLog(t, log)
	var sampled float64
	for _, s := range l.allocations {
		sampled += float64(s.Weight)
	}
	if sampled < 0.98*want || sampled > 1.02*want {
		t.Errorf("%.0f bytes were sampled, the RTS counted %.0f", sampled, want)
	}
}

// A stripped program has no symbol for the probe: that is reported once, and the other
// events are recorded.
func TestAllocationNeedsSymbols(t *testing.T) {
	strip := testprog.NeedTool(t, "strip", "binutils")
	stripped := t.TempDir() + "/alloc31"
	if out, err := exec.Command(strip, "-o", stripped, testprog.Build(t, "alloc31", testprog.Options{})).CombinedOutput(); err != nil {
		t.Fatalf("strip: %v\n%s", err, out)
	}
	log, r := record(t, nil, stripped)
	wantLine(t, r.stderr, "alloc", "not available", "symbol")
	if l := readLog(t, log); len(l.samples) == 0 || len(l.allocations) != 0 {
		t.Errorf("%d samples, %d of allocation", len(l.samples), len(l.allocations))
	}
	testprog.NeedRoot(t)
	alone := run(t, command(t, ccagent, "record", "-e", "alloc", "-o", log, "--", stripped))
	if alone.status != 125 || !strings.Contains(alone.stderr, "not available") {
		t.Errorf("alloc alone: status %d\n%s", alone.status, alone.stderr)
	}
}

// Of a library without its symbol table not all capabilities are known from the start: what one of
// them allocated is in the total, or is said not to be.
func TestAllocationOfUnlistedCapabilities(t *testing.T) {
	exe := testprog.Build(t, "stm", testprog.Options{Release: "9.6.6", Dynamic: true, Threaded: true})
	for _, row := range []struct {
		flags   []string
		batches string
		found   bool // CPU samples come from every capability for long enough to find it early
	}{
		{nil, "2000", false},
		{[]string{"-e", "alloc"}, "2000", false},
		{nil, "6000", true},
	} {
		log, r := record(t, row.flags, exe, row.batches, "+RTS", "-N2", "-s")
		want, sampled := counted(t, "stm", r.stderr), 0.0
		for _, s := range readLog(t, log).allocations {
			sampled += float64(s.Weight)
		}
		said := strings.Contains(r.stderr, "event alloc leaves out what was allocated on 1 of ")
		t.Logf("%v %s: %.0f bytes, the RTS counted %.0f; said that a capability is left out: %v", row.flags, row.batches, sampled, want, said)
		if sampled > 1.01*want || !said && sampled < 0.99*want-64<<10 {
			t.Errorf("%v %s: %.0f bytes were sampled, the RTS counted %.0f, and nothing is said of it", row.flags, row.batches, sampled, want)
		}
		if row.found && sampled < 0.9*want {
			t.Errorf("%v %s: a capability was found late or not at all", row.flags, row.batches)
		}
	}
}
