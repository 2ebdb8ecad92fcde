package perf

import (
	"fmt"
	"slices"
	"strings"

	goperf "github.com/elastic/go-perf"
	"golang.org/x/sys/unix"
)

// Event is an event by perf's name, as the kernel takes it.
type Event struct {
	Name   string
	Type   goperf.EventType
	Config uint64
	Unit   string // of one count: "cycles", "ns", …
	// Kind groups events for listings: "hardware", "software", "cache", "raw", "pmu".
	Kind string
	// Aliases are other names that perf knows it by.
	Aliases []string

	Config1, Config2 uint64
	// Precise is the kernel's precise_ip: by how little the address may be off.
	Precise int
	// OnlyUser and OnlyKernel restrict what is counted.
	OnlyUser, OnlyKernel bool
	// Cores are the PMUs of a hybrid CPU that each count it on their cores.
	Cores []PMU
}

// UnknownEventError is returned for a name that no event has.
type UnknownEventError struct {
	Name string
	// Nearest are names that look alike, best first.
	Nearest []string
}

func (e *UnknownEventError) Error() string {
	if len(e.Nearest) == 0 {
		return fmt.Sprintf("unknown event %q", e.Name)
	}
	return fmt.Sprintf("unknown event %q; did you mean %s?", e.Name, strings.Join(e.Nearest, ", "))
}

// ClockEvent stands in for cycles where there is no PMU: its hrtimer fires
// while the thread runs, and its count is in ns.
const ClockEvent = "cpu-clock"

func hardware(name string, config uint64, unit string, aliases ...string) Event {
	return Event{Name: name, Type: unix.PERF_TYPE_HARDWARE, Config: config, Unit: unit, Kind: "hardware", Aliases: aliases}
}

func software(name string, config uint64, unit string, aliases ...string) Event {
	return Event{Name: name, Type: unix.PERF_TYPE_SOFTWARE, Config: config, Unit: unit, Kind: "software", Aliases: aliases}
}

// PerSecond is more than a CPU counts of the event in a second, as far as that can be
// known: a period below its quotient by a rate of samples may exceed the rate.
func (e Event) PerSecond() uint64 {
	switch {
	case e.Unit == "ns":
		return 1e9
	case e.Unit == "cycles" || e.Unit == "instructions" || e.Unit == "branches":
		return 4e9
	case e.Kind == "cache" || e.Kind == "hardware":
		return 1e7 // misses
	}
	return 0 // faults and switches are rare, other codes not known
}

func cache(name string, config uint64, unit string) Event {
	return Event{Name: name, Type: unix.PERF_TYPE_HW_CACHE, Config: config, Unit: unit, Kind: "cache"}
}

var generic = []Event{
	hardware("cycles", unix.PERF_COUNT_HW_CPU_CYCLES, "cycles", "cpu-cycles"),
	hardware("instructions", unix.PERF_COUNT_HW_INSTRUCTIONS, "instructions"),
	hardware("cache-references", unix.PERF_COUNT_HW_CACHE_REFERENCES, "references"),
	hardware("cache-misses", unix.PERF_COUNT_HW_CACHE_MISSES, "misses"),
	hardware("branches", unix.PERF_COUNT_HW_BRANCH_INSTRUCTIONS, "branches", "branch-instructions"),
	hardware("branch-misses", unix.PERF_COUNT_HW_BRANCH_MISSES, "misses"),
	hardware("bus-cycles", unix.PERF_COUNT_HW_BUS_CYCLES, "cycles"),
	hardware("stalled-cycles-frontend", unix.PERF_COUNT_HW_STALLED_CYCLES_FRONTEND, "cycles", "idle-cycles-frontend"),
	hardware("stalled-cycles-backend", unix.PERF_COUNT_HW_STALLED_CYCLES_BACKEND, "cycles", "idle-cycles-backend"),
	hardware("ref-cycles", unix.PERF_COUNT_HW_REF_CPU_CYCLES, "cycles"),
	software(ClockEvent, unix.PERF_COUNT_SW_CPU_CLOCK, "ns"),
	software("task-clock", unix.PERF_COUNT_SW_TASK_CLOCK, "ns"),
	software("page-faults", unix.PERF_COUNT_SW_PAGE_FAULTS, "faults", "faults"),
	software("minor-faults", unix.PERF_COUNT_SW_PAGE_FAULTS_MIN, "faults"),
	software("major-faults", unix.PERF_COUNT_SW_PAGE_FAULTS_MAJ, "faults"),
	software("context-switches", unix.PERF_COUNT_SW_CONTEXT_SWITCHES, "switches", "cs"),
	software("cpu-migrations", unix.PERF_COUNT_SW_CPU_MIGRATIONS, "migrations", "migrations"),
	software("alignment-faults", unix.PERF_COUNT_SW_ALIGNMENT_FAULTS, "faults"),
	software("emulation-faults", unix.PERF_COUNT_SW_EMULATION_FAULTS, "faults"),
}

// cacheEvents builds perf's names for the generalised cache events, as
// perf_event_open(2) encodes them: cache | op << 8 | result << 16.
func cacheEvents() []Event {
	caches := []struct {
		name string
		id   uint64
		ops  []string
	}{
		{"L1-dcache", unix.PERF_COUNT_HW_CACHE_L1D, []string{"load", "store", "prefetch"}},
		{"L1-icache", unix.PERF_COUNT_HW_CACHE_L1I, []string{"load", "prefetch"}},
		{"LLC", unix.PERF_COUNT_HW_CACHE_LL, []string{"load", "store", "prefetch"}},
		{"dTLB", unix.PERF_COUNT_HW_CACHE_DTLB, []string{"load", "store", "prefetch"}},
		{"iTLB", unix.PERF_COUNT_HW_CACHE_ITLB, []string{"load"}},
		{"branch", unix.PERF_COUNT_HW_CACHE_BPU, []string{"load"}},
		{"node", unix.PERF_COUNT_HW_CACHE_NODE, []string{"load", "store", "prefetch"}},
	}
	ops := map[string]struct {
		id     uint64
		plural string
	}{
		"load":     {unix.PERF_COUNT_HW_CACHE_OP_READ, "loads"},
		"store":    {unix.PERF_COUNT_HW_CACHE_OP_WRITE, "stores"},
		"prefetch": {unix.PERF_COUNT_HW_CACHE_OP_PREFETCH, "prefetches"},
	}
	var events []Event
	for _, c := range caches {
		for _, name := range c.ops {
			op := ops[name]
			config := c.id | op.id<<8
			events = append(events,
				cache(c.name+"-"+op.plural, config|unix.PERF_COUNT_HW_CACHE_RESULT_ACCESS<<16, op.plural),
				cache(c.name+"-"+name+"-misses", config|unix.PERF_COUNT_HW_CACHE_RESULT_MISS<<16, "misses"))
		}
	}
	return events
}

// Events lists every event that has a name, in a stable order. Whether this
// machine counts one is Probe's to say.
func Events() []Event { return append(slices.Clone(generic), cacheEvents()...) }

// is reports whether an event has a name.
func (e *Event) is(name string) bool { return e.Name == name || slices.Contains(e.Aliases, name) }

// nearest gives the names within a third of the name's length in edits.
func nearest(name string, events []Event) []string {
	type candidate struct {
		name     string
		distance int
	}
	var found []candidate
	for _, e := range events {
		for _, n := range append([]string{e.Name}, e.Aliases...) {
			d := editDistance(strings.ToLower(name), strings.ToLower(n))
			if d <= 1+len(n)/3 {
				found = append(found, candidate{n, d})
			}
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return a.distance - b.distance })
	names := make([]string, 0, 3)
	for _, c := range found[:min(3, len(found))] {
		names = append(names, c.name)
	}
	return names
}

// editDistance is Levenshtein's, in bytes; names longer than 64 are all far.
func editDistance(a, b string) int {
	if len(a) > 64 || len(b) > 64 {
		return 64
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := 1; i <= len(a); i++ {
		diagonal := row[0]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			cost := diagonal
			if a[i-1] != b[j-1] {
				cost = 1 + min(diagonal, row[j], row[j-1])
			}
			diagonal, row[j] = row[j], cost
		}
	}
	return row[len(b)]
}
