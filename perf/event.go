package perf

import (
	"fmt"
	"slices"
	"strings"

	goperf "github.com/elastic/go-perf"
	"golang.org/x/sys/unix"
)

// Event is an event in the kernel's encoding, with perf's name for it.
type Event struct {
	Name   string
	Type   goperf.EventType
	Config uint64
	Unit   string // of one count: "cycles", "ns", …
	// Kind groups events for listings: "hardware", "software", "cache", "raw", "pmu".
	Kind string
	// Aliases are other names of the event in perf.
	Aliases []string

	Config1, Config2 uint64
	// Precise is the kernel's precise_ip, a limit on the skid of sampled addresses.
	Precise int
	// OnlyUser and OnlyKernel restrict what is counted.
	OnlyUser, OnlyKernel bool
	// Cores are the PMUs of a hybrid CPU, each of which counts the event on its own cores.
	Cores []PMU
}

// UnknownEventError is returned for a name that is not an event's.
type UnknownEventError struct {
	Name string
	// Nearest are similar names, best first.
	Nearest []string
}

func (e *UnknownEventError) Error() string {
	if len(e.Nearest) == 0 {
		return fmt.Sprintf("unknown event %q", e.Name)
	}
	return fmt.Sprintf("unknown event %q; did you mean %s?", e.Name, strings.Join(e.Nearest, ", "))
}

// ClockEvent replaces cycles on machines without a PMU: its hrtimer fires while the thread
// runs, and it counts ns.
const ClockEvent = "cpu-clock"

// Clock reports whether the event is a clock of CPU time.
func (e Event) Clock() bool { return e.is(ClockEvent) || e.is("task-clock") }

func hardware(name string, config uint64, unit string, aliases ...string) Event {
	return Event{Name: name, Type: unix.PERF_TYPE_HARDWARE, Config: config, Unit: unit, Kind: "hardware", Aliases: aliases}
}

func software(name string, config uint64, unit string, aliases ...string) Event {
	return Event{Name: name, Type: unix.PERF_TYPE_SOFTWARE, Config: config, Unit: unit, Kind: "software", Aliases: aliases}
}

// PerSecond returns an upper limit of the event's counts per second on a CPU, 0 if none is
// known. A period of less than PerSecond divided by a rate of samples may exceed that rate.
func (e Event) PerSecond() uint64 {
	switch {
	case e.Unit == "ns":
		return 1e9
	case e.Unit == "cycles" || e.Unit == "instructions" || e.Unit == "branches":
		return 4e9
	case e.Kind == "cache" || e.Kind == "hardware":
		return 1e7 // misses
	}
	return 0 // faults and switches are rare; of other codes nothing is known
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

// cacheEvents builds perf's names of the generalised cache events, encoded as in
// perf_event_open(2): cache | op << 8 | result << 16.
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

// Events lists every event that has a name, in a stable order. Probe reports whether this
// machine can count one.
func Events() []Event { return append(slices.Clone(generic), cacheEvents()...) }

// is reports whether name is one of the event's names.
func (e *Event) is(name string) bool { return e.Name == name || slices.Contains(e.Aliases, name) }

// nearest returns the names whose edit distance is at most a third of the name's length.
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

// editDistance is the Levenshtein distance in bytes. Names longer than 64 bytes are far from
// all others.
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
