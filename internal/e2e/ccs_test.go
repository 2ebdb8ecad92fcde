package e2e

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

type centresDoc struct {
	Samples uint64
	Forced  float64
	Rows    []struct {
		CostCentre            string `json:"cost_centre"`
		Parent                string
		Individual, Inherited float64
	}
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

// rtsProfile runs a -prof program with +RTS -p and reads the shares of time and
// allocation of its report's flat list, by "Module.centre".
func rtsProfile(t *testing.T, program string, rts ...string) (shares map[string][2]float64, dir string) {
	t.Helper()
	c := command(t, program, append(append([]string{"+RTS", "-p"}, rts...), "-RTS")...)
	if r := run(t, c); r.status != 0 {
		t.Fatalf("%v: status %d\n%s", c.Args, r.status, r.stderr)
	}
	data, err := os.ReadFile(filepath.Join(c.Dir, filepath.Base(program)+".prof"))
	if err != nil {
		t.Fatal(err)
	}
	shares = make(map[string][2]float64)
	in := false
	for line := range strings.Lines(string(data)) {
		f := strings.Fields(line)
		switch {
		case strings.HasPrefix(line, "COST CENTRE"):
			in = len(shares) == 0
		case in && len(f) >= 5:
			time, err1 := strconv.ParseFloat(f[len(f)-2], 64)
			alloc, err2 := strconv.ParseFloat(f[len(f)-1], 64)
			if err1 != nil || err2 != nil {
				t.Fatalf("report line %q", line)
			}
			shares[f[1]+"."+f[0]] = [2]float64{time / 100, alloc / 100}
		}
	}
	return shares, c.Dir
}

// Cost centres chosen after the run agree with those that were compiled in, where
// no thunk is forced by another than who built it: in rank, and within five points
// of share, which leaves room for what -prof does to the program.
func TestCostCentresAgreeWithProf(t *testing.T) {
	for _, c := range []struct {
		program string
		prof    testprog.Options
		ranked  []string
	}{
		{"maps", testprog.Options{Prof: true, Flags: []string{"-fprof-auto-top"}}, []string{"Main.grow", "Main.thin"}},
		{"rev", testprog.Options{Prof: true}, []string{"Main.rev"}},
	} {
		t.Run(c.program, func(t *testing.T) {
			theirs, _ := rtsProfile(t, testprog.Build(t, c.program, c.prof))
			log, _ := record(t, nil, testprog.Build(t, c.program, testprog.Options{}))
			var time, alloc centresDoc
			// -p does not count what no Haskell code is to blame for.
			view(t, &time, "ccs", log, "--category", "haskell,stg,foreign,rts")
			view(t, &alloc, "ccs", log, "--event", "alloc")
			if time.Forced > 0.01 {
				t.Errorf("%.3f is forced", time.Forced)
			}
			for i, name := range c.ranked {
				ours, _ := time.centre(t, name)
				made, _ := alloc.centre(t, name)
				if time.Rows[i].CostCentre != name {
					t.Errorf("rank %d: %s, want %s", i+1, time.Rows[i].CostCentre, name)
				}
				if want := theirs[name]; math.Abs(ours-want[0]) > 0.05 || math.Abs(made-want[1]) > 0.05 {
					t.Errorf("%s: time %.3f and allocation %.3f, want about %.3f and %.3f", name, ours, made, want[0], want[1])
				}
			}
		})
	}
}

// The stacks that a -prof program's RTS logs are those of its report of the same
// run: collections and the scheduler, which the report leaves out, apart.
func TestExactCostCentresAreTheReports(t *testing.T) {
	program := testprog.Build(t, "rev", testprog.Options{Prof: true, Flags: []string{"-eventlog"}})
	theirs, dir := rtsProfile(t, program, "-l")
	var d centresDoc
	view(t, &d, "ccs", filepath.Join(dir, "rev.eventlog"), "--mode", "exact")
	sum, rev, other := 0.0, 0.0, 0.0
	for _, r := range d.Rows {
		sum += r.Individual
		switch r.CostCentre {
		case "Main.rev":
			rev += r.Individual
		case "GC", "SYSTEM", "OVERHEAD", "IDLE", "DONT_CARE", "PINNED":
			other += r.Individual
		}
	}
	if math.Abs(sum-1) > 1e-9 {
		t.Errorf("individuals sum to %v", sum)
	}
	// The report rounds to a thousandth.
	if got, want := rev/(1-other), theirs["Main.rev"][0]; d.Samples < 1000 || math.Abs(got-want) > 0.0015 {
		t.Errorf("rev has %.4f of %d ticks, %.4f in the report", got, d.Samples, want)
	}
}
