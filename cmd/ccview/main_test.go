package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/ui/printer"
	"ccagent/ui/text"
)

// binary is the built command, and logs the directory with the tests' logs.
var binary, logs string

// TestMain builds the command and writes the logs that the tests read.
func TestMain(m *testing.M) { os.Exit(setup(m)) }

func setup(m *testing.M) int {
	dir, err := os.MkdirTemp("", "ccview")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	binary, logs = filepath.Join(dir, "ccview"), dir
	if out, err := exec.Command("go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build ccview: %v\n%s", err, out)
		return 1
	}
	bands, err := os.ReadFile("../../ui/internal/fixture/testdata/bands-hT.eventlog") // of a run-time system: censuses alone
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	whole := logtest.NBody().End()
	for name, data := range map[string][]byte{
		"run.eventlog": whole, "blocks.eventlog": logtest.Allocated().End(), "graph.eventlog": logtest.Retaining().End(), "growing.eventlog": logtest.Growing().End(), "drawn.eventlog": logtest.Drawn().End(), "divided.eventlog": logtest.Divided().End(), "twice.eventlog": logtest.Twice().End(), "cut.eventlog": whole[:len(whole)-len(whole)/3], "raw.eventlog": logtest.NBody().EndAbruptly(false), "bare.eventlog": bareLog(), "bands.eventlog": bands,
		"none.eventlog": []byte("no log"), "empty": {}, "header": whole[:200], "text": []byte("not a log at all, but long enough to have been one\n"),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

type result struct {
	status         int
	stdout, stderr string
}

func ccview(t *testing.T, args ...string) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c := exec.Command(binary, args...)
	c.Dir, c.Stdout, c.Stderr = logs, &stdout, &stderr
	err := c.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return result{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// Every command ends with status 0, 1 (the log cannot be read) or 2 (wrong call) and
// prints errors to stderr.
func TestExitStatus(t *testing.T) {
	for _, c := range []struct {
		args   string
		status int
		stderr string // part of it
	}{
		{"run.eventlog", 0, ""},
		{"hot run.eventlog", 0, ""},
		{"alloc blocks.eventlog", 0, ""},
		{"heap --retained graph.eventlog", 0, ""},
		{"heap --rss graph.eventlog", 0, ""},
		{"heap --range 1.5-4.5 growing.eventlog", 0, ""},
		{"heap --retained --since graph.eventlog graph.eventlog", 0, ""},
		{"heap --since graph.eventlog graph.eventlog", 2, "--retained"},
		{"heap --path main graph.eventlog", 0, ""},
		{"alloc run.eventlog", 0, ""},
		{"alloc --event alloc run.eventlog", 2, "a --range of time"},
		{"source run.eventlog Physics.hs", 0, ""},
		{"source run.eventlog Physics.pairwise", 0, ""},
		{"stacks run.eventlog", 0, ""},
		{"stacks --folded run.eventlog", 0, ""},
		{"stacks --sandwich pairwise run.eventlog", 0, ""},
		{"stacks --sandwich nobody run.eventlog", 2, "no function of that name"},
		{"stacks --sandwich step --invert run.eventlog", 2, "leave out"},
		{"hot --merge pairwise --collapse ^Physics$ --fold-recursion run.eventlog", 0, ""},
		{"hot --merge [ run.eventlog", 2, "--merge"},
		{"export --to eventlog --fold-recursion -o out run.eventlog", 2, "--fold-recursion"},
		{"timeline run.eventlog", 0, ""},
		{"info run.eventlog", 0, ""},
		{"doctor run.eventlog", 0, ""},
		{"info cut.eventlog", 0, "cut.eventlog: the capture was"},
		{"hot raw.eventlog", 0, "ccagent symbolize raw.eventlog"},

		{"info nosuch", 1, "nosuch"},
		{"info /proc/self/ns", 1, "has no logs"},
		{"info empty", 1, "from offset 0"},
		{"hot header", 1, "offset"},
		{"text", 1, "not a GHC eventlog"},

		{"", 2, "takes one log"},
		{"hot", 2, "takes one log"},
		{"hot a b", 2, "takes one log"},
		{"source run.eventlog", 2, "source path or binding"},
		{"source run.eventlog nosuch", 2, `named "nosuch"`},
		{"hot --nosuch run.eventlog", 2, "--nosuch"},
		{"hot --format xml run.eventlog", 2, "choose text or json"},
		{"hot --level line run.eventlog", 2, "choose span"},
		{"hot --event nosuch run.eventlog", 2, "it has cycles"},
		{"hot --focus ( run.eventlog", 2, "--focus"},
		{"hot --range 5 run.eventlog", 2, "FROM-TO"},
		{"hot --range 5-3 run.eventlog", 2, "ends before"},
		{"hot --range x-3 run.eventlog", 2, "neither seconds"},
		{"hot --top -1 run.eventlog", 2, "--top"},
		{"hot --cap 99999999999 run.eventlog", 2, "too large"},
		{"hot --category x run.eventlog", 2, "unknown category"},
		{"stacks --folded --format json run.eventlog", 2, "--folded"},
		{"ccs run.eventlog", 0, ""},
		{"ccs --prof run.eventlog", 0, ""},
		{"ccs --dot run.eventlog", 0, ""},
		{"ccs --stack run.eventlog", 0, ""},
		{"ccs --svg run.eventlog", 0, ""},
		{"ccs --costs run.eventlog", 0, ""},
		{"ccs --costs --format json run.eventlog", 0, ""},
		{"ccs --costs --svg run.eventlog", 2, "choose one"},
		{"heap --root thread --path Node graph.eventlog", 2, "choose one"},
		{"heap --level line divided.eventlog", 2, "choose type, kind, span"},
		{"heap --level module divided.eventlog", 0, ""},
		{"heap --band thunks divided.eventlog", 0, ""},
		{"heap --allocated divided.eventlog", 0, ""},
		{"heap --allocated growing.eventlog", 0, ""},
		{"heap --root reader graph.eventlog", 0, ""},
		{"ccs --svg --format json run.eventlog", 2, "choose one"},
		{"ccs --mode exact run.eventlog", 2, "-prof"},
		{"ccs --mode x run.eventlog", 2, "choose lexical"},
		{"ccs --select Physics.pairwsie run.eventlog", 2, "the nearest are Physics.pairwise"},
		{"ccs --select Physics.*,,x run.eventlog", 2, "names nothing"},
		{"ccs --select @x run.eventlog", 2, "@bindings"},
		{"ccs --dot --format json run.eventlog", 2, "choose one"},
		{"ccs --set nosuch run.eventlog", 2, "nosuch"},
		{"ccs --set text run.eventlog", 2, "line 1: this is no set"},
		{"ccs --set . run.eventlog", 2, "is a directory"},
		{"ccs --save no/such run.eventlog", 2, "save the set"},
		{"ccs raw.eventlog", 0, "ccagent symbolize raw.eventlog"},
		{"ccs bare.eventlog", 0, "by their symbols"},
		{"ccs --select Main.f,Main.h* bare.eventlog", 2, "the nearest are Main.f"},
		{"heap run.eventlog", 0, ""},
		{"gc run.eventlog", 0, ""},
		{"heap run.eventlog --focus x", 2, "no samples to choose"},
		{"gc run.eventlog --thread 1", 2, "no samples to choose"},
		{"alloc run.eventlog --thread 1", 2, "ccview hot, stacks, timeline and threads show a thread"},
		{"ls . --thread 1", 2, "no samples to choose"},
		{"push --to otlp=http://localhost:1 run.eventlog --focus x", 2, "no samples to choose"},
		{"heap run.eventlog --profile 2", 2, "the log has 0"},
		{"heap run.eventlog --buckets 70000", 2, "--buckets"},
		{"gc run.eventlog --range 5-3", 2, "ends before"},
		{"heap nosuch", 1, "nosuch"},
		{"gc text", 1, "not a GHC eventlog"},
		{"diff run.eventlog run.eventlog", 0, ""},
		{"diff run.eventlog,run.eventlog run.eventlog,run.eventlog --all --level span", 0, ""},
		{"diff bands.eventlog bands.eventlog", 0, ""},
		{"diff --level module bands.eventlog bands.eventlog", 0, ""},
		{"diff --heap divided.eventlog growing.eventlog", 0, ""},
		{"diff --heap run.eventlog divided.eventlog", 0, ""},
		{"diff --heap --event cycles divided.eventlog divided.eventlog", 2, "--heap compares two logs"},
		{"diff --level line bands.eventlog bands.eventlog", 2, "choose type, kind, span"},
		{"diff run.eventlog", 2, "takes two logs"},
		{"diff run.eventlog,, run.eventlog", 2, "empty name"},
		{"diff run.eventlog nosuch", 1, "nosuch"},
		{"diff run.eventlog text", 1, "not a GHC eventlog"},
		{"diff run.eventlog run.eventlog --by x", 2, "--by"},
		{"diff run.eventlog run.eventlog --normalise x", 2, "--normalise"},
		{"diff run.eventlog run.eventlog --alpha 2", 2, "--alpha"},
		{"diff run.eventlog run.eventlog --focus (", 2, "--focus"},
		{"diff run.eventlog run.eventlog --event nosuch", 2, "it has cycles"},
		{"timeline --buckets 100000 run.eventlog", 2, "--buckets"},
	} {
		r := ccview(t, strings.Fields(c.args)...)
		if r.status != c.status || !strings.Contains(r.stderr, c.stderr) || c.stderr == "" && r.stderr != "" {
			t.Errorf("ccview %s: status %d, want %d; stderr %q, want %q", c.args, r.status, c.status, r.stderr, c.stderr)
		}
		if c.status != 0 && r.stdout != "" {
			t.Errorf("ccview %s fails, but prints %q", c.args, r.stdout)
		}
		if c.status != 0 && strings.Count(r.stderr, "\n") != 1 {
			t.Errorf("ccview %s: stderr is not one line: %q", c.args, r.stderr)
		}
	}
}

type hotDoc struct {
	Event      string
	Samples    uint64
	Total      uint64
	Lost       uint64
	Unresolved float64
	Level      string
	Rows       []struct {
		Element, Kind, File, Span, Module string
		Share, Only, Inclusive            float64
		Samples                           uint64
	}
}

func hot(t *testing.T, args ...string) hotDoc {
	t.Helper()
	r := ccview(t, append([]string{"hot", "run.eventlog", "--format", "json"}, args...)...)
	var d hotDoc
	if err := json.Unmarshal([]byte(r.stdout), &d); err != nil || r.status != 0 {
		t.Fatalf("hot %v: status %d, %v\n%s", args, r.status, err, r.stderr)
	}
	return d
}

// Each filter flag keeps exactly the samples and rows that it names.
func TestFlags(t *testing.T) {
	for _, c := range []struct {
		args    string
		samples uint64
		rows    int
		first   string
	}{
		{"", 100, 10, "Physics.step"},
		{"--top 3", 100, 3, "Physics.step"},
		{"--level span", 100, 12, "src/Physics.hs:4:1-7:29"},
		{"--level file", 100, 9, "src/Physics.hs"},
		{"--level module", 100, 9, "Physics"},
		{"--level package", 100, 7, "main"},
		{"--event cycles", 100, 10, "Physics.step"},
		{"--event cpu-clock", 100, 10, "Physics.step"},
		{"--range 0.041-0.061", 20, 2, "Physics.step"},
		{"--range 41ms-61ms", 20, 2, "Physics.step"},
		{"--range -0.041", 40, 3, "Physics.pairwise"},
		{"--range 96ms-", 5, 3, "(STG)"},
		{"--focus pairwise", 45, 4, "Physics.pairwise"},
		{"--ignore pairwise --ignore map", 45, 7, "Physics.step"},
		{"--hide ^GHC", 100, 8, "Physics.step"},
		{"--cap 1", 10, 3, "GHC.Base.map"},
		{"--cap 0,1", 100, 10, "Physics.step"},
		{"--thread 1", 100, 10, "Physics.step"},
		{"--pid 100 --tid 101", 10, 3, "GHC.Base.map"},
		{"--category gc", 10, 1, "(GC)"},
	} {
		d := hot(t, strings.Fields(c.args)...)
		first := ""
		if len(d.Rows) > 0 {
			first = d.Rows[0].Element
		}
		if d.Samples != c.samples || len(d.Rows) != c.rows || first != c.first {
			t.Errorf("%q: %d samples, %d rows, first %q; want %d, %d, %q", c.args, d.Samples, len(d.Rows), first, c.samples, c.rows, c.first)
		}
	}
	d := hot(t)
	if d.Event != "cycles" || d.Total != 100e6 || d.Lost != 7 || d.Unresolved != 0.02 || d.Level != "binding" {
		t.Errorf("%+v", d)
	}
	r := d.Rows[1]
	if r.Share != 0.4 || r.Only != 0 || r.Inclusive != 0.45 || r.Samples != 40 || r.Kind != "binding" || r.Span != "10:1-10:51" || r.Module != "Physics" || r.File != "src/Physics.hs" {
		t.Errorf("%+v", r)
	}
}

type ccsDoc struct {
	Event, Mode string
	Total       uint64
	Forced      float64
	Rows        []struct {
		CostCentre            string `json:"cost_centre"`
		Module, Span, Parent  string
		Individual, Inherited float64
		Entries               *uint64
		ParentRow             int `json:"parent_row"`
	}
}

func costCentres(t *testing.T, args ...string) (d ccsDoc, stderr string) {
	t.Helper()
	r := ccview(t, append([]string{"ccs", "run.eventlog", "--format", "json"}, args...)...)
	if err := json.Unmarshal([]byte(r.stdout), &d); err != nil || r.status != 0 {
		t.Fatalf("ccs %v: status %d, %v\n%s", args, r.status, err, r.stderr)
	}
	return d, r.stderr
}

// The individual shares of cost centres add up to 1, for any choice of centres.
func TestCCS(t *testing.T) {
	for _, c := range []struct {
		args, row             string
		individual, inherited float64
	}{
		{"", "Physics.pairwise", 0.45, 0.45},
		{"--select Physics.step", "Physics.step", 0.83, 0.83},
		{"--select Physics.step,Physics.pairwise", "Physics.step", 0.38, 0.83},
		{"--select phys=Physics.*", "phys", 0.83, 0.83},
		{"--select @modules --mode evaluation", "Physics", 0.73, 0.83},
		{"--select @packages --mode stacks", "base", 0.15, 0.15},
		{"--mode stacks", "Physics.step", 0.38, 0.83},
		{"--event cycles --range 0.041-0.061", "Physics.step", 1, 1},
	} {
		d, _ := costCentres(t, strings.Fields(c.args)...)
		sum, found := 0.0, false
		for _, r := range d.Rows {
			sum += r.Individual
			if r.CostCentre == c.row {
				found = true
				if math.Abs(r.Individual-c.individual) > 1e-9 || math.Abs(r.Inherited-c.inherited) > 1e-9 {
					t.Errorf("%q: %+v", c.args, r)
				}
			}
			if r.ParentRow >= 0 && d.Rows[r.ParentRow].CostCentre != r.Parent {
				t.Errorf("%q: parent of %+v", c.args, r)
			}
		}
		if !found || math.Abs(sum-1) > 1e-9 {
			t.Errorf("%q: individuals sum to %v; %s is there: %v", c.args, sum, c.row, found)
		}
	}
}

// A saved set of centres can be used again, on other logs too.
func TestCCSSets(t *testing.T) {
	want, _ := costCentres(t, "--select", "phys=Physics.*,GHC.Base.map", "--save", "centres")
	got, stderr := costCentres(t, "--set", "centres")
	if stderr != "" || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%v, saved %v\n%s", got, want, stderr)
	}
	data, err := os.ReadFile(filepath.Join(logs, "centres"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(logs, "centres"), append(data, "Nosuch.binding\n"...), 0o600); err != nil {
		t.Fatal(err)
	}
	got, stderr = costCentres(t, "--set", "centres")
	if fmt.Sprint(got) != fmt.Sprint(want) || !strings.Contains(stderr, `"Nosuch.binding" names no code`) {
		t.Errorf("%v, saved %v\n%s", got, want, stderr)
	}
}

// In the JSON of every kind of call tree the self weights add up to the root's total.
func TestStacksJSON(t *testing.T) {
	type node struct {
		Name        string
		Self, Total uint64
		Children    []*node
	}
	for _, flag := range []string{"", "--invert", "--all-frames"} {
		args := append([]string{"stacks", "run.eventlog", "--format", "json"}, strings.Fields(flag)...)
		var d struct {
			Total uint64
			Root  *node
		}
		if err := json.Unmarshal([]byte(ccview(t, args...).stdout), &d); err != nil {
			t.Fatal(err)
		}
		var self uint64
		var walk func(n *node)
		walk = func(n *node) {
			self += n.Self
			for _, c := range n.Children {
				walk(c)
			}
		}
		walk(d.Root)
		if self != d.Total || d.Root.Total != d.Total || d.Total != 100e6 {
			t.Errorf("%s: selves sum to %d, root %d, total %d", flag, self, d.Root.Total, d.Total)
		}
	}
}

// Without a terminal, the viewer's command prints what hot prints.
func TestViewerWithoutTerminal(t *testing.T) {
	plain, hot := ccview(t, "run.eventlog"), ccview(t, "hot", "run.eventlog")
	if plain.stdout != hot.stdout || plain.stdout == "" {
		t.Errorf("ccview FILE prints %q, hot %q", plain.stdout, hot.stdout)
	}
	if strings.Contains(plain.stdout, "\x1b") {
		t.Error("escape sequences in a pipe")
	}
}

// A reader that closes the pipe early causes no error message.
func TestBrokenPipe(t *testing.T) {
	for _, args := range [][]string{{"hot", "run.eventlog"}, {"stacks", "run.eventlog", "--format", "json"}, {"info", "run.eventlog"}} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		r.Close()
		var stderr bytes.Buffer
		c := exec.Command(binary, args...)
		c.Dir, c.Stdout, c.Stderr = logs, w, &stderr
		_ = c.Run() // ends by SIGPIPE
		w.Close()
		if stderr.Len() > 0 {
			t.Errorf("%v: %s", args, &stderr)
		}
	}
}

// Printing to a full disk is reported as an error.
func TestFullDisk(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		testprog.Skip(t, &testprog.UnsupportedError{Need: err.Error()})
	}
	defer full.Close()
	var stderr bytes.Buffer
	c := exec.Command(binary, "hot", "run.eventlog")
	c.Dir, c.Stdout, c.Stderr = logs, full, &stderr
	if err := c.Run(); err == nil || !strings.Contains(stderr.String(), "no space left") {
		t.Errorf("printing to a full disk: %v, %q", err, &stderr)
	}
}

// The help of each command names all its flags and exits with status 0.
func TestHelp(t *testing.T) {
	r := ccview(t, "--help")
	for _, word := range []string{"hot", "source", "stacks", "timeline", "info", "doctor", "--focus", "--level", "--range"} {
		if !strings.Contains(r.stdout, word) {
			t.Errorf("--help does not mention %s", word)
		}
	}
	if r.status != 0 || r.stderr != "" {
		t.Errorf("status %d, %q", r.status, r.stderr)
	}
}

// A planted change between two builds is reported, and nothing else is.
func TestDiff(t *testing.T) {
	group := func(changed bool, from uint64) string {
		var names []string
		for i := range uint64(5) {
			name := fmt.Sprintf("build-%v-%d.eventlog", changed, from+i)
			if err := os.WriteFile(filepath.Join(logs, name), logtest.Run(from+i, changed).End(), 0o600); err != nil {
				t.Fatal(err)
			}
			names = append(names, name)
		}
		return strings.Join(names, ",")
	}
	verdicts := func(args ...string) map[string]string {
		r := ccview(t, append([]string{"diff", "--format", "json"}, args...)...)
		var d struct {
			Event  string
			ATotal float64 `json:"a_total"`
			BTotal float64 `json:"b_total"`
			Rows   []struct {
				Element, Verdict string
				A, B, Delta      float64
			}
		}
		if err := json.Unmarshal([]byte(r.stdout), &d); err != nil || r.status != 0 || d.Event != "cycles" {
			t.Fatalf("diff %v: status %d, %v\n%s", args, r.status, err, r.stderr)
		}
		out := make(map[string]string)
		for _, row := range d.Rows {
			if math.Abs(row.B-row.A-row.Delta) > 1e-6*d.ATotal {
				t.Errorf("delta of %+v", row)
			}
			out[row.Element] = row.Verdict
		}
		return out
	}
	a, a2, b := group(false, 1), group(false, 21), group(true, 11)
	same, first := "no change shown", "n=1: no test"
	for _, c := range []struct {
		args []string
		want map[string]string
	}{
		{[]string{a, b}, map[string]string{"Work.heavy": "slower", "Work.light": same, "(GC)": same, "Old.gone": "faster", "New.added": "slower"}},
		{[]string{a, a2}, map[string]string{"Work.heavy": same, "Work.light": same, "(GC)": same, "Old.gone": same}},
		{[]string{a, b, "--level", "span"}, map[string]string{"lib/Work.hs:13:1-17:20": "slower", "lib/Work.hs:15:5-15:20": "slower", "lib/Work.hs:23:1-25:20": same, "(GC)": same}},
		{[]string{a, b, "--focus", "^Work"}, map[string]string{"Work.heavy": "slower", "Work.light": same}},
		{[]string{a, b, "--hide", "heavy"}, map[string]string{"Main.main": "slower", "Work.light": same}},
		{[]string{strings.Split(a, ",")[0], strings.Split(b, ",")[0]}, map[string]string{"Work.heavy": first, "Work.light": first}},
	} {
		got := verdicts(c.args...)
		for name, want := range c.want {
			if got[name] != want {
				t.Errorf("diff %.60q: %s is %q, want %q; all: %v", c.args, name, got[name], want, got)
			}
		}
	}
}

// The heap and gc commands print the figures that the RTS logged, and bands add up to a census.
func TestHeapAndGC(t *testing.T) {
	log, err := filepath.Abs("../../eventlog/testdata/rts/9.0.2-hT.eventlog")
	if err != nil {
		t.Fatal(err)
	}
	var heap struct {
		Breakdown string
		Census    []float64 `json:"census_seconds"`
		Total     []uint64  `json:"total_bytes"`
		Bands     []struct {
			Band  string
			Bytes []uint64
		}
	}
	r := ccview(t, "heap", "--format", "json", log)
	if err := json.Unmarshal([]byte(r.stdout), &heap); err != nil || r.status != 0 {
		t.Fatalf("heap: status %d, %v\n%s", r.status, err, r.stderr)
	}
	if heap.Breakdown != "closure type" || len(heap.Census) == 0 || len(heap.Bands) < 5 {
		t.Errorf("%s, %d censuses, %d bands", heap.Breakdown, len(heap.Census), len(heap.Bands))
	}
	for i := range heap.Census {
		sum := uint64(0)
		for _, b := range heap.Bands {
			sum += b.Bytes[i]
		}
		if sum != heap.Total[i] || sum == 0 {
			t.Errorf("census %d: bands sum to %d, total %d", i, sum, heap.Total[i])
		}
	}
	var gc struct {
		Pauses []struct {
			Start, Seconds float64
			Generation     *int
		}
		Total struct{ Count uint64 }
		Gens  []struct{ Count uint64 } `json:"generations"`
	}
	r = ccview(t, "gc", "--format", "json", log)
	if err := json.Unmarshal([]byte(r.stdout), &gc); err != nil || r.status != 0 {
		t.Fatalf("gc: status %d, %v\n%s", r.status, err, r.stderr)
	}
	sum := uint64(0)
	for _, g := range gc.Gens {
		sum += g.Count
	}
	if len(gc.Pauses) == 0 || gc.Total.Count != uint64(len(gc.Pauses)) || sum != gc.Total.Count || gc.Pauses[0].Generation == nil {
		t.Errorf("%d pauses, %d counted, %d by generation: %+v", len(gc.Pauses), gc.Total.Count, sum, gc.Pauses)
	}
}

// bareLog returns the log of a program without source notes, whose code has only symbols.
func bareLog() []byte {
	l := logtest.New()
	f := l.Code(l.Binding("main", "Main", "f", 0), eventlog.QualityExact, eventlog.CategoryHaskell)
	main := l.Code(l.Binding("main", ":Main", "main", 0), eventlog.QualityExact, eventlog.CategoryHaskell)
	l.Sample(1, 3, l.Stack(main, f))
	l.Sample(2, 1, l.Stack(main))
	return l.End()
}

// Without source notes, cost centres are bindings named by their symbols. The bindings
// that GHC generates around main are not cost centres.
func TestCentresOfBareLog(t *testing.T) {
	r := ccview(t, "ccs", "bare.eventlog")
	if r.status != 0 || !strings.Contains(r.stdout, "75.0%    ±75  75.0%   ±75      .    Main.f") || strings.Contains(r.stdout, ":Main") {
		t.Errorf("status %d, printed\n%s\n%s", r.status, r.stdout, r.stderr)
	}
}

// howSure is what a report says of intervals, which take times of samples.
var howSure = regexp.MustCompile(` ±[0-9.]+|"(low|high)": (null|[0-9.e-]+)`)

// Commands info and doctor print the same from a log's totals as from its samples, for
// every log.
func TestTotalsPrintTheSame(t *testing.T) {
	paths, _ := filepath.Glob("../../eventlog/testdata/*/*.eventlog")
	more, _ := filepath.Glob("../../ui/internal/fixture/testdata/*.eventlog")
	ours, _ := filepath.Glob(filepath.Join(logs, "*.eventlog"))
	ours = slices.DeleteFunc(ours, func(path string) bool { return filepath.Base(path) == "none.eventlog" }) // no log
	if paths = slices.Concat(paths, more, ours); len(paths) < 40 {
		t.Fatalf("%d logs", len(paths))
	}
	for _, path := range paths {
		var out [2]bytes.Buffer
		for i, open := range []func(string, func(done, total int64)) (*profile.Profile, error){profile.Open, profile.OpenTotals} {
			p, err := open(path, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range []printer.Report{text.Info{Profile: p}, text.Doctor{Profile: p}} {
				for _, print := range []func(io.Writer, printer.Options) error{r.Text, r.JSON} {
					if err := print(&out[i], printer.Options{File: path, Width: 1000}); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		if !bytes.Equal(howSure.ReplaceAll(out[0].Bytes(), nil), howSure.ReplaceAll(out[1].Bytes(), nil)) {
			t.Errorf("%s:\n%s\nby totals:\n%s", path, &out[0], &out[1])
		}
	}
}
