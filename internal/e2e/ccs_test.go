package e2e

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

type centresDoc struct {
	Samples uint64
	Forced  float64
	Rows    []centreRow
}

type centreRow struct {
	CostCentre            string `json:"cost_centre"`
	Module                string
	ParentRow             int `json:"parent_row"`
	Individual, Inherited float64
	Low, High             float64 // of Individual
}

func (d *centresDoc) centre(t *testing.T, name string) (individual, inherited float64) {
	t.Helper()
	for _, r := range d.Rows {
		if r.CostCentre == name {
			return r.Individual, r.Inherited
		}
	}
	t.Errorf("no cost centre %s in %+v", name, d.Rows)
	return 0, 0
}

// reported returns the shares as a report of +RTS -p would have them: individual ones by
// centre, and inherited ones by stack, topmost first. What the RTS spends for itself, and
// costs without a cost centre, are left out.
func (d *centresDoc) reported(t *testing.T) (individual, inherited map[string]float64) {
	t.Helper()
	individual, inherited = make(map[string]float64), make(map[string]float64)
	stacks := make([]string, len(d.Rows))
	sum, other := 0.0, 0.0
	for i, r := range d.Rows {
		sum += r.Individual
		switch r.CostCentre {
		case "GC", "SYSTEM", "OVERHEAD", "IDLE", "DONT_CARE", "(kernel)", "(unresolved)", "(foreign)", "(GC)", "(STG)", "(RTS)":
			other += r.Individual
		}
		stacks[i] = strings.TrimPrefix(r.CostCentre, r.Module+".")
		if r.ParentRow >= 0 && d.Rows[r.ParentRow].CostCentre != "MAIN" {
			stacks[i] += "<" + stacks[r.ParentRow]
		}
		individual[r.CostCentre] += r.Individual
		inherited[stacks[i]] = r.Inherited
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("individuals sum to %v", sum)
	}
	for k := range individual {
		individual[k] /= 1 - other
	}
	for k := range inherited {
		inherited[k] /= 1 - other
	}
	return individual, inherited
}

// report is a report of +RTS -p: shares of time and allocation.
type report struct {
	ticks  float64
	flat   map[string]shares // individual, by "Module.centre"
	stacks map[string]shares // inherited, by stack, topmost first, without MAIN
}

type shares struct{ time, alloc float64 }

// readReport reads a report: its flat list, and its tree by indentation.
func readReport(t *testing.T, dir, program string) report {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, program+".prof"))
	if err != nil {
		t.Fatal(err)
	}
	r := report{flat: make(map[string]shares), stacks: make(map[string]shares)}
	lists := 0
	var path []string
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		number := func(i int) float64 {
			x, err := strconv.ParseFloat(f[len(f)+i], 64)
			if err != nil {
				t.Fatalf("report line %q: %v", line, err)
			}
			return x / 100
		}
		if at := strings.Index(line, " ticks"); at > 0 {
			if r.ticks, err = strconv.ParseFloat(line[strings.LastIndexByte(line, '(')+1:at], 64); err != nil {
				t.Fatalf("report line %q: %v", line, err)
			}
		}
		switch {
		case strings.HasPrefix(line, "COST CENTRE"):
			lists++
		case len(f) < 5:
		case lists == 1 && !strings.Contains(line, "individual"):
			r.flat[f[1]+"."+f[0]] = shares{number(-2), number(-1)}
		case lists == 2:
			depth := len(line) - len(strings.TrimLeft(line, " "))
			path = append(path[:min(depth, len(path))], f[0])
			stack := ""
			for _, name := range path[1:] {
				stack = name + "<" + stack
			}
			r.stacks[strings.TrimSuffix(stack, "<")] = shares{number(-2), number(-1)}
		}
	}
	delete(r.stacks, "")
	return r
}

// lenient is the tolerance for a share of n samples, with an error probability of 1e-6.
func lenient(share float64, n float64) float64 {
	return z * math.Sqrt(share*(1-share)/n)
}

// Cost centres chosen after the run agree with compiled-in ones in programs in which thunks
// are forced by the code that built them: they are on top, and have the same shares, up to
// chance and the effects of -prof. These are small for allocation. Time is that of another
// run, in which other work on the machine causes other delays; docs/cost-centres.md has
// closer figures from a quiet machine.
func TestCostCentresAgreeWithProf(t *testing.T) {
	for _, c := range []struct {
		program string
		args    []string
		prof    testprog.Options
		ranked  []string
	}{
		{"maps", []string{"100000", "5"}, testprog.Options{Prof: true, Flags: []string{"-fprof-auto-top"}}, []string{"Main.grow", "Main.thin"}},
		{"rev", []string{"220", "5000"}, profiledRev, []string{"Main.rev"}},
	} {
		t.Run(c.program, func(t *testing.T) {
			program := command(t, testprog.Build(t, c.program, c.prof), append(c.args, "+RTS", "-p", "-RTS")...)
			run(t, program)
			theirs := readReport(t, program.Dir, c.program)
			log, _ := record(t, []string{"--max-overhead", "0", "-F", "997"}, testprog.Build(t, c.program, testprog.Options{}), c.args...)
			var time, alloc centresDoc
			// -p does not count costs without Haskell code.
			view(t, &time, "ccs", log, "--category", "haskell,stg,foreign,rts")
			view(t, &alloc, "ccs", log, "--event", "alloc")
			wantShareAbove(t, "time that is not forced", int((1-time.Forced)*float64(time.Samples)+0.5), int(time.Samples), 0.99)
			for _, name := range c.ranked {
				ours, _ := time.centre(t, name)
				made, _ := alloc.centre(t, name)
				if !slices.ContainsFunc(time.Rows[:min(len(c.ranked), len(time.Rows))], func(r centreRow) bool { return r.CostCentre == name }) {
					t.Errorf("%s is not among the first %d", name, len(c.ranked))
				}
				want := theirs.flat[name]
				if room := 0.2 + lenient(want.time, min(float64(time.Samples), theirs.ticks)); math.Abs(ours-want.time) > room {
					t.Errorf("%s: time %.3f, want %.3f within %.3f", name, ours, want.time, room)
				}
				if room := 0.03 + lenient(want.alloc, float64(alloc.Samples)); math.Abs(made-want.alloc) > room {
					t.Errorf("%s: allocation %.3f, want %.3f within %.3f", name, made, want.alloc, room)
				}
			}
		})
	}
}

// profiledRev has the call graph of Morgan & Jarvis, a cost centre for each
// function.
var profiledRev = testprog.Options{Prof: true, Flags: []string{"-eventlog"}}

// Three accounts of one run agree: the report of +RTS -p, the ticks in the RTS's eventlog,
// and our samples of the running cost-centre stack; individually and inherited, stack by
// stack.
func TestExactCostCentresAreTheReports(t *testing.T) {
	testprog.NeedRoot(t)
	program := testprog.Build(t, "rev", profiledRev)
	c := command(t, ccagent, "record", "-o", "ours", "--max-overhead", "0", "--", program, "220", "10000", "+RTS", "-p", "-l", "-olrts", "-RTS")
	if r := run(t, c); r.status != 0 {
		t.Fatalf("record: status %d\n%s", r.status, r.stderr)
	}
	theirs := readReport(t, c.Dir, "rev")

	t.Run("the RTS's log", func(t *testing.T) {
		var d centresDoc
		view(t, &d, "ccs", filepath.Join(c.Dir, "rts"), "--mode", "exact")
		individual, _ := d.reported(t)
		// The report rounds to a thousandth.
		if got, want := individual["Main.rev"], theirs.flat["Main.rev"].time; d.Samples < 500 || math.Abs(got-want) > 0.0015 {
			t.Errorf("rev has %.4f of %d ticks, %.4f in the report", got, d.Samples, want)
		}
	})
	t.Run("samples", func(t *testing.T) {
		var d centresDoc
		view(t, &d, "ccs", filepath.Join(c.Dir, "ours"), "--mode", "exact")
		individual, inherited := d.reported(t)
		n := min(float64(d.Samples), theirs.ticks)
		for name, want := range theirs.flat {
			if room := 0.01 + math.Sqrt2*lenient(want.time, n); math.Abs(individual[name]-want.time) > room {
				t.Errorf("%s: individual %.3f, want %.3f within %.3f", name, individual[name], want.time, room)
			}
		}
		if len(theirs.stacks) < 10 || theirs.stacks["rev<j<h<f<c<a<main"].time < 0.5 {
			t.Fatalf("report's stacks %v", theirs.stacks)
		}
		for stack, want := range theirs.stacks {
			if room := 0.01 + math.Sqrt2*lenient(want.time, n); math.Abs(inherited[stack]-want.time) > room {
				t.Errorf("%s: inherited %.3f, want %.3f within %.3f", stack, inherited[stack], want.time, room)
			}
		}
		// Most samples have a cost-centre stack: those at the process's start and end have
		// none.
		var info struct {
			Exact struct{ Samples, Unknown uint64 } `json:"cost_centre_stacks"`
		}
		view(t, &info, "info", filepath.Join(c.Dir, "ours"))
		if e := info.Exact; e.Samples < 10*e.Unknown {
			t.Errorf("%d samples have a cost-centre stack, %d have none", e.Samples, e.Unknown)
		}
	})
	t.Run("allocation", func(t *testing.T) {
		var d centresDoc
		view(t, &d, "ccs", filepath.Join(c.Dir, "ours"), "--mode", "exact", "--event", "alloc")
		individual, inherited := d.reported(t)
		for _, name := range []string{"Main.rev", "Main.upto"} {
			want := theirs.flat[name].alloc
			if room := 0.02 + lenient(want, float64(d.Samples)); math.Abs(individual[name]-want) > room {
				t.Errorf("%s made %.3f, want %.3f within %.3f", name, individual[name], want, room)
			}
		}
		const h = "h<f<c<a<main"
		want := theirs.stacks[h].alloc
		if room := 0.02 + lenient(want, float64(d.Samples)); want == 0 || math.Abs(inherited[h]-want) > room {
			t.Errorf("h inherits %.3f of what was made, want %.3f within %.3f", inherited[h], want, room)
		}
	})
	t.Run("report", func(t *testing.T) {
		r := run(t, command(t, ccview, "ccs", filepath.Join(c.Dir, "ours"), "--mode", "exact", "--prof"))
		if err := os.WriteFile(filepath.Join(c.Dir, "again.prof"), []byte(r.stdout), 0o600); err != nil {
			t.Fatal(err)
		}
		again := readReport(t, c.Dir, "again")
		for stack, want := range theirs.stacks {
			if room := 0.01 + math.Sqrt2*lenient(want.time, theirs.ticks); math.Abs(again.stacks[stack].time-want.time) > room {
				t.Errorf("%s: inherited %.3f in our report, want %.3f within %.3f", stack, again.stacks[stack].time, want.time, room)
			}
		}
	})
}

// Damaged cost-centre stacks do no harm: their walks end, and every sample is reported with
// the reason.
func TestDamagedCostCentreStacks(t *testing.T) {
	log, _ := record(t, []string{"--max-overhead", "0", "-F", "1999"}, testprog.Build(t, "liar", testprog.Options{Prof: true}), "60")
	var info struct {
		Exact struct {
			Stacks           int
			Samples, Unknown uint64
			Problems         map[string]uint64
		} `json:"cost_centre_stacks"`
	}
	view(t, &info, "info", log)
	p := info.Exact.Problems
	// Each takes sixty milliseconds of CPU time, which is more than a hundred samples.
	if p["implausible"] < 5 || p["unreadable"] < 5 || p["too-deep"] < 5 || info.Exact.Samples < 5 {
		t.Errorf("%+v", info.Exact)
	}
	var d centresDoc
	view(t, &d, "ccs", log, "--mode", "exact")
	sum := 0.0
	for _, r := range d.Rows {
		sum += r.Individual
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("individuals sum to %v", sum)
	}
	if liar, _ := d.centre(t, "Main.liar"); liar == 0 {
		t.Errorf("the lies' own centre has nothing: %+v", d.Rows)
	}
}
