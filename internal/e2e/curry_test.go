package e2e

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// A capture of a functional-logic program, as KiCS2 would compile it, has Curry's names, lines of
// its source and its search as (search), in every view. What the program met is counted by hand: 8
// queens have 92 solutions; the last of 6 elements takes two alternatives for the list before it 7
// times, 2 guards for each of the 6 heads of that list, and fails but once. The search trees of the other two
// are those of TestSearchTreesOfPrograms in profile/semantics.
func TestCurryProgram(t *testing.T) {
	program := testprog.Build(t, "curry", testprog.Options{})
	for _, c := range []struct{ args, says string }{
		{"last 6", "last: sum 1, choices 14, guards 12, failures 7, values 1"},
		{"permsort 5", "permsort: sum 54321, choices 116, guards 0, failures 58, values 1"},
		{"knights", "knights: sum 2, choices 10, guards 0, failures 5, values 1"},
	} {
		if r := run(t, command(t, program, strings.Fields(c.args)...)); strings.TrimSpace(r.stdout) != c.says {
			t.Errorf("%s: %q, want %q", c.args, r.stdout, c.says)
		}
	}
	// Each part of search has some dozens of samples.
	log, r := record(t, []string{"-e", "cpu-clock,alloc", "-F", "4999", "--max-overhead", "0"}, program, "queens", "8", "12")
	if !strings.Contains(r.stdout, "values 92") {
		t.Errorf("it said %q", r.stdout)
	}
	generated := regexp.MustCompile(`\b(Curry_\w|n?d_(C|OP)_|Choice_)`)
	for _, args := range [][]string{
		{"hot", "--top", "0"}, {"hot", "--event", "alloc", "--top", "0"}, {"hot", "--level", "function"}, {"hot", "--level", "module"}, {"alloc"}, {"ccs"}, {"stacks", "--folded"},
	} {
		r := run(t, command(t, ccview, append(args, log)...))
		if r.status != 0 {
			t.Fatalf("%v: status %d\n%s", args, r.status, r.stderr)
		}
		for line := range strings.Lines(r.stdout) {
			// Files are called as the compiler wrote them.
			if names := strings.ReplaceAll(line, "Curry_Prelude.hs", ""); generated.MatchString(names) {
				t.Errorf("%v: a name of the compiler's: %s", args, line)
			}
		}
		want := "Puzzles"
		switch args[0] {
		case "alloc":
			want = "Prelude.[] (choice)"
		case "ccs", "hot":
			want = "(search)"
		}
		if args[0] == "ccs" {
			want = "Puzzles.free"
		}
		wantLine(t, r.stdout, want)
	}
	r = run(t, command(t, ccview, "source", log, "(search)"))
	for _, part := range []string{"normal forms", "search strategy", "store of decisions"} {
		wantLine(t, r.stdout, part)
	}
	r = run(t, command(t, ccview, "source", log, "Puzzles.curry"))
	wantLine(t, r.stdout, "free q d (p:ps)")
}

// The number of choices that ccview ccs --costs estimates is the number that the program was asked
// to make. It is allowed three times the interval's width, which it leaves once in more than a million runs.
func TestCurryChoicesAreCounted(t *testing.T) {
	log, _ := record(t, []string{"--max-overhead", "0", "-e", "cpu-clock,alloc"}, testprog.Build(t, "curry", testprog.Options{}), "toss", "1000000", "20")
	var doc struct {
		NonDeterminism []struct {
			Constructor      string
			Count, Low, High float64
		} `json:"non_determinism"`
		Estimates []struct {
			Binding string
			Search  float64
			Bytes   uint64 `json:"made_bytes_search"`
		}
	}
	view(t, &doc, "ccs", "--costs", log)
	const want = 20_000_000
	if len(doc.NonDeterminism) != 1 {
		t.Fatalf("%+v", doc.NonDeterminism)
	}
	n := doc.NonDeterminism[0]
	if n.Constructor != "Prelude.Bool (choice)" || n.Low > n.Count || n.High < n.Count || math.Abs(n.Count-want) > 1.5*(n.High-n.Low) || n.High-n.Low > want/4 {
		t.Errorf("%+v, want %d", n, want)
	}
	for _, e := range doc.Estimates {
		if e.Binding == "Main.toss" {
			// A choice of 40 bytes, its identifier of 16, and a supply of which it is.
			if e.Search == 0 || e.Bytes < 56*want {
				t.Errorf("search for toss: %+v", e)
			}
			return
		}
	}
	t.Errorf("toss has no costs: %+v", doc.Estimates)
}

// How many choices and failures ccview ccs --costs says were made for each function is what the program was asked to make, where blocks
// alone say how many there are in all and where the program counted them; and so it is without the program's sources, whose texts are
// not gone by where they are newer than the program, and where the budget leaves few windows to sample in. They may be outside of their
// intervals by half their width: of 660 (docs/curry.md) none was outside at all.
func TestCurryChoicesByFunction(t *testing.T) {
	const n, rounds = 100_000, 100
	want := map[string]float64{"Prelude.Bool (choice) Main.heads": n * rounds, "Prelude.Bool (choice) Main.tails": 3 * n * rounds, "Prelude.Bool (failure) Main.lost": 2 * n * rounds}
	for _, c := range []struct {
		known  string
		flags  []string
		before bool // it was built before its sources were written
		budget []string
	}{
		{"estimated", nil, false, []string{"--max-overhead", "0"}},
		{"estimated", nil, true, []string{"--max-overhead", "0"}},
		{"sampled", []string{"-ticky"}, false, []string{"--max-overhead", "0"}},
		{"estimated", nil, false, nil},
		{"sampled", []string{"-ticky"}, false, nil},
	} {
		known, flags := c.known, c.flags
		program := testprog.Build(t, "curry", testprog.Options{Flags: flags})
		if c.before {
			program = olderThanSources(t, program)
		}
		log, _ := record(t, append([]string{"-e", "cpu-clock,alloc"}, c.budget...), program, "bets", strconv.Itoa(n), strconv.Itoa(rounds))
		var doc struct {
			NonDeterminism []struct {
				Constructor, Known string
				Counted            *uint64
			} `json:"non_determinism"`
			Makers []struct {
				Constructor, Binding, Known string
				Count, Low, High            float64
			} `json:"non_determinism_by_function"`
		}
		view(t, &doc, "ccs", "--costs", log)
		for _, m := range doc.NonDeterminism {
			all := uint64(4 * n * rounds)
			if m.Constructor == "Prelude.Bool (failure)" {
				all = 2 * n * rounds
			}
			if m.Known != "sampled" || (m.Counted != nil) != (known == "sampled") || m.Counted != nil && *m.Counted != all {
				t.Errorf("%v: %+v, want %d", flags, m, all)
			}
		}
		found := 0
		for _, m := range doc.Makers {
			truth, is := want[m.Constructor+" "+m.Binding]
			if is {
				found++
			}
			// Something else may be a sample's nearest function once in a while.
			if m.Known != known || m.Low > m.Count || m.High < m.Count || max(m.Low-truth, truth-m.High) > (m.High-m.Low)/2 || is && c.budget != nil && m.High-m.Low > 2*truth {
				t.Errorf("%v: %+v, want %.0f, %s", flags, m, truth, known)
			}
		}
		if found != len(want) || len(doc.NonDeterminism) != 2 {
			t.Errorf("%v: %+v", flags, doc)
		}
		text := run(t, command(t, ccview, "ccs", "--costs", log)).stdout
		for _, line := range []string{"by the function that called for them", "for Main.heads"} {
			wantLine(t, text, line)
		}
	}
}

// The depth of search is the number of choices below which the program was told to work, but for the strategy's own two frames: all of
// them have an alternative left. Time in search is nearly all that is not the collector's or the kernel's.
func TestCurryDepth(t *testing.T) {
	program := testprog.Build(t, "curry", testprog.Options{})
	for _, depth := range []int{3, 60} {
		log, r := record(t, []string{"--max-overhead", "0", "-e", "cpu-clock", "-F", "997"}, program, "descend", strconv.Itoa(depth), "50000000")
		if want := fmt.Sprintf("descend: sum 0, choices %d, guards 0, failures %d, values 1", 2*depth, depth); strings.TrimSpace(r.stdout) != want {
			t.Fatalf("it said %q, want %q", r.stdout, want)
		}
		var doc struct {
			Search struct {
				Share, Low, High, Depth float64
				DepthLow                float64 `json:"depth_low"`
				DepthHigh               float64 `json:"depth_high"`
				Deepest                 float64
				AtLeast                 float64 `json:"depth_at_least"`
			}
			Estimates []struct {
				Binding    string
				Own, Depth float64
			}
		}
		view(t, &doc, "ccs", "--costs", log)
		s, want := doc.Search, float64(depth+2)
		if math.Abs(s.Depth-want) > 0.02*want || s.Deepest != want || s.DepthLow > s.Depth || s.DepthHigh < s.Depth || s.Low > s.Share || s.High < s.Share || s.AtLeast > 0.02 {
			t.Errorf("%d choices: %+v", depth, s)
		}
		found := false
		for _, e := range doc.Estimates {
			if e.Binding == "Prelude.d_arith" {
				found = math.Abs(e.Depth-want) <= 0.02*want
			}
		}
		if !found {
			t.Errorf("%d choices: %+v", depth, doc.Estimates)
		}
		if text := run(t, command(t, ccview, "ccs", "--costs", log)).stdout; !strings.Contains(text, "frames of the search strategy on theirs") {
			t.Errorf("no depth of search in\n%s", text)
		}
	}
}
