package ghc

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// What is said to be new is of series that were read and not run.
func TestNewIn(t *testing.T) {
	for _, f := range Facts {
		for v := range f.New {
			if !NewestRun().Before(v) || !v.Known() {
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
