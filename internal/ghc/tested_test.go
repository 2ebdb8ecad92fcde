package ghc

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of docs/ghc.md anew")

const (
	page     = "../../docs/ghc.md"
	begin    = "<!-- tables of internal/ghc/tested.go: go test ./internal/ghc -run TestPage -update -->\n"
	boundary = "<!-- end of the tables -->\n"
)

// The page says what the tables in code say.
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
	want := before + begin + tables() + boundary + after
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if string(data) != want {
		t.Errorf("%s differs from the tables in code: run this test with -update", page)
	}
}

// ran is the newest series whose programs were run.
func ran() (newest Version) {
	for _, p := range Programs {
		if v, err := ParseVersion(p.Release); err == nil && newest.Before(v) {
			newest = v
		}
	}
	return newest
}

func each[T any](of []T, f func(T) string) (all []string) {
	for _, x := range of {
		all = append(all, f(x))
	}
	return all
}

// tables prints the tables in Markdown.
func tables() string {
	var b strings.Builder
	b.WriteString("\n| Program | Ways | GHC | On | Test |\n|---|---|---|---|---|\n")
	type row struct{ form, ways, arch, test string }
	var order []row
	releases := map[row][]string{}
	for _, p := range Programs {
		var ways []string
		for _, w := range p.Ways {
			ways = append(ways, "`"+strings.TrimPrefix(string(w), "rts_")+"`")
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
	b.WriteString("\n| Series | Sources read | Programs run |\n|---|---|---|\n")
	for _, s := range Sources {
		var ran []string
		for _, p := range Programs {
			if v, err := ParseVersion(p.Release); err == nil && v == s.Series && !slices.Contains(ran, p.Release+" on "+p.Arch) {
				ran = append(ran, p.Release+" on "+p.Arch)
			}
		}
		what := strings.Join(ran, ", ")
		if what == "" {
			what = "none"
		}
		fmt.Fprintf(&b, "| %v | %s | %s |\n", s.Series, s.Release, what)
	}
	unrun := Sources[slices.IndexFunc(Sources, func(s Source) bool { return s.Series == ran() })+1:]
	fmt.Fprintf(&b, "\n| Read, never run | %s | Compared with %v in |\n|---|%s---|\n", strings.Join(each(unrun, func(s Source) string { return s.Series.String() }), " | "), ran(), strings.Repeat("---|", len(unrun)))
	for _, f := range Facts {
		fmt.Fprintf(&b, "| %s | %s | %s |\n", f.What, strings.Join(each(unrun, func(s Source) string {
			if new := f.New[s.Series]; new != "" {
				return new
			}
			return "as before"
		}), " | "), f.How)
	}
	b.WriteString("\n")
	return b.String()
}

// What is said to be new is of series that were read and not run.
func TestNewIn(t *testing.T) {
	for _, f := range Facts {
		for v := range f.New {
			if !ran().Before(v) || !v.Known() {
				t.Errorf("%s: %v was run, or is not known", f.What, v)
			}
		}
	}
	for v, want := range map[Version]int{{9, 0}: 0, {9, 10}: 0, {9, 12}: 1, {9, 14}: 2, {9, 15}: 5} {
		if got := NewIn(v); len(got) != want {
			t.Errorf("%v has %q, want %d", v, got, want)
		}
	}
}

// Tests that the table names are in the tree; each known series has its sources.
func TestTablesAreWhole(t *testing.T) {
	for _, p := range Programs {
		dir, name, ok := strings.Cut(p.Test, " ")
		files, err := filepath.Glob(filepath.Join("../..", dir, "*_test.go"))
		if err != nil || !ok || !slices.ContainsFunc(files, func(f string) bool {
			data, err := os.ReadFile(f)
			return err == nil && strings.Contains(string(data), "\nfunc "+name+"(t *testing.T) {")
		}) {
			t.Errorf("GHC %s, %s: there is no test %s", p.Release, p.Form, p.Test)
		}
		if v, err := ParseVersion(p.Release); err != nil || !v.Known() {
			t.Errorf("GHC %s was run and is not known", p.Release)
		}
	}
	for i, s := range Sources {
		if i > 0 && !Sources[i-1].Series.Before(s.Series) || !s.Series.Known() {
			t.Errorf("%v stands in the wrong place", s.Series)
		}
	}
	if Sources[0].Series != Oldest || Sources[len(Sources)-1].Series != Newest {
		t.Errorf("sources from %v to %v, want %v to %v", Sources[0].Series, Sources[len(Sources)-1].Series, Oldest, Newest)
	}
	for _, r := range releases {
		if !slices.ContainsFunc(Sources, func(s Source) bool { return s.Series == r.from }) {
			t.Errorf("layouts change at %v, of which no sources are listed", r.from)
		}
	}
}

func TestEvidenceOf(t *testing.T) {
	for _, c := range []struct {
		version, arch string
		way           Way
		form          Form
		want          Evidence
		release       string
	}{
		{"9.0.2", "amd64", "rts_thr_p", Linked, Run, "9.0.2"},
		{"9.6.7", "amd64", "rts_thr_dyn", Shared, Run, "9.6.6"},
		{"9.10.3", "amd64", "rts_dyn", Shared, Run, "9.10.3"},
		{"9.6.6", "arm64", "rts_thr", Static, Run, "9.6.6"},
		{"9.6.6", "arm64", "rts_thr_p", Static, RunOtherwise, "9.6.6"},
		{"9.10.1", "amd64", "rts_thr_debug", Stripped, RunOtherwise, "9.10.3"},
		{"9.10.1", "amd64", "", "", RunOtherwise, "9.10.3"},
		{"9.10.3", "arm64", "rts_thr", Static, Read, ""},
		{"9.14.1", "amd64", "rts_thr", Linked, Read, ""},
		{"10.0.1", "amd64", "rts_thr", Linked, Unknown, ""},
		{"", "amd64", "rts_thr", Linked, Unknown, ""},
	} {
		if got, release := EvidenceOf(c.version, c.arch, c.way, c.form); got != c.want || release != c.release {
			t.Errorf("GHC %s %s %s %s: %d of %s, want %d of %s", c.version, c.arch, c.way, c.form, got, release, c.want, c.release)
		}
	}
}
