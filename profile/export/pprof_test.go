package export

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"

	pprof "github.com/google/pprof/profile"
)

func parsePProf(t *testing.T, b []byte) *pprof.Profile {
	t.Helper()
	out, err := pprof.Parse(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if err := out.CheckValid(); err != nil {
		t.Fatal(err)
	}
	return out
}

// The values of a pprof export add up to each selection's weight and number of samples.
func TestPProfConservesTotals(t *testing.T) {
	each(t, func(t *testing.T, ss []*profile.Selection) {
		out := parsePProf(t, write(t, PProf, ss, Options{}))
		sum := make([]int64, len(out.SampleType))
		for _, s := range out.Sample {
			for i, v := range s.Value {
				sum[i] += v
			}
		}
		samples := int64(0)
		for i, s := range ss {
			samples += int64(s.Samples)
			if sum[i+1] != int64(s.Total) || out.SampleType[i+1].Type != s.EventDef().Name() {
				t.Errorf("%s: %d of %d", out.SampleType[i+1].Type, sum[i+1], s.Total)
			}
		}
		if sum[0] != samples {
			t.Errorf("%d samples of %d", sum[0], samples)
		}
	})
}

// Functions of C, C++ and Rust that were inlined are lines of the location, innermost first.
func TestPProfInlined(t *testing.T) {
	l := logtest.New()
	file := l.File("w.cpp", "")
	fold, norm, square := l.Function("geo::fold", eventlog.CategoryForeign), l.Function("geo::norm", eventlog.CategoryForeign), l.Function("geo::square", eventlog.CategoryForeign)
	l.Sample(1, 5, l.Stack(l.Code(fold, eventlog.QualityExact, eventlog.CategoryForeign,
		eventlog.Line{Binding: square, File: file, Line: 3}, eventlog.Line{Binding: norm, File: file, Line: 5}, eventlog.Line{File: file, Line: 11})))
	out := parsePProf(t, write(t, PProf, both(load(t, l.End()), profile.Filter{}), Options{}))
	var got []string
	for _, line := range out.Sample[0].Location[0].Line {
		got = append(got, fmt.Sprintf("%s %s:%d", line.Function.Name, line.Function.Filename, line.Line))
	}
	if want := []string{"geo::square w.cpp:3", "geo::norm w.cpp:5", "geo::fold w.cpp:11"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// A function's cum in a pprof export is its element's inclusive share, to the unit,
// because inlined lines preserve overlap.
func TestPProfCumIsInclusive(t *testing.T) {
	each(t, func(t *testing.T, ss []*profile.Selection) {
		out := parsePProf(t, write(t, PProf, ss, Options{}))
		for i, s := range ss {
			cum := make(map[string]int64)
			for _, smp := range out.Sample {
				seen := make(map[string]bool)
				for _, l := range smp.Location {
					for _, ln := range l.Line {
						if name := ln.Function.Name; !seen[name] {
							seen[name] = true
							cum[name] += smp.Value[i+1]
						}
					}
				}
			}
			compared := 0
			for _, row := range s.Hot(profile.LevelBinding).Rows {
				if row.Element.Kind != profile.KindCategory {
					compared++
					if got := cum[row.Element.Name]; got != int64(row.InclusiveWeight) {
						t.Errorf("%s of %s: cum %d, inclusive %d", s.EventDef().Name(), row.Element.Name, got, row.InclusiveWeight)
					}
				}
			}
			if compared == 0 && t.Name() == "TestPProfCumIsInclusive/whole" {
				t.Error("nothing compared")
			}
		}
	})
}

// Every sample of a pprof export has labels for thread, category and CPU, and a frame's
// causes are lines of one location.
func TestPProfLabels(t *testing.T) {
	out := parsePProf(t, write(t, PProf, both(load(t, twoEvents()), profile.Filter{}), Options{}))
	byLabel := make(map[string]int64)
	for _, s := range out.Sample {
		for k, v := range s.Label {
			byLabel[k+"="+strings.Join(v, ",")] += s.Value[0]
		}
		if len(s.Label["thread"]) != 1 || len(s.Label["category"]) != 1 || len(s.Label["cpu"]) != 1 || s.NumLabel["pid"][0] != 100 {
			t.Fatalf("labels %v %v", s.Label, s.NumLabel)
		}
	}
	// Thread 1 has 100 samples of NBody and 10 of alloc.
	for label, want := range map[string]int64{
		"thread=Haskell thread 1 (main; worker)": 110, "thread=Haskell thread 2": 10, "thread=Haskell thread 7": 1,
		"category=gc": 10, "category=kernel": 3, "capability=1": 25,
	} {
		if byLabel[label] != want {
			t.Errorf("%s: %d samples, want %d", label, byLabel[label], want)
		}
	}
	if out.DefaultSampleType != "cycles" || out.SampleType[1].Unit != "nanoseconds" || out.SampleType[2].Unit != "bytes" {
		t.Errorf("sample types %v, default %s", out.SampleType, out.DefaultSampleType)
	}
	i := slices.IndexFunc(out.Location, func(l *pprof.Location) bool { return len(l.Line) > 1 })
	if i < 0 || out.Location[i].Mapping == nil || out.Location[i].Address < 0x555500000000 {
		t.Error("no location with several causes at its run-time address")
	}
}

// go tool pprof reads a pprof export and prints the expected totals and functions.
func TestGoToolPProfReads(t *testing.T) {
	file := filepath.Join(t.TempDir(), "nbody.pprof")
	if err := os.WriteFile(file, write(t, PProf, both(load(t, twoEvents()), profile.Filter{}), Options{}), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.Command("go", append(append([]string{"tool", "pprof"}, args...), file)...)
		cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+t.TempDir())
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("go tool pprof %v: %v", args, err)
		}
		return string(out)
	}
	for _, x := range []struct {
		args []string
		want []string
	}{
		// The total is 100 ms and 12345 ns. The nearest cause of the worker's code is
		// pairwise; step is another cause of it, and nearly everything counts for
		// step's cum.
		{[]string{"-top", "-nodefraction=0"}, []string{"Total samples = 100.01ms", "40ms 40.00% 40.00%       45ms 44.99%  Physics.pairwise", "Physics.step", "evacuate", "sin", "(kernel)"}},
		{[]string{"-top", "-sample_index=alloc", "-nodefraction=0"}, []string{"Type: alloc", "Alloc.build;all"}},
		{[]string{"-raw"}, []string{"PeriodType: cycles nanoseconds", "samples/count cycles/nanoseconds[dflt] alloc/bytes", "thread:[Haskell thread 1 (main; worker)]", "[FN][FL][LN][IN]"}},
		{[]string{"-tags"}, []string{"category", "capability", "thread"}},
	} {
		out := run(x.args...)
		for _, w := range x.want {
			if !strings.Contains(out, w) {
				t.Errorf("%v lacks %q:\n%s", x.args, w, out)
			}
		}
	}
}
