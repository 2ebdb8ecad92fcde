package e2e

import (
	"bufio"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// leftOut is how ccagent says that a total is of a part.
var leftOut = regexp.MustCompile(`event alloc leaves out what was allocated on \d+ of \d+ capabilities`)

// byteClaims compares the bytes of a whole run with +RTS -s, and what each binding's code
// allocates with callgrind's count of each executed instruction that moves the heap pointer,
// times the number of bytes in it.
func byteClaims(t *testing.T, p truthProgram, w truthWay) []claim {
	t.Helper()
	exe := p.build(t, w)
	log, r := record(t, []string{"-e", "alloc"}, exe, p.arguments(w, "-s")...)
	ours, samples, total := hotRows(t, log, "alloc")
	want := counted(t, p.name, r.stderr)
	// To a hundredth of a per cent, and what a run-time system allocates as it ends.
	if line := leftOut.FindString(r.stderr); line != "" {
		return []claim{{Quantity: "bytes (-s)", Row: line, Refused: true}}
	}
	claims := []claim{{Quantity: "bytes (-s)", Row: "total", Oracle: want, Ours: total, Low: total*0.9999 - 64<<10, High: total*1.0001 + 64<<10, Count: true}}
	if w.dynamic || w.two || !p.counted || want < 64<<20 {
		return claims
	}
	sources := p.sources(t)
	shares, heap := callgrindBytes(t, exe, sources, p.args)
	if heap < 0.98*want {
		// The rest are bytes of primitives and stacks, of which callgrind does not say for
		// whom they are.
		return claims
	}
	for name := range shares {
		shares[name] /= want
	}
	for _, name := range largest(shares, 10) {
		if !strings.HasPrefix(name, "?") && name != "(C)" {
			c := ours[name].claim("bytes (callgrind)", name, shares[name], 0, samples)
			c.Unknown = unknown(name, sources, shares)
			claims = append(claims, c)
		}
	}
	return claims
}

// callgrindBytes gives the bytes by which a program's code moves the heap pointer, by
// codeNames' names, and their sum. A heap check that fails moves it, and is run again: what
// it then asks of the collector is taken off.
func callgrindBytes(t *testing.T, exe string, sources *sourceTexts, args []string) (bytes map[string]float64, sum float64) {
	t.Helper()
	f, err := elf.Open(exe)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	text := f.Section(".text")
	code, err := text.Data()
	if err != nil {
		t.Fatal(err)
	}
	moved := map[uint64]float64{}
	offsets := map[uint64]int{}
	for address, count := range countInstructions(t, exe, args) {
		if address < text.Addr || address-text.Addr+16 > uint64(len(code)) {
			continue
		}
		if n := heapBytes(code[address-text.Addr:]); n != 0 {
			offset := address - text.Addr + text.Offset
			moved[offset] += count * n
			offsets[offset] = 1
		}
	}
	bytes = map[string]float64{}
	for offset, name := range codeNames(t, exe, exe, sources, offsets) {
		bytes[name] += moved[offset]
		sum += moved[offset]
	}
	return bytes, sum
}

// countInstructions is testprog.CountInstructions, whose result is kept: it takes a minute or
// more, and does not change.
func countInstructions(t *testing.T, exe string, args []string) map[uint64]float64 {
	t.Helper()
	// The name of a program's folder is a hash of what it was built of.
	name := fmt.Sprintf("%s %q", filepath.Base(filepath.Dir(exe)), args)
	kept := filepath.Join(truthFolder, "counts", fmt.Sprintf("%x", sha256.Sum256([]byte(name))))
	counts := map[uint64]float64{}
	if data, err := os.ReadFile(kept); err == nil && json.Unmarshal(data, &counts) == nil {
		return counts
	}
	counts = testprog.CountInstructions(t, exe, args...)
	data, err := json.Marshal(counts)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(kept), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(kept, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return counts
}

// heapBytes decodes the two instructions that Count: add $n,%r12 moves the heap pointer by
// n; movq $n,904(%r13) asks the collector for n after that was too much.
func heapBytes(code []byte) float64 {
	switch {
	case code[0] == 0x49 && code[1] == 0x83 && code[2] == 0xc4:
		return float64(int8(code[3]))
	case code[0] == 0x49 && code[1] == 0x81 && code[2] == 0xc4:
		return float64(int32(binary.LittleEndian.Uint32(code[3:])))
	case code[0] == 0x49 && code[1] == 0xc7 && code[2] == 0x85 && binary.LittleEndian.Uint32(code[3:]) == 904:
		return -float64(binary.LittleEndian.Uint32(code[7:]))
	}
	return 0
}

// centreClaims compares the shares of cost centres with the ticks and bytes of the report
// of +RTS -p of the same run.
func centreClaims(t *testing.T, p truthProgram, w truthWay) (claims []claim) {
	t.Helper()
	// The report's ticks go on in a system call that Haskell calls as unsafe.
	if w.dynamic || w.two || p.sleepers != nil || p.debian != nil && len(p.debian.Needs) > 0 {
		return nil
	}
	exe := p.build(t, w, "-prof", "-fprof-auto-top")
	log, _ := record(t, []string{"-e", "cycles"}, exe, p.arguments(w, "-P")...)
	found, err := filepath.Glob(filepath.Join(filepath.Dir(filepath.Dir(log)), "*", p.program+".prof"))
	if err != nil || len(found) == 0 {
		t.Fatalf("no report of -p: %v", err)
	}
	theirs := readProf(t, found[len(found)-1])
	var d centresDoc
	view(t, &d, "ccs", log, "--mode", "exact")
	ours := d.centres()
	for _, name := range largest(theirs.shares, 10) {
		c := ours[name]
		claims = append(claims, claim{Quantity: "time (-p)", Row: name, Oracle: theirs.shares[name], Error: binomial(theirs.shares[name], int(theirs.ticks)), Ours: c.Individual, Low: c.Low, High: c.High})
	}
	return claims
}

// binomial is half the 95 % interval of a share of n independent samples.
func binomial(share float64, n int) float64 {
	n = max(n, 1)
	return 1.96 * math.Sqrt(max(share*(1-share), 1/float64(n))/float64(n))
}

// centres sums a document's rows by centre, of what +RTS -p counts.
func (d *centresDoc) centres() map[string]centreRow {
	sums := map[string]centreRow{}
	other, variance := 0.0, map[string]float64{}
	for _, r := range d.Rows {
		if strings.HasPrefix(r.CostCentre, "(") || pseudoCentre[r.CostCentre] {
			other += r.Individual
			continue
		}
		s := sums[r.CostCentre]
		s.Individual += r.Individual
		variance[r.CostCentre] += math.Pow((r.High-r.Low)/2, 2)
		sums[r.CostCentre] = s
	}
	for name, s := range sums {
		half := math.Sqrt(variance[name])
		s.Low, s.High = (s.Individual-half)/(1-other), (s.Individual+half)/(1-other)
		s.Individual /= 1 - other
		sums[name] = s
	}
	return sums
}

var pseudoCentre = map[string]bool{"GC": true, "SYSTEM": true, "OVERHEAD": true, "IDLE": true, "DONT_CARE": true}

type profReport struct {
	ticks  float64
	shares map[string]float64 // of ticks, by Module.centre
}

// readProf reads a report of +RTS -P: the ticks of each cost centre, over all its stacks.
func readProf(t *testing.T, path string) profReport {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	r := profReport{shares: map[string]float64{}}
	tree := false
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		switch {
		case strings.Contains(line, "individual") && strings.Contains(line, "inherited"):
			tree = true
		case !tree || len(f) < 10 || f[0] == "COST":
		default:
			ticks, err := strconv.ParseFloat(f[len(f)-2], 64)
			if err != nil {
				t.Fatalf("report line %q: %v", line, err)
			}
			r.ticks += ticks
			r.shares[f[1]+"."+f[0]] += ticks
		}
	}
	for name := range r.shares {
		r.shares[name] /= max(r.ticks, 1)
	}
	return r
}

// eventClaims compares collections and runs of Haskell threads with the run-time system's own
// log of the same run, in the time in which ccagent says that it watched them.
func eventClaims(t *testing.T, p truthProgram, w truthWay) []claim {
	t.Helper()
	dir := t.TempDir()
	theirs := filepath.Join(dir, "rts.eventlog")
	exe := p.build(t, w, "-eventlog")
	log, _ := record(t, []string{"-e", "gc,threads"}, exe, p.arguments(w, "-l", "-ol"+theirs)...)
	if why := probesProblem(t, log); why != "" {
		return []claim{{Quantity: "collections (-l)", Row: why, Refused: true}}
	}
	watches, edges := watchedBy(t, log)
	inside := func(group string, at float64) bool {
		return slices.ContainsFunc(watches[group], func(w [2]float64) bool { return w[0] <= at && at < w[1] })
	}
	sum := func(d gcDoc, offset float64) (count, work, sync, longest float64) {
		for _, p := range d.Pauses {
			at := p.Start + offset
			if !inside("gc", at) {
				continue
			}
			count, work, sync = count+1, work+p.Work, sync+p.Sync
			// Its work: at the program's end no thread runs after a collection, which would end
			// the pause. One at an edge may be inside by one of the two clocks alone.
			if inside("gc", at-0.001) && inside("gc", at+p.Seconds+0.001) {
				longest = max(longest, p.Work)
			}
		}
		return
	}
	var a, b gcDoc
	view(t, &a, "gc", theirs)
	view(t, &b, "gc", log)
	theirStart, theirRuns := startAndRuns(t, theirs)
	ourStart, ourRuns := startAndRuns(t, log)
	offset := theirStart - ourStart
	count, work, sync, longest := sum(a, offset)
	n, ourWork, ourSync, ourLongest := sum(b, 0)
	// Where the two clocks differ, a pause at each edge may be on the other side of it.
	each := longest * float64(edges["gc"])
	near := 1e-5 * count // where one of the two takes the time
	claims := []claim{
		{Quantity: "collections (-l)", Row: "count", Oracle: count, Error: float64(edges["gc"]), Ours: n, Low: n, High: n, Count: true},
		{Quantity: "collections (-l)", Row: "seconds of work", Oracle: work, Error: each + near, Ours: ourWork, Low: ourWork * 0.97, High: ourWork * 1.03, Count: true},
		{Quantity: "collections (-l)", Row: "longest, seconds of work", Oracle: longest, Error: 1e-4, Ours: ourLongest, Low: ourLongest * 0.97, High: ourLongest * 1.03, Count: true},
	}
	if len(b.Pauses) > 0 {
		// Those that were not seen are counted, but for those before the first and after the last
		// that was.
		from, to := b.Pauses[0].Start-offset, b.Pauses[len(b.Pauses)-1].Start-offset
		all, ourAll := 0.0, float64(len(b.Pauses))+missedCollections(t, log)
		for _, p := range a.Pauses {
			if from-1e-4 <= p.Start && p.Start <= to+1e-4 {
				all++
			}
		}
		claims = append(claims, claim{Quantity: "collections (-l)", Row: "count, with those not seen", Oracle: all, Error: 2, Ours: ourAll, Low: ourAll, High: ourAll, Count: true})
	}
	if w.two {
		claims = append(claims, claim{Quantity: "collections (-l)", Row: "seconds until all stopped", Oracle: sync, Error: each + near, Ours: ourSync, Low: ourSync * 0.97, High: ourSync * 1.03, Count: true})
	}
	runs := func(at []float64, offset float64) (n float64) {
		for _, x := range at {
			if inside("threads", x+offset) {
				n++
			}
		}
		return n
	}
	if n := runs(ourRuns, 0); len(watches["threads"]) > 0 {
		// Threads switch up to a million times a second.
		r := runs(theirRuns, offset)
		claims = append(claims, claim{Quantity: "runs of threads (-l)", Row: "count", Oracle: r, Error: float64(edges["threads"]) + 0.01*r, Ours: n, Low: n, High: n, Count: true})
	}
	return claims
}

type gcDoc struct {
	Pauses []gcPause
}

type gcPause struct {
	Start   float64 `json:"start_seconds"`
	Seconds float64
	Sync    float64 `json:"sync_seconds"`
	Work    float64 `json:"work_seconds"`
}

// watchedBy gives the stretches of a log in which groups of probes were in place, in seconds,
// and how many times each began or ended to be.
func watchedBy(t *testing.T, log string) (watches map[string][][2]float64, edges map[string]int) {
	t.Helper()
	watches, edges = map[string][][2]float64{}, map[string]int{}
	eachRecord(t, log, func(r *eventlog.Record) {
		e, ok := r.Event.(*eventlog.RTSWatch)
		if !ok {
			return
		}
		edges[e.Group]++
		of := watches[e.Group]
		at := float64(r.Time) / 1e9
		switch {
		case e.Watched:
			watches[e.Group] = append(of, [2]float64{at, math.Inf(1)})
		case len(of) > 0:
			of[len(of)-1][1] = at
		}
	})
	return watches, edges
}

// missedCollections gives how many collections a log says that it has not.
func missedCollections(t *testing.T, log string) (n float64) {
	t.Helper()
	eachRecord(t, log, func(r *eventlog.Record) {
		if e, ok := r.Event.(*eventlog.RTSProbes); ok && e.Group == "gc" {
			n = float64(e.Missed)
		}
	})
	return n
}

// probesProblem gives why collections are not recorded, if a log says so.
func probesProblem(t *testing.T, log string) (why string) {
	t.Helper()
	eachRecord(t, log, func(r *eventlog.Record) {
		if e, ok := r.Event.(*eventlog.Warning); ok && strings.Contains(e.Text, "no symbol table") {
			why, _, _ = strings.Cut(e.Text, ";")
		}
	})
	return why
}

// startAndRuns gives the time since 1970 at which a log begins, and when threads began to run.
func startAndRuns(t *testing.T, log string) (start float64, runs []float64) {
	t.Helper()
	eachRecord(t, log, func(r *eventlog.Record) {
		switch e := r.Event.(type) {
		case *eventlog.WallClock:
			start = float64(e.Sec) + float64(e.Nsec)/1e9 - float64(r.Time)/1e9
		case *eventlog.RunThread:
			runs = append(runs, float64(r.Time)/1e9)
		}
	})
	return start, runs
}

func eachRecord(t *testing.T, log string, do func(*eventlog.Record)) {
	t.Helper()
	f, err := os.Open(log)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r := eventlog.NewReader(bufio.NewReader(f))
	for r.Next() {
		do(r.Record())
	}
	if err := r.Err(); err != nil {
		t.Fatal(err)
	}
}

var slept = regexp.MustCompile(`nanosleep.*<(\d+\.\d+)>$`)

// waitClaims compares time off the CPU with strace's times of the system calls of the same run.
func waitClaims(t *testing.T, p truthProgram, w truthWay) []claim {
	t.Helper()
	if p.sleepers == nil {
		return nil
	}
	strace := testprog.NeedTool(t, "strace", "strace")
	trace := filepath.Join(t.TempDir(), "trace")
	argv := slices.Concat([]string{"-f", "-T", "-o", trace, "-e", "trace=nanosleep,clock_nanosleep", p.build(t, w)}, p.arguments(w))
	log, _ := record(t, []string{"-e", "off-cpu"}, strace, argv...)
	data, err := os.ReadFile(trace)
	if err != nil {
		t.Fatal(err)
	}
	sum, calls := 0.0, 0
	for line := range strings.Lines(string(data)) {
		if m := slept.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			s, _ := strconv.ParseFloat(m[1], 64)
			sum, calls = sum+s, calls+1
		}
	}
	rows, _, total := hotRows(t, log, "off-cpu")
	ours := 0.0
	for _, name := range p.sleepers {
		ours += rows[name].Inclusive * total / 1e9
	}
	// strace stops the thread before and after each call.
	return []claim{{Quantity: "waits (strace)", Row: strings.Join(p.sleepers, ", "), Oracle: sum, Error: 0.001 * float64(calls), Ours: ours, Low: ours * 0.99, High: ours * 1.01, Count: true}}
}
