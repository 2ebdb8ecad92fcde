package e2e

import (
	"bufio"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

type retainedRow struct {
	Root, Closure, Kind, File string
	Parent                    int
	Count                     uint64
	Own                       uint64 `json:"own_bytes"`
	Retained                  uint64 `json:"retained_bytes"`
}

type retainedDoc struct {
	Problem         string
	Bytes, Closures uint64
	Unreached       uint64 `json:"unreached_bytes"`
	Notes           []string
	Tree, Bands     []retainedRow
}

// root is what a root retains, by the beginning of its name.
func (d *retainedDoc) root(name string) (retained uint64, found bool) {
	for _, b := range d.Tree {
		if strings.HasPrefix(b.Root, name) {
			return b.Retained, true
		}
	}
	return 0, false
}

// graphOf takes a census with pointers of a program that collects its heap again and again once it has written a line.
func graphOf(t *testing.T, o testprog.Options, program string, args ...string) (log string, doc retainedDoc) {
	t.Helper()
	target, wait := collectingProgram(t, o, program, args...)
	log = filepath.Join(t.TempDir(), "heap.eventlog")
	r := run(t, command(t, ccagent, "heap", "--graph", "--max-pause", "0", "--wait", "1m", "-o", log, pidOf(target)))
	if r.status != 0 {
		t.Fatalf("status %d\n%s", r.status, r.stderr)
	}
	if err := target.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wait()
	view(t, &doc, "heap", "--retained", log)
	if doc.Problem != "" || len(doc.Notes) > 0 {
		t.Errorf("%s %q", doc.Problem, doc.Notes)
	}
	return log, doc
}

// The pause that is named where a heap was collected again and again before it was copied is enough.
func TestPauseThatAGraphNeeds(t *testing.T) {
	target, wait := collectingProgram(t, testprog.Options{Threaded: true}, "owners", "400000")
	log := filepath.Join(t.TempDir(), "heap.eventlog")
	r := run(t, command(t, ccagent, "heap", "--graph", "--max-pause", "1ms", "--wait", "10s", "-o", log, pidOf(target)))
	named := regexp.MustCompile(`--max-pause (\S+) is enough`).FindStringSubmatch(r.stderr)
	if r.status == 0 || named == nil {
		t.Fatalf("status %d, and no pause is named\n%s", r.status, r.stderr)
	}
	t.Log(r.stderr)
	r = run(t, command(t, ccagent, "heap", "--graph", "--max-pause", named[1], "--wait", "1m", "-o", log, pidOf(target)))
	if r.status != 0 {
		t.Fatalf("with --max-pause %s: status %d\n%s", named[1], r.status, r.stderr)
	}
	t.Log(r.stderr)
	if err := target.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wait()
	var doc retainedDoc
	view(t, &doc, "heap", "--retained", log)
	if doc.Bytes == 0 || doc.Problem != "" {
		t.Errorf("%d bytes; %s", doc.Bytes, doc.Problem)
	}
}

// collectingProgram starts such a program.
func collectingProgram(t *testing.T, o testprog.Options, program string, args ...string) (target *exec.Cmd, wait func() result) {
	t.Helper()
	testprog.NeedRoot(t)
	target = command(t, testprog.Build(t, program, o), args...)
	in, out := io.Pipe()
	target.Stdout = out
	stdin, err := target.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	wait = background(t, target)
	lines := bufio.NewReader(in)
	if _, err := lines.ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	go io.Copy(io.Discard, lines)
	if program == "retain" { // it waits for a line, and then collects
		if _, err := io.WriteString(stdin, "\n"); err != nil {
			t.Fatal(err)
		}
	}
	return target, wait
}

// What roots retain is what arithmetic says: a list that a global variable holds, a map, an array
// that a thread holds, lists of which two variables share one, and what a stable pointer leads to. All that is alive is reached.
func TestRetainedByArithmetic(t *testing.T) {
	const n = 20000
	for _, o := range []testprog.Options{
		{Threaded: true}, {Threaded: true, Prof: true}, {Threaded: true, Release: "9.6.6"}, {Threaded: true, Release: "9.10.3"},
		{Threaded: true, Release: "9.6.6", Flags: []string{"-pie", "-fPIC"}},
	} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			log, doc := graphOf(t, o, "owners", fmt.Sprint(n))
			header := uint64(8)
			if o.Prof {
				header = 24
			}
			closure := func(fields uint64) uint64 { return header + 8*fields }
			cell := closure(2) + closure(1) // with its number
			variable := closure(1) + closure(1)
			for name, want := range map[string]uint64{
				"CAF Main.cafList":   n * cell,
				"CAF Main.globalMap": variable + n*(closure(5)+closure(1)),
				"CAF Main.ownerA":    variable + closure(2) + n*cell,
				"CAF Main.ownerB":    variable + closure(2) + n*cell,
			} {
				if got, found := doc.root(name); !found || got != want {
					t.Errorf("%s retains %d bytes, want %d", name, got, want)
				}
			}
			if got, found := doc.root("stable pointer "); !found || got != n*closure(2) {
				t.Errorf("a stable pointer retains %d bytes, want %d", got, n*closure(2))
			}
			checkStablePath(t, log)
			checkRoot(t, log, variable+n*(closure(5)+closure(1)))
			shared := false
			for _, b := range doc.Tree {
				shared = shared || b.Parent == 0 && b.Root == "" && b.Closure == "GHC.Types.:" && b.Retained == n*cell
			}
			if !shared {
				t.Errorf("the list that two variables share is by none of them: %+v", doc.Tree)
			}
			held := false // by a thread, with its stack
			for _, b := range doc.Tree {
				held = held || strings.HasPrefix(b.Root, "thread ") && b.Retained >= 8*n && b.Retained < 8*n+8192
			}
			if !held {
				t.Error("no thread retains the array")
			}
			if o.Release != "" {
				if _, named := doc.root("thread"); !named || !strings.Contains(fmt.Sprint(doc.Tree), "“holder”") {
					t.Error("the thread has no label")
				}
			}
			checkReached(t, log, &doc, o.Prof)
		})
	}
}

// With the non-moving collector the same program retains the same: closures that it has in segments are counted by kind, and their pointers followed. Above some
// of them it leaves evaluated thunks, which the other collector removes. (The run-time system refuses it with -prof.)
func TestRetainedWithoutMoving(t *testing.T) {
	const n, thunks = 20000, 64
	for _, o := range []testprog.Options{
		{}, {Threaded: true}, {Threaded: true, Release: "9.6.6"}, {Threaded: true, Release: "9.10.3"},
	} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			log, doc := graphOf(t, o, "owners", fmt.Sprint(n), "+RTS", "--nonmoving-gc", "-RTS")
			closure := func(fields uint64) uint64 { return 8 + 8*fields }
			cell := closure(2) + closure(1) // with its number
			variable := closure(1) + closure(1)
			for name, want := range map[string]uint64{
				"CAF Main.cafList":   n * cell,
				"CAF Main.globalMap": variable + n*(closure(5)+closure(1)),
				"CAF Main.ownerA":    variable + closure(2) + n*cell,
				"CAF Main.ownerB":    variable + closure(2) + n*cell,
				"stable pointer ":    n * closure(2),
			} {
				if got, found := doc.root(name); !found || got < want || got > want+thunks {
					t.Errorf("%s retains %d bytes, want %d", name, got, want)
				}
			}
			for _, b := range doc.Bands {
				want := map[string]uint64{"Main.Token": n * closure(2), "Data.Map.Internal.Bin": n * closure(5)}[b.Closure]
				if want > 0 && (b.Own != want || b.Count != n) {
					t.Errorf("%d of %s have %d bytes, want %d of %d", b.Count, b.Closure, b.Own, n, want)
				}
			}
			if doc.Unreached > doc.Bytes/2 {
				t.Errorf("%d of %d bytes are garbage", doc.Unreached, doc.Bytes)
			}
			var heap struct {
				Total []uint64 `json:"total_bytes"`
			}
			if view(t, &heap, "heap", log); len(heap.Total) != 1 || heap.Total[0] != doc.Bytes {
				t.Errorf("the census has %d bytes, its closures %d", heap.Total, doc.Bytes)
			}
		})
	}
}

// checkStablePath checks that what only a stable pointer leads to has a path from it.
func checkStablePath(t *testing.T, log string) {
	t.Helper()
	var doc struct {
		Problem string
		Paths   []struct{ Root string }
	}
	view(t, &doc, "heap", "--path", "Main.Token", log)
	if doc.Problem != "" || len(doc.Paths) == 0 || !strings.HasPrefix(doc.Paths[0].Root, "stable pointer ") {
		t.Errorf("the tokens' path: %+v", doc)
	}
}

// checkRoot checks that what a global variable keeps alive is found by the variable's name.
func checkRoot(t *testing.T, log string, want uint64) {
	t.Helper()
	var doc struct {
		Problem string
		Roots   []struct {
			Closure  string
			Retained uint64 `json:"retained_bytes"`
			Tree     []struct {
				Parent   int
				Retained uint64 `json:"retained_bytes"`
			}
		}
	}
	view(t, &doc, "heap", "--root", "Main.globalMap", log)
	if doc.Problem != "" || len(doc.Roots) != 1 || doc.Roots[0].Closure != "Main.globalMap" || doc.Roots[0].Retained != want || len(doc.Roots[0].Tree) == 0 || doc.Roots[0].Tree[0].Parent != -1 || doc.Roots[0].Tree[0].Retained != want {
		t.Errorf("the map's variable: %+v, want %d bytes", doc, want)
	}
}

// checkReached checks that all that is alive is reached, and that it is what the census has counted.
func checkReached(t *testing.T, log string, doc *retainedDoc, prof bool) {
	t.Helper()
	if doc.Unreached > 0 {
		t.Errorf("%d bytes of %d are reached from no root", doc.Unreached, doc.Bytes)
	}
	var heap struct {
		Total []uint64 `json:"total_bytes"`
	}
	view(t, &heap, "heap", log)
	if prof {
		return // the run-time system's census leaves the headers of that way out
	}
	if len(heap.Total) != 1 || heap.Total[0] != doc.Bytes {
		t.Errorf("the census has %d bytes, its closures %d", heap.Total, doc.Bytes)
	}
}

// Where it is not found what a running thread holds, since it is too deep in C code, ccagent, the report and its JSON say so.
func TestIncompleteGraph(t *testing.T) {
	testprog.NeedRoot(t)
	target := command(t, testprog.Build(t, "spinner", testprog.Options{}), "deep", "50000")
	in, out := io.Pipe()
	target.Stdout = out
	wait := background(t, target)
	if _, err := bufio.NewReader(in).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	log := filepath.Join(t.TempDir(), "heap.eventlog")
	const tries = 20 // before it is in its loop all is known, and a busy machine does not stop it in time
	for try := 1; ; try++ {
		r := run(t, command(t, ccagent, "heap", "--graph", "--wait", "1ms", "-o", log, pidOf(target)))
		var doc struct {
			AtRest    bool   `json:"at_rest"`
			Complete  *bool  `json:"complete"`
			Unreached uint64 `json:"unreached_bytes"`
		}
		if r.status == 0 {
			view(t, &doc, "heap", "--retained", log)
		}
		if doc.Complete == nil || *doc.Complete {
			if try == tries {
				t.Fatalf("what all threads hold is known: status %d, %+v\n%s", r.status, doc, r.stderr)
			}
			continue
		}
		if !doc.AtRest || doc.Unreached == 0 {
			t.Errorf("%+v", doc)
		}
		text := run(t, command(t, ccview, "heap", "--retained", log))
		for what, words := range map[string]string{r.stderr: "registers", text.stdout: "whose registers did not tell what it holds"} {
			if !strings.Contains(strings.Join(strings.Fields(what), " "), words) {
				t.Errorf("no %q in\n%s", words, what)
			}
		}
		break
	}
	if err := target.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	wait()
}

// All that is alive in a program with closures of every kind is reached, and there is a path to
// what it retains.
func TestAllIsReached(t *testing.T) {
	for _, o := range []testprog.Options{{Threaded: true}, {Threaded: true, Release: "9.10.3"}} {
		t.Run(fmt.Sprintf("%+v", o), func(t *testing.T) {
			log, doc := graphOf(t, o, "retain", "4000", "100", "rest")
			checkReached(t, log, &doc, false)
			var paths struct {
				Problem string
				Paths   []struct {
					Root  string
					Steps []struct {
						Closure string
						Times   int
					}
				}
			}
			view(t, &paths, "heap", "--path", "Main.Node", log)
			if paths.Problem != "" || len(paths.Paths) == 0 {
				t.Fatalf("there is no path: %s", paths.Problem)
			}
			steps := paths.Paths[0].Steps
			if paths.Paths[0].Root == "" || len(steps) == 0 || steps[len(steps)-1].Closure != "Main.Node" {
				t.Errorf("the path is %+v", paths.Paths[0])
			}
		})
	}
}
