package e2e

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

type costsDoc struct {
	Counters []struct {
		Module, Binding, Kind string
		Entries               uint64
		By                    uint64 `json:"allocated_by"`
	}
	Estimates []struct {
		Binding string
		Own     float64
		Case    float64
		Made    uint64 `json:"made_bytes"`
	}
	MadeTotal uint64 `json:"made_total"`
}

// entries sums the counts of all closures of a binding's code.
func (d *costsDoc) entries(binding string) (n, made uint64) {
	for _, c := range d.Counters {
		if c.Module == "Main" && c.Binding == binding {
			n, made = n+c.Entries, made+c.By
		}
	}
	return n, made
}

// The counters of a program compiled with -ticky are read when it ends, and agree with its
// call graph: each round calls a to i as often as the graph has them, and reverses 28 lists.
func TestTickyCounters(t *testing.T) {
	const rounds = 300
	program := testprog.Build(t, "rev", testprog.Options{Flags: []string{"-ticky"}})
	log, _ := record(t, []string{"--max-overhead", "0", "-F", "4999"}, program, "220", strconv.Itoa(rounds))
	var d costsDoc
	view(t, &d, "ccs", log, "--costs")
	for name, each := range map[string]uint64{"a": 1, "c": 1, "f": 1, "h": 1, "g": 2, "j": 3, "rev": 28} {
		if n, _ := d.entries(name); n != each*rounds {
			t.Errorf("%s was entered %d times, want %d", name, n, each*rounds)
		}
	}
	// A list element is three words. rev makes a list as long as its argument: of 221
	// elements where h is to blame, of 19 where d is, of 21 otherwise.
	const elements = 6*221 + 9*19 + 9*21 + 4*21
	if _, made := d.entries("pick"); made != rounds*elements*24 {
		t.Errorf("rev made %d bytes, want %d", made, rounds*elements*24)
	}
	// The estimates from samples are of the same size as the counts.
	for _, e := range d.Estimates {
		if e.Binding == "Main.rev" {
			want := float64(rounds * elements * 24)
			if e.Own < 0.5 || e.Case < 0.5 || math.Abs(float64(e.Made)-want) > 0.5*want {
				t.Errorf("estimates of rev: %+v, want about %.0f bytes", e, want)
			}
		}
	}
	if len(d.Estimates) == 0 {
		t.Error("nothing is estimated")
	}
}

// For a running program, the counts since it was attached to are reported.
func TestTickyCountersOfARunningProgram(t *testing.T) {
	testprog.NeedRoot(t)
	program := command(t, testprog.Build(t, "rev", testprog.Options{Flags: []string{"-ticky"}}), "220", endless)
	begin(t, program)
	signal := func(p *os.Process, s unix.Signal) {
		t.Helper()
		if err := p.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	log := filepath.Join(t.TempDir(), "attached.eventlog")
	watch := func(how string, until func()) (a, revs uint64) {
		t.Helper()
		agent := command(t, ccagent, "attach", "-o", log, pidOf(program))
		wait := background(t, agent)
		until()
		// The program stands still while its counters are read.
		signal(program.Process, unix.SIGSTOP)
		eventually(t, "the program is stopped", func() bool { return strings.Contains(stateOf(t, program.Process.Pid), "(stopped)") })
		signal(agent.Process, unix.SIGINT)
		if r := wait(); r.status != 0 && !strings.Contains(r.stderr, "no sample was taken") {
			t.Fatalf("attach to a program that %s: status %d\n%s", how, r.status, r.stderr)
		}
		var d costsDoc
		view(t, &d, "ccs", log, "--costs")
		a, _ = d.entries("a")
		revs, _ = d.entries("rev")
		return a, revs
	}
	sampled := func() { eventually(t, "a sample is in the log", func() bool { return has(log, isSample) }) }
	if a, _ := watch("runs", sampled); a == 0 {
		t.Error("a was never entered")
	}
	if err := os.Remove(log); err != nil {
		t.Fatal(err)
	}
	// The program is stopped throughout, with what it counted before.
	begun := func() {
		eventually(t, "the capture has begun", func() bool { return has(log, func(eventlog.Event) bool { return true }) })
	}
	if a, revs := watch("stands", begun); a != 0 || revs != 0 {
		t.Errorf("of a program that stands, a was entered %d times, and rev %d times", a, revs)
	}
}

// A program that is not compiled with -ticky has no counters, and the text says what is
// missing.
func TestCostsOfOrdinaryPrograms(t *testing.T) {
	log, _ := record(t, []string{"--max-overhead", "0"}, testprog.Build(t, "rev", testprog.Options{}), "220", "1000")
	var d costsDoc
	view(t, &d, "ccs", log, "--costs")
	if len(d.Counters) != 0 || len(d.Estimates) == 0 || d.MadeTotal == 0 {
		t.Errorf("%+v", d)
	}
	r := run(t, exec.Command(ccview, "ccs", log, "--costs"))
	if !strings.Contains(r.stdout, "estimated from samples") || !strings.Contains(r.stdout, "-ticky") {
		t.Errorf("printed\n%s", r.stdout)
	}
}
