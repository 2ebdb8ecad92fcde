package perf

import (
	"errors"
	"slices"
	"testing"

	"ccagent/internal/testprog"

	"golang.org/x/sys/unix"
)

// Lookup finds events by perf's names and aliases.
func TestLookup(t *testing.T) {
	for _, c := range []struct {
		name   string
		canon  string
		typ    uint32
		config uint64
		unit   string
	}{
		{"cycles", "cycles", unix.PERF_TYPE_HARDWARE, 0, "cycles"},
		{"cpu-cycles", "cycles", unix.PERF_TYPE_HARDWARE, 0, "cycles"},
		{"branch-instructions", "branches", unix.PERF_TYPE_HARDWARE, 4, "branches"},
		{"cpu-clock", "cpu-clock", unix.PERF_TYPE_SOFTWARE, 0, "ns"},
		{"faults", "page-faults", unix.PERF_TYPE_SOFTWARE, 2, "faults"},
		{"L1-dcache-load-misses", "L1-dcache-load-misses", unix.PERF_TYPE_HW_CACHE, 0x10000, "misses"},
		{"dTLB-store-misses", "dTLB-store-misses", unix.PERF_TYPE_HW_CACHE, 0x10103, "misses"},
		{"LLC-loads", "LLC-loads", unix.PERF_TYPE_HW_CACHE, 0x2, "loads"},
		{"r01c2", "r01c2", unix.PERF_TYPE_RAW, 0x1c2, "events"},
	} {
		e, err := Lookup(c.name)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if e.Name != c.canon || uint32(e.Type) != c.typ || e.Config != c.config || e.Unit != c.unit {
			t.Errorf("%s is %+v, want %+v", c.name, e, c)
		}
	}
}

// Lookup of an unknown name gives an error that lists similar names.
func TestLookupUnknown(t *testing.T) {
	for name, want := range map[string]string{
		"cycels":      "cycles",
		"cache-miss":  "cache-misses",
		"Cycles":      "cycles",
		"page-fault":  "page-faults",
		"cpuclock":    "cpu-clock",
		"instruction": "instructions",
	} {
		_, err := Lookup(name)
		var unknown *UnknownEventError
		if !errors.As(err, &unknown) {
			t.Errorf("%s: error is %v", name, err)
			continue
		}
		if !slices.Contains(unknown.Nearest, want) {
			t.Errorf("%s: nearest are %v, want %s among them", name, unknown.Nearest, want)
		}
	}
	if _, err := Lookup("nothing-like-any-event-at-all"); err == nil {
		t.Error("a name that no event has was found")
	}
}

// Every name, and every alias, names exactly one event.
func TestEventNamesAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, e := range Events() {
		for _, n := range append([]string{e.Name}, e.Aliases...) {
			if seen[n] {
				t.Errorf("%s names two events", n)
			}
			seen[n] = true
		}
	}
}

// The CPU clock can be sampled on every kernel, if the caller is permitted to.
func TestProbeClock(t *testing.T) {
	e, err := Lookup(ClockEvent)
	if err != nil {
		t.Fatal(err)
	}
	var why *UnavailableError
	if err := Probe(e); errors.As(err, &why) && why.Permission {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "permission to sample: " + err.Error()})
	} else if err != nil {
		t.Errorf("the CPU clock, which every kernel has: %v", err)
	}
}
