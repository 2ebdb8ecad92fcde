package centres

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/logtest"
)

// stackFigures are the rows of stacks as "top<…<bottom individual/inherited".
func stackFigures(c *Costs) string {
	var out []string
	for i := range c.Rows {
		var names []string
		for _, x := range c.Stack(i) {
			names = append(names, x.Name)
		}
		out = append(out, fmt.Sprintf("%s %d/%d", strings.Join(names, "<"), c.Rows[i].Individual, c.Rows[i].Inherited))
	}
	return strings.Join(out, "; ")
}

// Exact stacks are those that the samples carry, whatever their own stacks are;
// centres that are not chosen are subsumed.
func TestCarriedStacks(t *testing.T) {
	l := logtest.NewExact()
	f := l.Code(l.Binding("main", "Main", "f", 0), eventlog.QualityExact, eventlog.CategoryHaskell)
	node := l.Stack(f)
	l.CentreStack(1, 0, "MAIN")
	l.CentreSample(1, node, 4) // used before it is defined
	l.CentreStack(2, 1, "f")
	l.CentreStack(3, 2, "g")
	l.CentreStack(4, 3, "h")
	l.CentreStack(5, 1, "GC")
	l.CentreStack(6, 1, "h")
	l.CentreSample(10, node, 1)
	l.CentreSample(20, node, 2)
	l.CentreSample(40, 0, 3)
	l.CentreSample(80, node, 4)
	l.CentreSample(160, 0, 5)
	l.CentreSample(320, node, 6)
	l.CentreSample(640, node, 0)
	p := load(t, l.End())
	if !p.HasCostCentreStacks() || p.HasNotes() {
		t.Fatalf("stacks %v, notes %v", p.HasCostCentreStacks(), p.HasNotes())
	}
	if e := p.Exact; e.Centres != 5 || e.Stacks != 6 || e.Samples != 7 || e.Unknown != 1 || len(e.Problems) != 0 {
		t.Errorf("%+v", e)
	}
	for _, c := range []struct{ set, want string }{
		{"binding:*", "MAIN 10/631; Main.h<MAIN 320/320; GC<MAIN 160/160; Main.f<MAIN 20/141; Main.g<Main.f<MAIN 40/121; Main.h<Main.g<Main.f<MAIN 81/81"},
		{"Main.h,Main.f", "MAIN 10/471; Main.h<MAIN 320/320; Main.f<MAIN 60/141; Main.h<Main.f<MAIN 81/81"},
		{"Main.hs:30", "MAIN 350/471; Main.hs:30<MAIN 121/121"},
		{"module:Main", "MAIN 10/471; Main<MAIN 461/461"},
	} {
		got := stackFigures(Attribute(p.Select(profile.Filter{}), centres(t, p, strings.Split(c.set, ",")...), ModeExact))
		// What carries no stack, and collections where they are not chosen, stand alone.
		var rest []string
		for row := range strings.SplitSeq(got, "; ") {
			if !strings.HasPrefix(row, "(") {
				rest = append(rest, row)
			}
		}
		if strings.Join(rest, "; ") != c.want || !strings.Contains(got, "(unresolved) 640/640") || c.set != "binding:*" && !strings.Contains(got, "(GC) 160/160") {
			t.Errorf("%s:\n%s\nwant\n%s", c.set, got, c.want)
		}
	}
	// The same names are the same centres, in whatever mode: f's code is f's.
	lexical := Attribute(p.Select(profile.Filter{}), centres(t, p, "Main.f"), ModeLexical)
	if len(lexical.Centres.List) != 1 || lexical.ByCentre[0].Centre.Name != "Main.f" || lexical.ByCentre[0].Individual != 1+10+20+80+320+640 {
		t.Errorf("lexical: %+v", lexical.ByCentre)
	}
}

// Stacks that are damaged, or run in a circle, end where they do so; the samples
// are counted by why, and none of their weight is lost.
func TestDamagedExactStacks(t *testing.T) {
	p := load(t, logtest.DamagedExact())
	want := map[string]uint64{"implausible": 4, "untold": 3, "unreadable": 3, "too-deep": 1}
	if fmt.Sprint(p.Exact.Problems) != fmt.Sprint(want) || p.Exact.Samples != 1 || p.Exact.Unknown != 1 || p.Accounting.Redefined != 1 {
		t.Errorf("%+v, redefined %d; want problems %v", p.Exact, p.Accounting.Redefined, want)
	}
	c := Attribute(p.Select(profile.Filter{}), centres(t, p, "binding:*"), ModeExact)
	sum := uint64(0)
	for i := range c.Rows {
		sum += c.Rows[i].Individual
	}
	if sum != c.Total || c.Total != 1<<13-1 {
		t.Errorf("rows sum to %d of %d", sum, c.Total)
	}
	// What stands on something unknown is not put on MAIN.
	for _, r := range c.ByCentre {
		if want := uint64(1<<1 | 1<<6); r.Centre.Name == "MAIN" && r.Inherited != want {
			t.Errorf("MAIN inherits %d, want %d", r.Inherited, want)
		}
		if want := uint64(1<<13 - 1 - 1<<1 - 1<<6); r.Centre.Name == "(unresolved)" && r.Inherited != want {
			t.Errorf("(unresolved) inherits %d, want %d", r.Inherited, want)
		}
	}
}

// Whatever stacks a log defines, loading ends and every sample is in one row.
func TestRandomExactStacks(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 9))
		l := logtest.NewExact()
		n := 1 + rng.Uint32N(40)
		samples := uint64(0)
		for range 2 * n {
			switch rng.IntN(3) {
			case 0:
				l.CentreSample(1, 0, rng.Uint32N(n+2))
				samples++
			case 1:
				l.CentreStack(1+rng.Uint32N(n), rng.Uint32N(n+2), string(rune('a'+rng.IntN(6))))
			default:
				l.Write(1, &eventlog.CentreStack{ID: rng.Uint32N(n), Parent: rng.Uint32N(n), Centre: rng.Uint32N(8), Problem: eventlog.CentreProblem(rng.IntN(7))})
			}
		}
		p := load(t, l.End())
		counted := p.Exact.Samples + p.Exact.Unknown
		for _, k := range p.Exact.Problems {
			counted += k
		}
		if p.HasCostCentreStacks() && counted != samples {
			t.Fatalf("seed %d: %+v of %d samples", seed, p.Exact, samples)
		}
		c := Attribute(p.Select(profile.Filter{}), centres(t, p, "binding:*"), ModeExact)
		sum := uint64(0)
		for i := range c.Rows {
			sum += c.Rows[i].Individual
		}
		if sum != samples {
			t.Fatalf("seed %d: rows sum to %d of %d", seed, sum, samples)
		}
	}
}
