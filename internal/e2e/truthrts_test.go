package e2e

import (
	"debug/elf"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// byteClaims compares the bytes of a whole run with +RTS -s, and what each binding's code
// allocates with callgrind's count of each executed instruction that moves the heap pointer,
// times the number of bytes in it.
func byteClaims(t *testing.T, p truthProgram, w truthWay) []claim {
	t.Helper()
	exe := p.build(t, w)
	log, r := record(t, []string{"-e", "alloc"}, exe, p.arguments(w, "-s")...)
	ours, samples, total := hotRows(t, log, "alloc")
	want := counted(t, p.name, r.stderr)
	claims := []claim{{quantity: "bytes (-s)", row: "total", oracle: want, ours: total, low: total * 0.9999, high: total * 1.0001, count: true}}
	if w.dynamic || w.two || p.threaded {
		return claims
	}
	shares, heap := callgrindBytes(t, exe, testprog.Source(t, p.program), p.args)
	if heap < 0.98*want {
		// The rest are bytes of primitives and stacks, of which callgrind does not tell for
		// whom they are.
		return claims
	}
	for name := range shares {
		shares[name] /= want
	}
	for _, name := range largest(shares, 10) {
		if name != "?" && name != "(C)" {
			claims = append(claims, ours[name].claim("bytes (callgrind)", name, shares[name], 0, samples))
		}
	}
	return claims
}

// callgrindBytes gives the bytes by which a program's code moves the heap pointer, by
// codeNames' names, and their sum. A heap check that fails moves it, and is run again: what
// it then asks of the collector is taken off.
func callgrindBytes(t *testing.T, exe, sources string, args []string) (bytes map[string]float64, sum float64) {
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
	for address, count := range testprog.CountInstructions(t, exe, args...) {
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

// heapBytes decodes the two instructions that count: add $n,%r12 moves the heap pointer by
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
	if w.dynamic || w.two {
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
		claims = append(claims, claim{quantity: "time (-p)", row: name, oracle: theirs.shares[name], error: binomial(theirs.shares[name], int(theirs.ticks)), ours: c.Individual, low: c.Low, high: c.High})
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

var collections = regexp.MustCompile(`Gen +\d+ +(\d+) colls, +\d+ par +([\d.]+)s +([\d.]+)s +([\d.]+)s +([\d.]+)s`)

// collectionClaims compares collections with the run-time system's own summary of the same
// run.
func collectionClaims(t *testing.T, p truthProgram, w truthWay) []claim {
	t.Helper()
	log, r := record(t, []string{"-e", "gc"}, p.build(t, w), p.arguments(w, "-s")...)
	var count, seconds, longest float64
	for _, m := range collections.FindAllStringSubmatch(r.stderr, -1) {
		n, _ := strconv.ParseFloat(m[1], 64)
		s, _ := strconv.ParseFloat(m[3], 64)
		l, _ := strconv.ParseFloat(m[5], 64)
		count, seconds, longest = count+n, seconds+s, max(longest, l)
	}
	var d gcDoc
	view(t, &d, "gc", log)
	ours := 0.0
	for _, p := range d.Pauses {
		ours = max(ours, p.Work)
	}
	work := 0.0
	for _, p := range d.Pauses {
		work += p.Work
	}
	// Printed to a millisecond, and to a tenth of one.
	return []claim{
		{quantity: "collections (-s)", row: "count", oracle: count, ours: d.Total.Count, low: d.Total.Count, high: d.Total.Count, count: true},
		{quantity: "collections (-s)", row: "seconds", oracle: seconds, error: 0.002, ours: work, low: work * 0.97, high: work * 1.03, count: true},
		{quantity: "collections (-s)", row: "longest", oracle: longest, error: 0.0002, ours: ours, low: ours * 0.97, high: ours * 1.03, count: true},
	}
}

type gcDoc struct {
	Pauses []gcPause
	Total  struct{ Count, Seconds float64 }
}

type gcPause struct {
	Work float64 `json:"work_seconds"` // the part that the run-time system's summary counts
}
