package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// truthProgram is a program of the table in docs/truth.md. A run takes about two seconds.
type truthProgram struct {
	name, program string
	args          []string
	threaded      bool // needs -threaded
	flags         []string
	counted       bool     // under callgrind, which takes fifty times as long
	sleepers      []string // bindings that do all of its sleeping in system calls
	debian        *debianProgram
}

// truthPrograms are small programs of nofib's kind: numbers, lists, trees, maps, arrays,
// exceptions, transactions, threads, and system calls.
var truthPrograms = []truthProgram{
	{name: "binary-trees", program: "classic", args: []string{"binary-trees", "25"}, counted: true},
	{name: "exp3", program: "classic", args: []string{"exp3", "14"}},
	{name: "fannkuch", program: "classic", args: []string{"fannkuch", "9"}},
	{name: "integer", program: "classic", args: []string{"integer", "250000"}, counted: true},
	{name: "k-nucleotide", program: "classic", args: []string{"k-nucleotide", "250000"}, counted: true},
	{name: "lcss", program: "classic", args: []string{"lcss", "2500"}, counted: true},
	{name: "n-body", program: "classic", args: []string{"n-body", "50000000"}},
	{name: "pidigits", program: "classic", args: []string{"pidigits", "9000"}},
	{name: "primes", program: "classic", args: []string{"primes", "600000"}},
	{name: "spectral-norm", program: "classic", args: []string{"spectral-norm", "2500"}, counted: true},
	{name: "rev", program: "rev", args: []string{"220", "6000"}, counted: true},
	{name: "maps", program: "maps", args: []string{"100000", "6"}, counted: true},
	{name: "recursion", program: "deep", args: []string{"recursion", "50000", "600"}},
	{name: "thunks", program: "deep", args: []string{"thunks", "50000", "300"}},
	{name: "arrays", program: "arrays", args: []string{"100000"}},
	{name: "alloc31", program: "alloc31", args: []string{"100000"}, counted: true},
	{name: "spin31", program: "spin31", args: []string{"20000"}},
	{name: "fusion", program: "fusion", counted: true},
	{name: "example", program: "example", args: []string{"1000000"}},
	{name: "stm", program: "stm", args: []string{"12000"}},
	{name: "exceptions", program: "exceptions", args: []string{"100", "40000"}},
	{name: "kernel", program: "kernel", counted: true},
	{name: "server", program: "server", args: []string{"100000", "12", "4"}, threaded: true},
	{name: "waits", program: "waits", args: []string{"150"}, sleepers: []string{"Main.sleepSafely", "Main.sleepUnsafely"}},
	{name: "alex", program: "alex", debian: &debianAlex},
	{name: "happy", program: "happy", debian: &debianHappy},
	{name: "cpphs", program: "cpphs", debian: &debianCpphs},
	{name: "hlint", program: "hlint", debian: &debianHLint, threaded: true},
}

// truthWay is a way of compiling and running a program.
type truthWay struct {
	release string
	two     bool // -threaded and +RTS -N2
	dynamic bool
}

func (w truthWay) String() string {
	s := release(w.release)
	if w.dynamic {
		s += " dynamic"
	}
	if w.two {
		s += " -N2"
	}
	return s
}

// ways gives the ways of the program with that number. The rule stands before the
// measurements: each program is run in two of six ways, in turn; those of Debian's sources with
// its own GHC, with one capability and two.
func (p truthProgram) ways(number int) []truthWay {
	if p.debian != nil {
		return []truthWay{{}, {two: true}}
	}
	all := []truthWay{
		{}, {release: "9.6.6"}, {release: "9.10.3"},
		{two: true}, {release: "9.6.6", two: true, dynamic: true}, {release: "9.10.3", dynamic: true},
	}
	return []truthWay{all[number%3], all[3+number%3]}
}

// claim is a figure of an oracle beside ours. All are in the oracle's unit; of shares it is
// 1.
type claim struct {
	Quantity, Row string
	Oracle        float64
	Error         float64 // half of the oracle's own 95 % interval; 0 if it counts
	Unknown       float64 // how much more it may be
	Ours          float64
	Low, High     float64 // our 95 % interval
	Overlap       bool    // Low is of what the row has alone, High of all that it has a part in
	Count         bool    // a number of something, in place of a share
	Refused       bool    // ccagent gives no figure, and Row says why, as it does
}

// truthRun is what was measured of a program in one of its ways.
type truthRun struct {
	Program, Way string
	Number       int // its place in the table
	Claims       []claim
}

// distance is how far the oracle lies from our interval's middle, in halves of its width:
// at most 1 inside. The oracle's own interval widens ours, as that of a difference.
func (c claim) distance() float64 {
	// Where rows overlap, anything between the two is right.
	apart := max(c.Low-c.Oracle-c.Unknown, c.Oracle-c.High, 0)
	half := math.Hypot((c.High-c.Low)/2, c.Error)
	if middle := (c.Low + c.High) / 2; !c.Overlap {
		apart = max(middle-c.Oracle-c.Unknown, c.Oracle-middle, 0)
	} else if apart > 0 {
		apart += (c.High - c.Low) / 2
	}
	switch {
	case apart == 0:
		return 0
	case half == 0:
		return math.Inf(1)
	}
	return apart / half
}

// truthFolder has the results of the runs that were measured, a file each.
const truthFolder = "../../.cache/truth"

// TestTruth compares what ccagent says of programs nobody tuned it for with oracles of the
// same quantity that are not ours: default settings, rows chosen by the oracle. The rows are
// kept in truthFolder.
func TestTruth(t *testing.T) {
	needMatrix(t, "scripts/bench truth")
	testprog.NeedRoot(t)
	if err := os.MkdirAll(truthFolder, 0o755); err != nil {
		t.Fatal(err)
	}
	for number, p := range truthPrograms {
		for i, w := range p.ways(number) {
			t.Run(p.name+"/"+strings.ReplaceAll(w.String(), " ", "_"), func(t *testing.T) {
				if p.debian != nil {
					p.args = p.debian.arguments(t, p.debian.Fetch(t))
				}
				r := truthRun{Program: p.name, Way: w.String(), Number: 2*number + i}
				r.Claims = slices.Concat(timeClaims(t, p, w), byteClaims(t, p, w), centreClaims(t, p, w),
					eventClaims(t, p, w), waitClaims(t, p, w))
				data, err := json.MarshalIndent(r, "", " ")
				if err != nil {
					t.Fatal(err)
				}
				fmt.Print(r.rows())
				if err := os.WriteFile(filepath.Join(truthFolder, fmt.Sprintf("%s %s.json", r.Program, r.Way)), data, 0o644); err != nil {
					t.Fatal(err)
				}
			})
		}
	}
}

// truthMark is the line of docs/truth.md below which everything is written by
// TestTruthTable.
const truthMark = "<!-- scripts/bench truth -->\n"

// TestTruthTable writes docs/truth.md from the results in truthFolder.
func TestTruthTable(t *testing.T) {
	needMatrix(t, "scripts/bench truth table")
	const path = "../../docs/truth.md"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, _, found := bytes.Cut(text, []byte(truthMark))
	if !found {
		t.Fatalf("%s has no line %q", path, truthMark)
	}
	files, err := filepath.Glob(filepath.Join(truthFolder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	var runs []truthRun
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		var r truthRun
		if err := json.Unmarshal(data, &r); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		runs = append(runs, r)
	}
	slices.SortFunc(runs, func(a, b truthRun) int { return a.Number - b.Number })
	var table strings.Builder
	table.WriteString(truthSummary(runs))
	table.WriteString("\n| Program | GHC | Quantity (oracle) | Row | Oracle | Ours | Interval | |\n|---|---|---|---|--:|--:|--:|---|\n")
	for _, r := range runs {
		table.WriteString(r.rows())
	}
	if err := os.WriteFile(path, slices.Concat(head, []byte(truthMark), []byte(table.String())), 0o644); err != nil {
		t.Fatal(err)
	}
	fmt.Print(truthSummary(runs))
}

// rows gives a run's part of the table.
func (r truthRun) rows() string {
	var s strings.Builder
	for _, c := range r.Claims {
		fmt.Fprintf(&s, "| %s | %s | %s\n", r.Program, r.Way, c.columns())
	}
	return s.String()
}

func (c claim) columns() string {
	number := func(x float64) string {
		if c.Count {
			return fmt.Sprintf("%.6g", x)
		}
		return fmt.Sprintf("%.2f", 100*x)
	}
	if c.Refused {
		return fmt.Sprintf("%s | %s | | | | no figure |", c.Quantity, c.Row)
	}
	oracle := number(c.Oracle)
	if c.Unknown > 0 {
		oracle += " to " + number(c.Oracle+c.Unknown)
	}
	if c.Error > 0 {
		oracle += " ± " + number(c.Error)
	}
	return fmt.Sprintf("%s | %s | %s | %s | %s to %s | %s |", c.Quantity, c.Row, oracle, number(c.Ours), number(c.Low), number(c.High), verdicts[c.verdict()])
}

// verdicts are the words for what claim.verdict gives.
var verdicts = []string{"", "out", "**far out**"}

// verdict is 0 if the oracle lies in our interval, 1 if it lies outside, and 2 if it lies
// outside three of them.
func (c claim) verdict() int {
	switch d := c.distance(); {
	case d > 3:
		return 2
	case d > 1:
		return 1
	}
	return 0
}

// truthSummary counts rows by quantity.
func truthSummary(runs []truthRun) string {
	var names []string
	counts := map[string]*[3]int{}
	programs := map[string]bool{}
	var all [3]int
	for _, r := range runs {
		programs[r.Program] = true
		for _, c := range r.Claims {
			if c.Refused {
				continue
			}
			if counts[c.Quantity] == nil {
				names = append(names, c.Quantity)
				counts[c.Quantity] = new([3]int)
			}
			counts[c.Quantity][c.verdict()]++
			all[c.verdict()]++
		}
	}
	var s strings.Builder
	line := func(name string, n [3]int) {
		sum := n[0] + n[1] + n[2]
		fmt.Fprintf(&s, "| %s | %d | %d | %.1f %% | %d |\n", name, sum, n[0], 100*float64(n[0])/float64(max(sum, 1)), n[2])
	}
	fmt.Fprintf(&s, "%d programs in %d runs.\n\n| Quantity (oracle) | Rows | In the interval | | Outside three of them |\n|---|--:|--:|--:|--:|\n", len(programs), len(runs))
	for _, name := range names {
		line(name, *counts[name])
	}
	line("all", all)
	return s.String()
}

// build compiles a program in a way.
func (p truthProgram) build(t *testing.T, w truthWay, flags ...string) string {
	t.Helper()
	o := testprog.Options{
		Release: w.release, Dynamic: w.dynamic, Threaded: w.two || p.threaded,
		Flags: slices.Concat(p.flags, flags),
	}
	if p.debian != nil {
		return p.debian.Build(t, o)
	}
	return testprog.Build(t, p.program, o)
}

// sources reads the text of the program's modules.
func (p truthProgram) sources(t *testing.T) *sourceTexts {
	t.Helper()
	if p.debian != nil {
		return readSources(t, p.debian.Fetch(t))
	}
	return readSources(t, testprog.Source(t, p.program))
}

// arguments gives a run's arguments, with options of the run-time system.
func (p truthProgram) arguments(w truthWay, rts ...string) []string {
	if w.two {
		rts = append(rts, "-N2")
	}
	if len(rts) == 0 {
		return p.args
	}
	return slices.Concat(p.args, []string{"+RTS"}, rts, []string{"-RTS"})
}
