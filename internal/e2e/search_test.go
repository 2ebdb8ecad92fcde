package e2e

import (
	"debug/elf"
	"maps"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
)

// searchCosts are the numbers of ccview ccs --costs.
type searchCosts struct {
	NonDeterminism []struct {
		Constructor, Known string
		Count              float64
		Counted            *uint64
	} `json:"non_determinism"`
	Makers []struct {
		Constructor, Binding, Known string
		Count, Low, High            float64
	} `json:"non_determinism_by_function"`
}

// Probes count each choice and failure of a Curry program, and by function: numbers are those that the program was asked to make, to the last one,
// with each release of GHC, with and without optimization, with code that does not depend on its position; also where not each has a sample.
func TestSearchIsCountedExactly(t *testing.T) {
	for _, c := range []struct {
		name    string
		options testprog.Options
	}{
		{"optimized", testprog.Options{}},
		{"not optimized", testprog.Options{O0: true}},
		{"threaded", testprog.Options{Threaded: true}},
		{"without debug information", testprog.Options{NoDebug: true}},
		{"position-independent code", testprog.Options{Flags: []string{"-fPIC"}}},
		{"9.6.6", testprog.Options{Release: "9.6.6"}},
		{"9.10.3", testprog.Options{Release: "9.10.3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			const n, rounds = 20000, 1 // without optimization all rounds share what the first has evaluated
			log, _ := record(t, []string{"--max-overhead", "0", "-e", "cpu-clock,search"}, testprog.Build(t, "curry", c.options), "bets", strconv.Itoa(n), strconv.Itoa(rounds))
			var doc searchCosts
			view(t, &doc, "ccs", "--costs", log)
			types := map[string]uint64{"Prelude.Bool (choice)": 4 * n * rounds, "Prelude.Bool (failure)": 2 * n * rounds}
			for _, m := range doc.NonDeterminism {
				if m.Known != "exact" || m.Counted == nil || *m.Counted != types[m.Constructor] || m.Count != float64(*m.Counted) {
					t.Errorf("%+v, want %d", m, types[m.Constructor])
				}
			}
			if c.options.NoDebug { // functions that are not exported have no names
				var sum float64
				for _, m := range doc.Makers {
					sum += m.Count
				}
				if sum != 6*n*rounds {
					t.Errorf("%+v", doc.Makers)
				}
				return
			}
			functions := map[string]float64{"Prelude.Bool (choice) Main.heads": n * rounds, "Prelude.Bool (choice) Main.tails": 3 * n * rounds, "Prelude.Bool (failure) Main.lost": 2 * n * rounds}
			for _, m := range doc.Makers {
				want := functions[m.Constructor+" "+m.Binding]
				if c.options.O0 && m.Known == "sampled" && m.Low <= want && want <= m.High {
					continue // the methods have no symbols of their own there, so callers are not told apart
				}
				if m.Known != "exact" || m.Count != want || m.Low != want || m.High != want {
					t.Errorf("%+v, want %.0f", m, want)
				}
			}
			if len(doc.NonDeterminism) != len(types) || len(doc.Makers) != len(functions) {
				t.Errorf("%+v", doc)
			}
			text := run(t, command(t, ccview, "ccs", "--costs", log)).stdout
			wantLine(t, text, "failures that were made: exact")
		})
	}
}

// What probes count is what callgrind says of the instructions that write a constructor's info table into the heap, as objdump finds them: also
// where GHC has put constructors into functions of the program.
func TestSearchAgainstCallgrind(t *testing.T) {
	program := testprog.Build(t, "curry", testprog.Options{})
	objdump := testprog.NeedTool(t, "objdump", "")
	for _, args := range []string{"permsort 5", "queens 5", "last 6", "knights"} {
		counts := testprog.CountInstructions(t, program, strings.Fields(args)...)
		want := map[string]uint64{}
		infos := constructorsOf(t, program)
		out, err := exec.Command(objdump, "-d", "--no-show-raw-insn", program).Output()
		if err != nil {
			t.Fatal(err)
		}
		writes := regexp.MustCompile(`^\s*([0-9a-f]+):\s+movq\s+\$0x([0-9a-f]+),.*\(%r12\)`)
		for line := range strings.Lines(string(out)) {
			m := writes.FindStringSubmatch(line)
			if m == nil {
				continue
			}
			at, _ := strconv.ParseUint(m[1], 16, 64)
			info, _ := strconv.ParseUint(m[2], 16, 64)
			if name := infos[info]; name != "" && counts[at] > 0 {
				want[name] += uint64(counts[at])
			}
		}
		log, _ := record(t, []string{"--max-overhead", "0", "-e", "search"}, program, strings.Fields(args)...)
		var doc searchCosts
		view(t, &doc, "ccs", "--costs", log)
		byFunction := map[string]uint64{}
		for _, m := range doc.Makers {
			byFunction[m.Constructor] += uint64(m.Count)
		}
		for _, m := range doc.NonDeterminism {
			if float64(want[m.Constructor]) != m.Count || float64(byFunction[m.Constructor]) != m.Count {
				t.Errorf("%s: %+v, by function %d, callgrind has %d", args, m, byFunction[m.Constructor], want[m.Constructor])
			}
		}
		if len(want) == 0 || len(doc.NonDeterminism) != len(want) {
			t.Errorf("%s: %+v, want %v", args, doc.NonDeterminism, want)
		}
		t.Logf("%s: %v", args, want)
	}
}

// constructorsOf are the info tables of the constructors that stand for non-determinism in the test program, by address.
func constructorsOf(t *testing.T, program string) map[uint64]string {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	roles := map[string]string{"Choice": "choice", "Choices": "variable or choice of several", "Fail": "failure", "Guard": "guard"}
	types := map[string]string{"CzuBool": "Bool", "CzuInt": "Int", "OPzuList": "[]"}
	out := map[uint64]string{}
	for _, s := range symbols {
		name, is := strings.CutPrefix(s.Name, "CurryzuPrelude_")
		name, is2 := strings.CutSuffix(name, "_con_info")
		role, of, is3 := strings.Cut(name, "zu")
		if is && is2 && is3 && roles[role] != "" && types[of] != "" {
			out[s.Value] = "Prelude." + types[of] + " (" + roles[role] + ")"
		}
	}
	return out
}

// A process that is attached to is counted from then on, to the last value. Those that begin during a capture have run for a moment before their
// probes are in place: of them there are at least so many.
func TestSearchOfOtherProcesses(t *testing.T) {
	testprog.NeedRoot(t)
	program := testprog.Build(t, "curry", testprog.Options{})
	made := func(log, known string) map[string]float64 {
		t.Helper()
		var doc searchCosts
		view(t, &doc, "ccs", "--costs", log)
		got := map[string]float64{}
		for _, m := range doc.NonDeterminism {
			got[m.Constructor] = m.Count
			if m.Known != known {
				t.Errorf("%+v, want %s", m, known)
			}
		}
		for _, m := range doc.Makers {
			got[m.Binding] = m.Count
			if m.Known != known {
				t.Errorf("%+v, want %s", m, known)
			}
		}
		return got
	}
	want := func(n float64) map[string]float64 {
		return map[string]float64{"Prelude.Bool (choice)": 4 * n, "Prelude.Bool (failure)": 2 * n, "Main.heads": n, "Main.tails": 3 * n, "Main.lost": 2 * n}
	}

	target := command(t, program, "line", "bets", "3000", "1")
	out, lines := linePipe(t)
	target.Stdout = out
	begin, err := target.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	waitTarget := background(t, target)
	out.Close()
	lines.want(t, "ready")
	log := filepath.Join(t.TempDir(), "attached.eventlog")
	wait := background(t, command(t, ccagent, "attach", "--max-overhead", "0", "-e", "cpu-clock,search", "-o", log, pidOf(target)))
	eventually(t, "the capture has begun", func() bool {
		return has(log, func(e eventlog.Event) bool { _, begun := e.(*eventlog.Capture); return begun })
	})
	if _, err := begin.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	if r := wait(); r.status != 0 {
		t.Fatalf("ccagent attach: status %d\n%s", r.status, r.stderr)
	}
	if r := waitTarget(); r.status != 0 {
		t.Fatalf("the program ended with status %d\n%s", r.status, r.stderr)
	}
	if got := made(log, "exact"); !maps.Equal(got, want(3000)) {
		t.Errorf("attached: %v, want %v", got, want(3000))
	}

	for name, script := range map[string]string{
		"one after the other": `"$0" bets 1000 1; "$0" bets 2000 1; exec "$0" bets 4000 30`,
		"at once":             `"$0" bets 1000 1 & "$0" bets 2000 1 & "$0" bets 4000 30; wait`,
	} {
		log, _ := record(t, []string{"--max-overhead", "0", "-e", "cpu-clock,search"}, "sh", "-c", script, program)
		got := made(log, "at least")
		t.Logf("%s: %v", name, got)
		for of, n := range got {
			if most := want(1000 + 2000 + 30*4000)[of]; n > most {
				t.Errorf("%s: %s is %.0f, and %.0f were made", name, of, n, most)
			}
		}
	}
}

// Where counting all would cost more than is allowed, it ends: what is in the log is not said to be exact, and the numbers are those of sampled
// blocks, with intervals.
func TestSearchKeepsItsBudget(t *testing.T) {
	log, r := record(t, []string{"-e", "cpu-clock,alloc,search"}, testprog.Build(t, "curry", testprog.Options{}), "bets", "100000", "60")
	wantLine(t, r.stderr, "--max-overhead 0 counts all")
	var doc searchCosts
	view(t, &doc, "ccs", "--costs", log)
	for _, m := range doc.NonDeterminism {
		if m.Known != "sampled" || m.Counted != nil {
			t.Errorf("%+v", m)
		}
	}
	for _, m := range doc.Makers {
		if m.Known != "estimated" {
			t.Errorf("%+v", m)
		}
	}
	wantLine(t, run(t, command(t, ccview, "ccs", "--costs", log)).stdout, "then that was too dear")
}

// Of a program that is none of Curry's the event says so, and others go on.
func TestSearchOfAnotherProgram(t *testing.T) {
	_, r := record(t, []string{"-e", "cpu-clock,search"}, testprog.Build(t, "fac", testprog.Options{}))
	wantLine(t, r.stderr, "no constructor of KiCS2's")
}
