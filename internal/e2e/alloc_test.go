package e2e

import (
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// The weights add up to what the run-time system itself counts, and fall on the
// code that allocates.
func TestAllocation(t *testing.T) {
	for _, c := range []struct {
		name    string
		options testprog.Options
		args    []string
	}{
		{"alloc31", testprog.Options{}, nil},
		{"maps", testprog.Options{}, nil},
		{"example", testprog.Options{}, nil},
		{"alloc31", testprog.Options{Threaded: true}, nil},
	} {
		log, r := record(t, nil, testprog.Build(t, c.name, c.options), append(c.args, "+RTS", "-s")...)
		m := regexp.MustCompile(`([\d,]+) bytes allocated in the heap`).FindStringSubmatch(r.stderr)
		if m == nil {
			t.Fatalf("%s: +RTS -s says nothing of allocation:\n%s", c.name, r.stderr)
		}
		counted, err := strconv.ParseFloat(strings.ReplaceAll(m[1], ",", ""), 64)
		if err != nil {
			t.Fatal(err)
		}
		l := readLog(t, log)
		var sampled float64
		for _, s := range l.allocations {
			sampled += float64(s.Weight)
		}
		t.Logf("%s %+v: %.0f bytes in %d samples, the RTS counted %.0f", c.name, c.options, sampled, len(l.allocations), counted)
		if sampled < 0.99*counted || sampled > 1.01*counted {
			t.Errorf("%s %+v: %.0f bytes were sampled, the RTS counted %.0f", c.name, c.options, sampled, counted)
		}
		if c.name != "alloc31" {
			continue
		}
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
		n := float64(len(l.allocations))
		wantShare(t, "Main.three", int(shares["Main.three"]*n+0.5), int(n), 0.75)
		wantShare(t, "Main.one", int(shares["Main.one"]*n+0.5), int(n), 0.25)
	}
}

// A stripped program gives no place for the probe: said once, and the other
// events go on.
func TestAllocationNeedsSymbols(t *testing.T) {
	strip, err := exec.LookPath("strip")
	if err != nil {
		t.Skip("unsupported: no strip (package binutils)")
	}
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
