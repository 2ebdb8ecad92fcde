package centres

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/logtest"
)

func load(t *testing.T, log []byte) *profile.Profile {
	t.Helper()
	p, err := profile.Load(bytes.NewReader(log))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func centres(t *testing.T, p *profile.Profile, patterns ...string) *Found {
	t.Helper()
	var set Set
	for _, s := range patterns {
		pat, err := ParsePattern(s)
		if err != nil {
			t.Fatal(err)
		}
		set.Patterns = append(set.Patterns, pat)
	}
	return Find(p, set)
}

// inMs are a query's rows in samples of 1 ms: "individual/inherited forced".
func inMs(c *Costs) map[string][3]uint64 {
	out := make(map[string][3]uint64)
	for _, r := range c.ByCentre {
		out[r.Centre.Name] = [3]uint64{r.Individual / 1e6, r.Inherited / 1e6, r.Forced / 1e6}
	}
	return out
}

// NBody by hand: see logtest.NBody.
func TestCostCentres(t *testing.T) {
	p := load(t, logtest.NBody().End())
	s := p.Select(profile.Filter{})
	type want map[string][3]uint64 // individual, inherited, forced
	for _, c := range []struct {
		name     string
		patterns []string
		mode     Mode
		want     want
	}{
		{"nothing chosen", nil, ModeLexical, want{
			// The foreign code was called from Haskell, so was the kernel; in the
			// collector no Haskell stack is a caller.
			"MAIN": {88, 88, 40}, "(GC)": {10, 10, 0}, "(unresolved)": {2, 2, 0}}},
		{"one binding", []string{"Physics.pairwise"}, ModeLexical, want{
			// The worker's 40 and sin's 5, called from it.
			"Physics.pairwise": {45, 45, 0}, "MAIN": {43, 88, 0}, "(GC)": {10, 10, 0}, "(unresolved)": {2, 2, 0}}},
		{"nested", []string{"Physics.pairwise", "module:Physics"}, ModeLexical, want{
			"Physics.pairwise": {45, 45, 0}, "Physics": {38, 83, 0}, "MAIN": {5, 88, 0}, "(GC)": {10, 10, 0}, "(unresolved)": {2, 2, 0}}},
		{"library alone", []string{"package:base"}, ModeLexical, want{
			// foldl1 is a guess, its package is not.
			"base": {15, 15, 0}, "MAIN": {73, 88, 40}, "(GC)": {10, 10, 0}, "(unresolved)": {2, 2, 0}}},
		{"a guessed name is no centre", []string{"GHC.List.foldl1"}, ModeLexical, want{
			"MAIN": {88, 88, 40}, "(GC)": {10, 10, 0}, "(unresolved)": {2, 2, 0}}},
		{"presets", []string{"@bindings"}, ModeLexical, want{
			"Physics.pairwise": {45, 45, 0}, "Physics.step": {38, 83, 0}, "Main.main": {5, 88, 0},
			"MAIN": {0, 88, 0}, "(GC)": {10, 10, 0}, "(unresolved)": {2, 2, 0}}},
		{"modules", []string{"@modules"}, ModeLexical, want{
			"Physics": {73, 83, 0}, "GHC.Base": {10, 10, 0}, "GHC.List": {5, 5, 0}, "Main": {0, 88, 0},
			"MAIN": {0, 88, 0}, "(GC)": {10, 10, 0}, "(unresolved)": {2, 2, 0}}},
		{"lines", []string{"Physics.hs:7"}, ModeLexical, want{
			// fs's span, narrower than step's, in the worker's causes and in inFs.
			"src/Physics.hs:7": {48, 48, 0}, "MAIN": {40, 88, 0}, "(GC)": {10, 10, 0}, "(unresolved)": {2, 2, 0}}},
		{"named", []string{"phys=Physics.*"}, ModeLexical, want{
			"phys": {83, 83, 0}, "MAIN": {5, 88, 0}, "(GC)": {10, 10, 0}, "(unresolved)": {2, 2, 0}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cs := Attribute(s, centres(t, p, c.patterns...), c.mode)
			got := inMs(cs)
			for name, w := range c.want {
				if got[name] != w {
					t.Errorf("%s: %v, want %v", name, got[name], w)
				}
			}
			if len(got) != len(c.want) {
				t.Errorf("centres %v, want %v", got, c.want)
			}
		})
	}
}

// The thunk that step forces has no centre of its own if step alone is chosen.
func TestForced(t *testing.T) {
	p := load(t, logtest.NBody().End())
	c := Attribute(p.Select(profile.Filter{}), centres(t, p, "Main.main"), ModeLexical)
	if got := inMs(c)["Main.main"]; got != [3]uint64{88, 88, 40} {
		t.Errorf("main: %v", got)
	}
	// main's own code is at no leaf.
	if c.Own != 0 || c.Subsumed != 48e6 || c.Forced != 40e6 || c.Pseudo != 12e6 || c.Gap != 5e6 {
		t.Errorf("own %d, subsumed %d, forced %d, pseudo %d, gap %d", c.Own, c.Subsumed, c.Forced, c.Pseudo, c.Gap)
	}
}

// ModeStacks partitions a hand-made log's samples by cost-centre stack as computed by
// hand, and lists the arcs between centres.
func TestStacksMode(t *testing.T) {
	p := load(t, logtest.NBody().End())
	c := Attribute(p.Select(profile.Filter{}), centres(t, p, "@bindings"), ModeStacks)
	var got []string
	for i, r := range c.Rows {
		var names []string
		for _, x := range c.Stack(i) {
			names = append(names, x.Name)
		}
		got = append(got, fmt.Sprintf("%s %d %d", strings.Join(names, "<"), r.Individual/1e6, r.Inherited/1e6))
	}
	want := []string{
		"MAIN 0 88",
		"Main.main<MAIN 5 88",
		// pairwise is inlined in step: its code lies in both.
		"Physics.step<Main.main<MAIN 38 83",
		"Physics.pairwise<Physics.step<Main.main<MAIN 45 45",
		"(GC) 10 10",
		"(unresolved) 2 2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("stacks\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if best := c.Stack(c.MostExpensive()); best[0].Name != "Physics.pairwise" {
		t.Errorf("most expensive: %v", best[0])
	}
	arcs := c.Arcs()
	if len(arcs) != 3 || arcs[0].From.Name != "MAIN" || arcs[0].Weight != 88e6 || arcs[0].Stacks != 3 {
		t.Errorf("arcs %+v", arcs)
	}
}

// A CAF's evaluation is its own, whoever demands it, and known for one when its
// update frame has been marked like any other.
func TestCAF(t *testing.T) {
	l := logtest.New()
	main := l.Binding("main", "Main", "main", 0)
	primes := l.Binding("main", "Main", "primes", 0)
	sieve := l.Binding("main", "Main", "sieve", 0)
	bh := l.Function("stg_bh_upd_frame", eventlog.CategorySTG)
	marked := l.Function("stg_marked_upd_frame", eventlog.CategorySTG)
	code := func(b uint32) logtest.Frame { return l.Code(b, eventlog.QualityExact, eventlog.CategoryHaskell) }
	update := func(b uint32) logtest.Frame {
		return l.Code(b, eventlog.QualityExact, eventlog.CategorySTG).As(eventlog.FrameUpdate)
	}
	inMain, inPrimes, inSieve, fresh, old := code(main), code(primes), code(sieve), update(bh), update(marked)
	at := uint64(0)
	run := func(n uint64, frames ...logtest.Frame) {
		at += 1e6
		l.Sample(at, n*1e6, l.Stack(append([]logtest.Frame{inMain}, frames...)...))
	}
	run(10, fresh, inPrimes)
	run(20, old, inPrimes, inSieve) // the same, after a pause
	run(5, old, inSieve)            // a thunk that jumped to sieve
	run(3, fresh, inSieve)          // some CAF that jumped to it
	run(2, inSieve)
	p := load(t, l.End())
	got := inMs(Attribute(p.Select(profile.Filter{}), centres(t, p, "Main.main"), ModeLexical))
	want := map[string][3]uint64{"CAF:Main.primes": {30, 30, 0}, "CAF": {3, 3, 0}, "Main.main": {7, 7, 5}, "MAIN": {0, 7, 0}}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// naiveCentres attributes one sample by the definitions: its stack's centres,
// topmost first, what is below a forced frame marked.
func naiveCentres(s *profile.Selection, c *Found, scope scope, site columns.Site, leaf uint32) (items []string, forced []bool, own bool) {
	p := s.Profile
	cafs := c.cafs()
	var path []uint32 // leaf first
	for n := leaf; n != 0; n = p.Nodes.Parent[n] {
		if p.Nodes.Kind[n] == eventlog.FrameContext {
			break
		}
		path = append(path, n)
	}
	crossed, haskell, ended := false, false, false
	see := func(name string) {
		if !slices.Contains(items, name) {
			items, forced = append(items, name), append(forced, crossed)
		}
	}
	known := make([]int8, len(p.Places))
	for i, n := range path {
		k, place := p.Nodes.Kind[n], p.Nodes.Place[n]
		if ended {
			break
		}
		switch {
		case k == eventlog.FrameUpdate:
			// The code on it is the nearest frame leafwards that is code.
			j := i - 1
			for j >= 0 && columns.Structural(p.Nodes.Kind[path[j]]) && p.Nodes.Kind[path[j]] != eventlog.FrameUpdate {
				j--
			}
			caf := ""
			if j >= 0 && !columns.Structural(p.Nodes.Kind[path[j]]) && p.Nodes.Kind[path[j]] != eventlog.FrameSkipped {
				if o := p.Owner(p.Nodes.Place[path[j]]); cafs.code[o] {
					caf = "CAF:" + p.Symbols.Bindings[p.Symbols.Bindings[o].Source].QualifiedName()
				}
			}
			if caf == "" && cafs.boundary[place] {
				caf = "CAF"
			}
			if caf != "" {
				see(caf)
				ended = true
				break
			}
			crossed = true
		case k == eventlog.FrameSkipped, columns.Structural(k):
		default:
			cat := p.Locations[place].Category
			haskell = haskell || cat == eventlog.CategoryHaskell || cat == eventlog.CategorySTG
			if !s.Visible(place, known) {
				continue
			}
			for _, id := range c.enclosing(place, scope, nil) {
				see(c.List[id].Name)
				own = own || i == 0
			}
		}
	}
	if ended || len(items) > 0 || haskell && !columns.Incomplete(site.Stop) {
		if !ended {
			see("MAIN")
		}
		return items, forced, own
	}
	crossed = false // nobody is known to have forced it
	switch cat := p.LeafCategory(site); {
	case cat == eventlog.CategoryGC:
		see("(GC)")
	case cat == eventlog.CategoryKernel:
		see("(kernel)")
	case cat == eventlog.CategoryForeign:
		see("(foreign)")
	case cat == eventlog.CategoryUnresolved || haskell:
		see("(unresolved)")
	case cat == eventlog.CategoryRTS:
		see("(RTS)")
	default:
		see("(STG)")
	}
	return items, forced, own
}

// Whatever is chosen, samples are attributed as the definitions say, each once.
func TestCostCentresByDefinition(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 8))
		p := load(t, logtest.Random(rng))
		for _, f := range []profile.Filter{{}, profile.Filter{}.WithEvent(1), {Hide: []*regexp.Regexp{regexp.MustCompile(`f[0-2]$`)}}} {
			s := p.Select(f)
			for _, set := range [][]string{nil, {"@bindings"}, {"@modules", "M0.f1"}, {"M1.*", "package:base", "A.hs:3-9"}, {"x=*.f?", "B.hs", "A.hs:*"}} {
				c := centres(t, p, set...)
				for mode := range modes {
					checkByDefinition(t, s, c, mode, fmt.Sprint("seed ", seed, " set ", set, " mode ", mode, " filter ", f))
				}
			}
		}
	}
}

func checkByDefinition(t *testing.T, s *profile.Selection, c *Found, mode Mode, name string) {
	t.Helper()
	p := s.Profile
	scope := scopeLexical
	if mode == ModeEvaluation {
		scope = scopeProcedure
	}
	type row struct{ individual, inherited, forced, inheritedForced, samples uint64 }
	byCentre, byStack := map[string]row{}, map[string]uint64{}
	var own uint64
	for i := range p.Sites {
		if s.Count[i] == 0 {
			continue
		}
		leaf := p.Sites[i].Node
		if s.CountsBytes() && s.Leaf[i] != 0 {
			leaf = s.Leaf[i]
		}
		w := s.Weight[i]
		items, forced, mine := naiveCentres(s, c, scope, p.Sites[i], leaf)
		if mine {
			own += w
		}
		byStack[strings.Join(items, "<")] += w
		for j, x := range items {
			r := byCentre[x]
			r.inherited += w
			if forced[j] {
				r.inheritedForced += w
			}
			if j == 0 {
				r.individual += w
				r.samples += s.Count[i]
				if forced[j] {
					r.forced += w
				}
			}
			byCentre[x] = r
		}
	}
	got := Attribute(s, c, mode)
	gotCentre, gotStack := map[string]row{}, map[string]uint64{}
	sum := uint64(0)
	for _, r := range got.Rows {
		sum += r.Individual
	}
	for _, r := range got.ByCentre {
		gotCentre[r.Centre.Name] = row{r.Individual, r.Inherited, r.Forced, r.InheritedForced, r.Samples}
	}
	stacks := Attribute(s, c, ModeStacks)
	for i, r := range stacks.Rows {
		if !mode.Stacks() {
			break
		}
		var names []string
		for _, x := range stacks.Stack(i) {
			names = append(names, x.Name)
		}
		if r.Individual > 0 {
			gotStack[strings.Join(names, "<")] += r.Individual
		}
	}
	maps.DeleteFunc(byStack, func(_ string, w uint64) bool { return w == 0 })
	if sum != s.Total || got.Own+got.Subsumed+got.Forced+got.Pseudo != s.Total {
		t.Fatalf("%s: individuals sum to %d and ways to %d, of %d", name, sum, got.Own+got.Subsumed+got.Forced+got.Pseudo, s.Total)
	}
	if got.Own != own {
		t.Fatalf("%s: %d lies in a centre itself, want %d", name, got.Own, own)
	}
	if !maps.Equal(gotCentre, byCentre) {
		t.Fatalf("%s: centres\n%v\nby definition\n%v", name, gotCentre, byCentre)
	}
	if mode.Stacks() && !maps.Equal(gotStack, byStack) {
		t.Fatalf("%s: stacks\n%v\nby definition\n%v", name, gotStack, byStack)
	}
}

// To choose, drop and choose again on a log of a million samples.
func BenchmarkCostCentres(b *testing.B) {
	var buf bytes.Buffer
	if err := logtest.Generate(&buf, 1_000_000, 5000, 1); err != nil {
		b.Fatal(err)
	}
	p, err := profile.Load(&buf)
	if err != nil {
		b.Fatal(err)
	}
	s := p.Select(profile.Filter{})
	for _, set := range []string{"@bindings", "@modules", "M1.*"} {
		for mode := range modes {
			b.Run(set+"/"+mode.String(), func(b *testing.B) {
				cpu := cpuUsed()
				for b.Loop() {
					pat, err := ParsePattern(set)
					if err != nil {
						b.Fatal(err)
					}
					c := Find(p, Set{[]Pattern{pat}})
					if Attribute(s, c, mode).Total != s.Total {
						b.Fatal("lost weight")
					}
				}
				// Machines that are shared have little to say by their clocks.
				b.ReportMetric(float64((cpuUsed()-cpu).Milliseconds())/float64(b.N), "cpu-ms/op")
			})
		}
	}
}

// A session with centres: choose all bindings, drop the most expensive one, take it
// back, choose modules in their place. Each step is answered by itself.
func BenchmarkChooseDropChoose(b *testing.B) {
	var buf bytes.Buffer
	if err := logtest.Generate(&buf, 1_000_000, 5000, 1); err != nil {
		b.Fatal(err)
	}
	p, err := profile.Load(&buf)
	if err != nil {
		b.Fatal(err)
	}
	s := p.Select(profile.Filter{})
	choose := func(preset Preset) *Found { return Find(p, Set{[]Pattern{{Preset: preset}}}) }
	bindings := choose(PresetBindings)
	dropped := map[string]bool{Attribute(s, bindings, ModeStacks).ByCentre[1].Centre.Name: true}
	for _, step := range []struct {
		name    string
		centres func() *Found
	}{
		{"choose", func() *Found { return choose(PresetBindings) }},
		{"drop", func() *Found { return bindings.Without(dropped) }},
		{"back", func() *Found { return bindings.Without(nil) }},
		{"modules", func() *Found { return choose(PresetModules) }},
	} {
		for _, mode := range []Mode{ModeLexical, ModeStacks} {
			b.Run(step.name+"/"+mode.String(), func(b *testing.B) {
				cpu := cpuUsed()
				for b.Loop() {
					if Attribute(s, step.centres(), mode).Total != s.Total {
						b.Fatal("lost weight")
					}
				}
				b.ReportMetric(float64((cpuUsed()-cpu).Milliseconds())/float64(b.N), "cpu-ms/op")
			})
		}
	}
}

// The stacks that the RTS's time profiler writes are taken as they are, with its
// own MAIN at the bottom.
func TestExactStacks(t *testing.T) {
	r := logtest.NewRTS()
	r.Put(1, eventlog.NoCap, &eventlog.ProfBegin{TickNs: 1_000_000},
		&eventlog.CostCentre{Centre: 4, Label: "MAIN", Module: "MAIN", SrcLoc: "<built-in>"},
		&eventlog.CostCentre{Centre: 3, Label: "GC", Module: "GC", SrcLoc: "<built-in>"},
		&eventlog.CostCentre{Centre: 2, Label: "main", Module: "Main", SrcLoc: "T.hs:(11,1)-(19,21)"},
		&eventlog.CostCentre{Centre: 1, Label: "build", Module: "Main", SrcLoc: "T.hs:9:1-66"})
	for range 7 {
		r.Put(2, eventlog.NoCap, &eventlog.ProfSample{Stack: []uint32{1, 2, 4}})
	}
	r.Put(3, eventlog.NoCap, &eventlog.ProfSample{Stack: []uint32{2, 4}}, &eventlog.ProfSample{Stack: []uint32{3, 4}}, &eventlog.ProfSample{Stack: []uint32{4}})
	p := load(t, r.End())
	if !p.HasCostCentreStacks() || load(t, logtest.NBody().End()).HasCostCentreStacks() {
		t.Error("which logs have cost-centre stacks")
	}
	got := func(patterns ...string) map[string][3]uint64 {
		return inMs(Attribute(p.Select(profile.Filter{}), centres(t, p, patterns...), ModeExact))
	}
	if want := map[string][3]uint64{"MAIN": {1, 10, 0}, "Main.main": {1, 8, 0}, "Main.build": {7, 7, 0}, "GC": {1, 1, 0}}; !maps.Equal(got("binding:*"), want) {
		t.Errorf("%v, want %v", got("binding:*"), want)
	}
	// Deselected, build is subsumed by main.
	if want := map[string][3]uint64{"MAIN": {1, 10, 0}, "Main.main": {8, 8, 0}, "GC": {1, 1, 0}}; !maps.Equal(got("Main.main", "MAIN", "GC"), want) {
		t.Errorf("%v, want %v", got("Main.main", "MAIN", "GC"), want)
	}
}

func cpuUsed() time.Duration {
	var ru syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &ru); err != nil {
		return 0
	}
	return time.Duration(ru.Utime.Nano() + ru.Stime.Nano())
}
