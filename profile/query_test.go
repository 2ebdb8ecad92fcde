package profile_test

import (
	"bytes"
	"fmt"
	"math"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
	"ccagent/profile/stacks"
)

func load(t testing.TB, log []byte) *profile.Profile {
	t.Helper()
	p, err := profile.Load(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func nbody(t testing.TB) *profile.Profile { return load(t, logtest.NBody().End()) }

func expr(s string) []*regexp.Regexp { return []*regexp.Regexp{regexp.MustCompile(s)} }

// table gives rows as "element share only inclusive samples", the figures in
// per cent of the total.
func table(h *profile.Hot) []string {
	var out []string
	pc := func(f float64) float64 { return math.Round(f*1000) / 10 }
	for _, r := range h.Rows {
		out = append(out, fmt.Sprintf("%s %v %v %v %d", r.Element.Name, pc(r.Share), pc(r.Only), pc(r.Inclusive), r.Samples))
	}
	return out
}

// The shares, exclusive and inclusive figures of a hand-made log are those computed by
// hand, at every level.
func TestHot(t *testing.T) {
	p := nbody(t)
	for _, c := range []struct {
		level profile.Level
		want  []string
	}{
		{profile.LevelBinding, []string{
			"Physics.step 60 20 83 60",
			"Physics.pairwise 40 0 45 40",
			"(GC) 10 10 10 10",
			"GHC.Base.map 10 10 10 10",
			"(STG) 5 5 5 5",
			"(foreign) 5 5 5 5",
			"GHC.List (near foldl1) 5 5 5 5",
			"(kernel) 3 3 3 3",
			"(unresolved) 2 2 2 2",
			"Main.main 0 0 88 0",
		}},
		{profile.LevelSpan, []string{
			"src/Physics.hs:4:1-7:29 60 20 83 60",
			"src/Physics.hs:7:10-7:29 40 0 48 40",
			"src/Physics.hs:10:1-10:51 40 0 45 40",
			"src/Physics.hs:10:31-10:41 40 0 45 40",
			"(GC) 10 10 10 10",
			"module GHC.Base 10 10 10 10",
			"(STG) 5 5 5 5",
			"(foreign) 5 5 5 5",
			"module GHC.List 5 5 5 5",
			"(kernel) 3 3 3 3",
			"(unresolved) 2 2 2 2",
			"app/Main.hs:10:1-12:20 0 0 88 0",
		}},
		{profile.LevelFile, []string{
			"src/Physics.hs 60 60 83 60",
			"(GC) 10 10 10 10",
			"module GHC.Base 10 10 10 10",
			"(STG) 5 5 5 5",
			"(foreign) 5 5 5 5",
			"module GHC.List 5 5 5 5",
			"(kernel) 3 3 3 3",
			"(unresolved) 2 2 2 2",
			"app/Main.hs 0 0 88 0",
		}},
		{profile.LevelModule, []string{
			"Physics 60 60 83 60",
			"(GC) 10 10 10 10",
			"GHC.Base 10 10 10 10",
			"(STG) 5 5 5 5",
			"(foreign) 5 5 5 5",
			"GHC.List 5 5 5 5",
			"(kernel) 3 3 3 3",
			"(unresolved) 2 2 2 2",
			"Main 0 0 88 0",
		}},
		{profile.LevelPackage, []string{
			"main 60 60 88 60",
			"base 15 15 15 15",
			"(GC) 10 10 10 10",
			"(STG) 5 5 5 5",
			"(foreign) 5 5 5 5",
			"(kernel) 3 3 3 3",
			"(unresolved) 2 2 2 2",
		}},
	} {
		h := p.Select(profile.Filter{}).Hot(c.level)
		if d := cmp.Diff(c.want, table(h)); d != "" {
			t.Errorf("%v: (-want +got)\n%s", c.level, d)
		}
	}
}

// Weight attributed by the nearest symbol only is marked as a guess, and no other weight
// is.
func TestHotMarksGuesses(t *testing.T) {
	s := nbody(t).Select(profile.Filter{})
	for _, r := range s.Hot(profile.LevelPackage).Rows {
		want := uint64(0)
		if r.Element.Name == "base" {
			want = 5_000_000
		}
		if r.NearWeight != want {
			t.Errorf("%s: %d ns by the nearest symbol, want %d", r.Element.Name, r.NearWeight, want)
		}
	}
	for _, r := range s.Hot(profile.LevelBinding).Rows {
		if near := r.Element.Kind == profile.KindNear; near != strings.Contains(r.Element.Name, "(near ") {
			t.Errorf("%s: kind %v", r.Element.Name, r.Element.Kind)
		}
	}
}

// Each filter keeps the samples, and attributes their cost, as computed by hand.
func TestFilters(t *testing.T) {
	p := nbody(t)
	const ms = 1_000_000
	for _, c := range []struct {
		name    string
		f       profile.Filter
		samples uint64
		first   string // row at binding level
	}{
		{"focus a frame", profile.Filter{Focus: expr(`pairwise`)}, 45, "Physics.pairwise 88.9 0 100 40"},
		{"focus by the worker's own name", profile.Filter{Focus: expr(`\$wpairwise`)}, 45, "Physics.pairwise 88.9 0 100 40"},
		{"focus a file", profile.Filter{Focus: expr(`^app/Main`)}, 88, "Physics.step 68.2 22.7 94.3 60"},
		{"focus is not fooled by context", profile.Filter{Focus: expr(`step`)}, 83, "Physics.step 72.3 24.1 100 60"},
		{"focus a category", profile.Filter{Focus: expr(`\(kernel\)`)}, 3, "(kernel) 100 100 100 3"},
		{"two focuses", profile.Filter{Focus: append(expr("map"), expr("step")...)}, 10, "GHC.Base.map 100 100 100 10"},
		{"ignore", profile.Filter{Ignore: expr(`pairwise|map`)}, 45, "Physics.step 44.4 44.4 62.2 20"},
		{"hide a leaf", profile.Filter{Hide: expr(`^GHC\.Base\.map$`)}, 100, "Physics.step 70 30 83 70"},
		{"hide one of several causes", profile.Filter{Hide: expr(`Physics\.step`)}, 100, "Physics.pairwise 40 40 45 40"},
		{"hide everything", profile.Filter{Hide: expr(``)}, 100, "(hidden) 95 95 95 95"},
		{"range", profile.Filter{Range: profile.Range{From: 41 * ms, To: 61 * ms}}, 20, "Physics.step 100 100 100 20"},
		{"open range", profile.Filter{Range: profile.Range{From: 96 * ms}}, 5, "(STG) 100 100 100 5"},
		{"capability", profile.Filter{Caps: []uint32{1}}, 10, "GHC.Base.map 100 100 100 10"},
		{"another thread", profile.Filter{Threads: []uint64{9}}, 0, ""},
		{"thread", profile.Filter{Threads: []uint64{9, 1}}, 100, "Physics.step 60 20 83 60"},
		{"OS thread", profile.Filter{TIDs: []uint32{101}}, 10, "GHC.Base.map 100 100 100 10"},
		{"process", profile.Filter{PIDs: []uint32{1}}, 0, ""},
		{"category", profile.Filter{Categories: []eventlog.Category{eventlog.CategoryGC, eventlog.CategorySTG}}, 15, "(GC) 66.7 66.7 66.7 10"},
	} {
		s := p.Select(c.f)
		first := ""
		if rows := table(s.Hot(profile.LevelBinding)); len(rows) > 0 {
			first = rows[0]
		}
		if s.Samples != c.samples || first != c.first {
			t.Errorf("%s: %d samples, first %q; want %d, %q", c.name, s.Samples, first, c.samples, c.first)
		}
	}
}

// The cost of hidden frames goes to the nearest caller that is not hidden.
func TestHiddenCostFallsToCaller(t *testing.T) {
	s := nbody(t).Select(profile.Filter{Hide: expr(`Physics`)})
	if got, want := table(s.Hot(profile.LevelBinding))[0], "Main.main 60 60 88 60"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// The overlap of two elements is the weight of the samples that have both at their leaf.
func TestOverlap(t *testing.T) {
	s := nbody(t).Select(profile.Filter{})
	h := s.Hot(profile.LevelBinding)
	id := func(name string) profile.ElementID {
		for _, r := range h.Rows {
			if r.Element.Name == name {
				return r.Element.ID
			}
		}
		t.Fatalf("no element %s", name)
		return profile.NoElement
	}
	step, pairwise, gc := id("Physics.step"), id("Physics.pairwise"), id("(GC)")
	if w := s.Overlap(profile.LevelBinding, step, pairwise); w != 40e6 {
		t.Errorf("overlap(step, pairwise) = %d", w)
	}
	if w := s.Overlap(profile.LevelBinding, step, gc); w != 0 {
		t.Errorf("overlap(step, GC) = %d", w)
	}
	var got []string
	for _, o := range s.Overlaps(profile.LevelBinding, step, profile.LevelBinding) {
		got = append(got, fmt.Sprintf("%s %v %d", o.Element.Name, o.Share, o.Samples))
	}
	if d := cmp.Diff([]string{"Physics.pairwise 0.4 40"}, got); d != "" {
		t.Error(d)
	}
}

// A group has its members' rows and counts samples that several members share once.
func TestGroups(t *testing.T) {
	s := nbody(t).Select(profile.Filter{})
	g := s.Groups(profile.LevelFile, profile.LevelBinding)
	var members []string
	sum := 0.0
	for _, m := range g[0].Members {
		members = append(members, m.Element.Name)
		sum += m.Share
	}
	if d := cmp.Diff([]string{"Physics.step", "Physics.pairwise"}, members); d != "" || g[0].Element.Name != "src/Physics.hs" {
		t.Errorf("%s: %s", g[0].Element.Name, d)
	}
	if g[0].Share != 0.6 || sum != 1.0 {
		t.Errorf("the group counts distinct samples: share %v, members' sum %v", g[0].Share, sum)
	}
}

// Allocated bytes are attributed to the code that asked for memory, not to the allocator
// under it.
func TestAllocationIsChargedToWhoAsked(t *testing.T) {
	l := logtest.New()
	l.Write(0, &eventlog.EventDef{Index: 3, Requested: "alloc", Granted: "alloc", Unit: "bytes", RateMode: eventlog.RatePeriod, Rate: 1 << 20})
	f := l.File("A.hs", "")
	b := l.Binding("main", "A", "build", 0)
	code := l.Block(b, l.Span(f, 1, 1, 1, 9, b))
	gc := l.Code(l.Function("stg_gc_noregs", eventlog.CategorySTG), eventlog.QualityExact, eventlog.CategorySTG)
	c := l.Code(l.Function("allocateMightFail", eventlog.CategoryRTS), eventlog.QualityExact, eventlog.CategoryRTS)
	l.SampleOf(1, eventlog.Sample{Event: 3, Weight: 4096, Node: l.Stack(code, gc)})
	l.SampleOf(2, eventlog.Sample{Event: 3, Weight: 4096, Node: l.Stack(code, c, gc)})
	l.SampleOf(3, eventlog.Sample{Event: 3, Weight: 100, Node: l.Stack(c)})
	p := load(t, l.End())
	i, ok := p.EventNamed("alloc")
	if !ok {
		t.Fatal("no event alloc")
	}
	s := p.Select(profile.Filter{}.WithEvent(i))
	if d := cmp.Diff([]string{"A.build 98.8 98.8 98.8 2", "(RTS) 1.2 1.2 50.6 1", "(STG) 0 0 98.8 0"}, table(s.Hot(profile.LevelBinding))); d != "" {
		t.Error(d)
	}
	tr := stacks.TreeOf(s, stacks.Options{})
	if n := tr.Nodes[tr.Nodes[0].Children[0]]; n.Name != "A.build" || n.Self != 8192 {
		t.Errorf("tree: %s has self %d", n.Name, n.Self)
	}
}

// What the run-time system allocates for itself is named by what it is, also where Haskell code
// is above it on the stack.
func TestOwnAllocationOfTheRunTimeSystem(t *testing.T) {
	l := logtest.New()
	l.Write(0, &eventlog.EventDef{Index: 3, Requested: "alloc", Granted: "alloc", Unit: "bytes", RateMode: eventlog.RatePeriod, Rate: 1 << 20})
	f := l.File("A.hs", "")
	b := l.Binding("main", "A", "build", 0)
	code := l.Block(b, l.Span(f, 1, 1, 1, 9, b))
	function := func(name string, c eventlog.Category) logtest.Frame {
		return l.Code(l.Function(name, c), eventlog.QualityExact, c)
	}
	allocate, overflow := function("allocateMightFail", eventlog.CategoryRTS), function("threadStackOverflow", eventlog.CategoryRTS)
	fork := function("stg_forkzh", eventlog.CategorySTG)
	l.SampleOf(1, eventlog.Sample{Event: 3, Weight: 500, Node: l.Stack(code, fork)})
	l.SampleOf(2, eventlog.Sample{Event: 3, Weight: 300, Node: l.Stack(overflow, allocate)})
	l.SampleOf(3, eventlog.Sample{Event: 3, Weight: 200, Node: l.Stack(code, allocate)})
	p := load(t, l.End())
	i, _ := p.EventNamed("alloc")
	s := p.Select(profile.Filter{}.WithEvent(i))
	want := []string{"(thread stacks) 50 50 50 1", "(stack chunks) 30 30 30 1", "A.build 20 20 70 1", "(RTS) 0 0 50 0"}
	if d := cmp.Diff(want, table(s.Hot(profile.LevelBinding))); d != "" {
		t.Error(d)
	}
}

// The summary of a hand-made log has the figures computed by hand, and its categories
// partition the total.
func TestSummary(t *testing.T) {
	p := nbody(t)
	sum := p.Select(profile.Filter{Caps: []uint32{0}}).Summary()
	want := profile.Summary{
		Event: "cycles", Title: "cycles (cpu-clock)", Unit: "ns", Samples: 90, Total: 90e6, AllSamples: 100, AllTotal: 100e6, Lost: 7, Throttled: 2, Unresolved: 2.0 / 90,
		Stacks: profile.Stacks{Complete: 78, Failed: 1, None: 11, Reasons: map[string]uint64{
			"root": 73, "root-recovered": 5, "no-haskell-context": 10, "unreadable-stack": 1, "no-user-context": 1}},
	}
	if d := cmp.Diff(want, sum); d != "" {
		t.Error(d)
	}
	var total uint64
	for _, c := range p.Select(profile.Filter{}).Categories() {
		total += c.Weight
	}
	if total != 100e6 {
		t.Errorf("categories sum to %d", total)
	}
	f := p.Select(profile.Filter{}).CategoryFunctions("(GC)")
	if len(f) != 1 || f[0].Name != "evacuate" || f[0].Samples != 10 {
		t.Errorf("GC consists of %+v", f)
	}
}

// While a log grows, code that its tables say nothing of yet is distinguished from code that
// was looked up in vain.
func TestPending(t *testing.T) {
	log := logtest.NBody().End()
	for _, growing := range []bool{false, true} {
		// The tables follow the samples: a cut among them leaves some out.
		for _, part := range []float64{0.6, 0.7, 0.8, 0.9, 1} {
			p := load(t, log[:int(part*float64(len(log)))])
			p.Accounting.Growing = growing
			sum := p.Select(profile.Filter{}).Summary()
			switch {
			case !growing && sum.Pending != 0:
				t.Errorf("%v of the log, which grows no more: %v is pending", part, sum.Pending)
			case growing && !p.Symbolised && math.Abs(sum.Pending-sum.Unresolved) > 0.011:
				// One of its hundred samples has no stack, and never will have a name.
				t.Errorf("%v of the log, without tables: %v is pending of %v", part, sum.Pending, sum.Unresolved)
			case growing && part == 1 && (sum.Pending >= sum.Unresolved || sum.Pending > 0.011):
				// 0x9999 was looked up, in vain; one sample's address is in no table.
				t.Errorf("with all tables %v is pending of %v", sum.Pending, sum.Unresolved)
			case sum.Pending > sum.Unresolved:
				t.Errorf("%v of the log: %v is pending of %v", part, sum.Pending, sum.Unresolved)
			}
		}
	}
}

// Code without spans stands, where files are listed, in the file that its line table or
// its module's other code has, or else under the module's name, which is no file's.
func TestCodeWithoutFile(t *testing.T) {
	const ms = 1_000_000
	l := logtest.New()
	a, b := l.File("src/A.hs", ""), l.File("src/B.hs", "")
	code := func(pkg, module, name string, lines ...eventlog.Line) logtest.Frame {
		return l.Code(l.Binding(pkg, module, name, 0), eventlog.QualityExact, eventlog.CategoryHaskell, lines...)
	}
	noted, split := l.Binding("main", "A", "noted", 0), l.Binding("main", "Split", "a", 0)
	inA := l.Block(noted, l.Span(a, 1, 1, 2, 2, noted))
	l.Block(split, l.Span(b, 10, 1, 12, 2, split)) // Split is the first in B, and in C
	l.Block(split, l.Span(l.File("src/C.hs", ""), 10, 1, 12, 2, split))
	for i, f := range []logtest.Frame{
		inA,
		code("main", "A", "$fShowT"),
		code("main", "Split", "made"),
		code("base", "GHC.List", "foldr", eventlog.Line{File: b, Line: 7}),
		code("containers-0.6.4.1", "Data.Map", "insert"),
		code("text-1.2", "", "x"),
		l.Code(l.Function("stg_ap_pp_fast", eventlog.CategorySTG), eventlog.QualityExact, eventlog.CategorySTG),
	} {
		l.Sample(uint64(i)*ms, 1<<i*ms, l.Stack(f))
	}
	p := load(t, l.End())
	got := map[string]string{}
	for _, r := range p.Select(profile.Filter{}).Hot(profile.LevelFile).Rows {
		got[r.Element.Name] = fmt.Sprintf("%s %d %q", r.Element.KindName(), r.ShareWeight/ms, r.Element.File)
	}
	want := map[string]string{
		"src/A.hs":         `file 3 "src/A.hs"`,
		"module Split":     `module 4 ""`,
		"src/B.hs":         `file 8 "src/B.hs"`,
		"module Data.Map":  `module 16 ""`,
		"package text-1.2": `package 32 ""`,
		"(STG)":            `category 64 ""`,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	// What has no file does not make one in the tree of files.
	for _, g := range p.Select(profile.Filter{}).Groups(profile.LevelFile, profile.LevelBinding) {
		if g.Element.Kind == profile.KindNoFile && len(g.Members) > 0 {
			t.Errorf("%s has members", g.Element.Name)
		}
	}
}
