package e2e

import (
	"fmt"
	"math"
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
}

// truthPrograms are small programs of nofib's kind: numbers, lists, trees, maps, arrays,
// exceptions, transactions, threads, and system calls.
var truthPrograms = []truthProgram{
	{name: "binary-trees", program: "classic", args: []string{"binary-trees", "25"}},
	{name: "exp3", program: "classic", args: []string{"exp3", "14"}},
	{name: "fannkuch", program: "classic", args: []string{"fannkuch", "9"}},
	{name: "integer", program: "classic", args: []string{"integer", "250000"}},
	{name: "k-nucleotide", program: "classic", args: []string{"k-nucleotide", "250000"}},
	{name: "lcss", program: "classic", args: []string{"lcss", "2500"}},
	{name: "n-body", program: "classic", args: []string{"n-body", "50000000"}},
	{name: "pidigits", program: "classic", args: []string{"pidigits", "9000"}},
	{name: "primes", program: "classic", args: []string{"primes", "600000"}},
	{name: "spectral-norm", program: "classic", args: []string{"spectral-norm", "2500"}},
	{name: "rev", program: "rev", args: []string{"220", "6000"}},
	{name: "maps", program: "maps", args: []string{"100000", "6"}},
	{name: "recursion", program: "deep", args: []string{"recursion", "50000", "600"}},
	{name: "thunks", program: "deep", args: []string{"thunks", "50000", "300"}},
	{name: "arrays", program: "arrays", args: []string{"100000"}},
	{name: "alloc31", program: "alloc31", args: []string{"100000"}},
	{name: "spin31", program: "spin31", args: []string{"20000"}},
	{name: "fusion", program: "fusion"},
	{name: "example", program: "example", args: []string{"1000000"}},
	{name: "stm", program: "stm", args: []string{"4000000"}},
	{name: "exceptions", program: "exceptions", args: []string{"100", "400000"}},
	{name: "kernel", program: "kernel"},
	{name: "server", program: "server", args: []string{"100000", "12", "4"}, threaded: true},
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

// truthWays gives the ways of the program with that number. The rule stands before the
// measurements: each program is run in two of six ways, in turn.
func truthWays(number int) []truthWay {
	all := []truthWay{
		{}, {release: "9.6.6"}, {release: "9.10.3"},
		{two: true}, {release: "9.6.6", two: true, dynamic: true}, {release: "9.10.3", dynamic: true},
	}
	return []truthWay{all[number%3], all[3+number%3]}
}

// claim is a figure of an oracle beside ours. All are in the oracle's unit; of shares it is
// 1.
type claim struct {
	quantity, row string
	oracle        float64
	error         float64 // half of the oracle's own 95 % interval; 0 if it counts
	ours          float64
	low, high     float64 // our 95 % interval
	overlap       bool    // low is of what the row has alone, high of all that it has a part in
	count         bool    // a number of something, in place of a share
}

// distance is how far the oracle lies from our interval's middle, in halves of its width:
// at most 1 inside. The oracle's own interval widens ours, as that of a difference.
func (c claim) distance() float64 {
	middle, half := (c.low+c.high)/2, (c.high-c.low)/2
	if c.overlap {
		// Anything between the two is right.
		middle = min(max(c.oracle, c.low), c.high)
		half = (c.high - c.low) / 2
	}
	half = math.Hypot(half, c.error)
	apart := math.Abs(c.oracle - middle)
	switch {
	case apart == 0:
		return 0
	case half == 0:
		return math.Inf(1)
	}
	return apart / half
}

// TestTruth compares what ccagent says of programs nobody tuned it for with oracles of the
// same quantity that are not ours: default settings, rows chosen by the oracle.
func TestTruth(t *testing.T) {
	needMatrix(t, "scripts/bench truth")
	testprog.NeedRoot(t)
	var all []claim
	for number, p := range truthPrograms {
		for _, w := range truthWays(number) {
			t.Run(p.name+"/"+strings.ReplaceAll(w.String(), " ", "_"), func(t *testing.T) {
				claims := slices.Concat(timeClaims(t, p, w), byteClaims(t, p, w), centreClaims(t, p, w), collectionClaims(t, p, w))
				for _, c := range claims {
					fmt.Println(c.line(p.name, w))
				}
				all = append(all, claims...)
			})
		}
	}
	summarise(t, all)
}

func (c claim) line(program string, w truthWay) string {
	number := func(x float64) string {
		if c.count {
			return fmt.Sprintf("%.6g", x)
		}
		return fmt.Sprintf("%.2f", 100*x)
	}
	oracle := number(c.oracle)
	if c.error > 0 {
		oracle += " ± " + number(c.error)
	}
	verdict := "in"
	switch d := c.distance(); {
	case d > 3:
		verdict = "**far out**"
	case d > 1:
		verdict = "out"
	}
	kind := ""
	if c.overlap {
		kind = "overlaps"
	}
	return fmt.Sprintf("| %s | %s | %s | %s | %s | %s | %s to %s | %s | %s |", program, w, c.quantity, c.row, oracle, number(c.ours), number(c.low), number(c.high), verdict, kind)
}

// summarise holds the claims to what intervals of 95 % promise.
func summarise(t *testing.T, all []claim) {
	t.Helper()
	inside, far := 0, 0
	for _, c := range all {
		d := c.distance()
		if d <= 1 {
			inside++
		}
		if d > 3 {
			far++
		}
	}
	fmt.Printf("| all | %d rows | %d in (%.1f %%) | %d far out | | | | | |\n", len(all), inside, 100*float64(inside)/float64(max(len(all), 1)), far)
	if far > 0 || float64(inside) < 0.95*float64(len(all)) {
		t.Errorf("of %d rows %d are in their interval, and %d lie outside three of them", len(all), inside, far)
	}
}

// build compiles a program in a way.
func (p truthProgram) build(t *testing.T, w truthWay, flags ...string) string {
	t.Helper()
	return testprog.Build(t, p.program, testprog.Options{
		Release: w.release, Dynamic: w.dynamic, Threaded: w.two || p.threaded,
		Flags: slices.Concat(p.flags, flags),
	})
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
