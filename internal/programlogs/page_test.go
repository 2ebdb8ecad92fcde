package programlogs

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"ccagent/internal/ghc"
)

var update = flag.Bool("update", false, "write the tables of docs/ghc.md anew")

const (
	root     = "../.."
	page     = root + "/docs/ghc.md"
	begin    = "<!-- tables of internal/ghc/tested.go: scripts/bench programs table -->\n"
	boundary = "<!-- end of the tables -->\n"
)

// The page says what the tables in code and what is stored beside the logs say.
func TestPage(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(data), begin)
	_, after, ended := strings.Cut(rest, boundary)
	if !ok || !ended {
		t.Fatalf("%s has no place for the tables", page)
	}
	want := before + begin + tests() + logs(t) + facts() + boundary + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(data) != want {
		t.Errorf("%s differs from what is stored: run scripts/bench programs table", page)
	}
}

// tests prints, in Markdown, which test profiles which programs.
func tests() string {
	var b strings.Builder
	b.WriteString("\n| Program | Ways | GHC | On | Test |\n|---|---|---|---|---|\n")
	type row struct{ form, ways, arch, test string }
	var order []row
	releases := map[row][]string{}
	for _, p := range ghc.Programs {
		var ways []string
		for _, w := range p.Ways {
			ways = append(ways, "`"+short(w)+"`")
		}
		r := row{string(p.Form), strings.Join(ways, ", "), p.Arch, p.Test}
		if releases[r] == nil {
			order = append(order, r)
		}
		releases[r] = append(releases[r], p.Release)
	}
	slices.SortStableFunc(order, func(a, b row) int { return strings.Compare(a.arch, b.arch) })
	for _, r := range order {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | `%s` |\n", r.form, r.ways, strings.Join(releases[r], ", "), r.arch, r.test)
	}
	return b.String()
}

func short(w ghc.Way) string { return strings.TrimPrefix(string(w), "rts_") }

// logs prints, in Markdown, what the stored logs show, by series; and which series were only read.
func logs(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("\n| GHC | On | Program | Way | Stacks | Most CPU time in | Bytes | Collections | Threads | Cells | KB |\n|---|---|---|---|--:|---|--:|--:|--:|--:|--:|\n")
	var read []string
	for _, s := range ghc.Sources {
		ran := false
		for _, k := range Kinds() {
			if v, err := ghc.ParseVersion(k.Release); err != nil || v != s.Series {
				continue
			}
			r, err := Stored(root, k)
			if err != nil {
				t.Fatal(err)
			}
			ran = true
			if r == nil {
				t.Fatalf("no log of %s is stored: run scripts/bench programs", k.Name())
			}
			b.WriteString(r.line())
		}
		if ran {
			read = append(read, s.Release)
		} else {
			fmt.Fprintf(&b, "| %v | | only read; sources: %s | | | | | | | | |\n", s.Series, s.Release)
		}
	}
	fmt.Fprintf(&b, "\nOf the series that were run, the sources of %s were read.\n", strings.Join(read, ", "))
	return b.String()
}

// facts prints, in Markdown, what is new in series that were only read.
func facts() string {
	var b strings.Builder
	unrun := ghc.Sources[slices.IndexFunc(ghc.Sources, func(s ghc.Source) bool { return s.Series == ghc.NewestRun() })+1:]
	cells := func(of func(ghc.Source) string) string {
		var all []string
		for _, s := range unrun {
			all = append(all, of(s))
		}
		return strings.Join(all, " | ")
	}
	fmt.Fprintf(&b, "\n| Read, never run | %s | Compared with %v in |\n|---|%s---|\n",
		cells(func(s ghc.Source) string { return s.Series.String() }), ghc.NewestRun(), strings.Repeat("---|", len(unrun)))
	for _, f := range ghc.Facts {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", f.What, cells(func(s ghc.Source) string {
			if f.New[s.Series] != "" {
				return f.New[s.Series]
			}
			return "as before"
		}), f.How)
	}
	b.WriteString("\n")
	return b.String()
}

// line is a log's line in the table.
func (r *Row) line() string {
	said, seen := &r.Said, &r.Seen
	where := strings.TrimSpace("`" + seen.Hottest + "` " + seen.Place)
	if r.Kind.Form == ghc.Interpreted {
		where = fmt.Sprintf("(bytecode), %.0f %%", 100*seen.Bytecode)
	}
	// Of what was not asked for, or what the program does not do, there is nothing to say.
	of := func(event, text string) string {
		switch {
		case !said.has(event):
			return "no"
		case !r.Kind.records(event):
			return ""
		}
		return text
	}
	bytes := ""
	if said.Bytes > 0 {
		bytes = fmt.Sprintf("%.2f %%", 100*seen.Bytes/said.Bytes)
	}
	return fmt.Sprintf("| %s | %s | %s | `%s` | %d of %d | %s | %s | %s | %s | %s | %d |\n", r.Kind.Release, r.Kind.Arch, r.Kind.Form, short(r.Kind.Way),
		seen.Complete, seen.Complete+seen.Cut, where, of("alloc", bytes), of("gc", fmt.Sprintf("%d of %d", seen.Collections, said.Collections)),
		of("threads", fmt.Sprintf("%d of %d", seen.Workers, workers)), of("heap", fmt.Sprintf("%d of %d", seen.Cells, cells)), r.Kilobytes)
}

// Each kind of program has a log of its own, whose name says what it is of.
func TestNamesDiffer(t *testing.T) {
	names := map[string]bool{}
	for _, k := range Kinds() {
		if names[k.Name()] {
			t.Errorf("two kinds are called %s", k.Name())
		}
		names[k.Name()] = true
	}
	if len(names) == 0 {
		t.Error("there are no programs")
	}
}

func TestHear(t *testing.T) {
	said, err := Hear("      838,160 bytes allocated in the heap\n  Gen  0        11 colls,     0 par    0.001s\n  Gen  1         3 colls,     0 par\n" +
		"ccagent: gc: not available\nccagent: heap: no census: it is stripped\nccagent: alloc: 180 samples, 813 KiB\n")
	if err != nil || said.Bytes != 838160 || said.Collections != 14 || !slices.Equal(said.Missing, []string{"gc", "heap"}) {
		t.Errorf("%+v, %v", said, err)
	}
}

// What a log does not show is a problem, unless the run said that it is not available.
func TestCheck(t *testing.T) {
	k := Kind{"9.6.6", "amd64", ghc.Static, "rts_thr"}
	good := Row{Kind: k, Said: Said{Bytes: 1000, Collections: 3}, Seen: Seen{GHC: "9.6.6", Way: "rts_thr", Samples: 100, Complete: 100, Hottest: "Main.spin",
		Place: "Main.hs:1", Share: 0.9, Worker: 0.95, Bytes: 1000, Allocates: "Main.cells", Collections: 3, Created: 3, Workers: workers, Censuses: 1, Cells: cells}}
	if problems := good.Check(); len(problems) > 0 {
		t.Errorf("nothing is wrong: %q", problems)
	}
	for name, change := range map[string]func(*Row){
		"GHC": func(r *Row) { r.Seen.GHC = "9.10.3" }, "way": func(r *Row) { r.Seen.Way = "rts_v" }, "stacks": func(r *Row) { r.Seen.Cut = 10 },
		"samples": func(r *Row) { r.Seen.Samples = 3 }, "hottest": func(r *Row) { r.Seen.Hottest = "Main.main" }, "place": func(r *Row) { r.Seen.Place = "" },
		"caller": func(r *Row) { r.Seen.Worker = 0 }, "bytes": func(r *Row) { r.Seen.Bytes = 900 }, "who allocates": func(r *Row) { r.Seen.Allocates = "Main.main" },
		"collections": func(r *Row) { r.Seen.Collections = 2 }, "threads": func(r *Row) { r.Seen.Workers = 2 }, "heap": func(r *Row) { r.Seen.Cells = 7 },
		"available": func(r *Row) { r.Said.Missing = []string{"gc"} },
	} {
		r := good
		if change(&r); len(r.Check()) == 0 {
			t.Errorf("%s: %+v passes", name, r)
		}
	}
	bare := good
	bare.Kind.Form, bare.Said.Missing = ghc.Shared, []string{"gc", "threads", "heap"}
	bare.Seen.Collections, bare.Seen.Workers, bare.Seen.Cells = 0, 0, 0
	if problems := bare.Check(); len(problems) > 0 {
		t.Errorf("what is not available: %q", problems)
	}
}
