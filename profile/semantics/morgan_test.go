package semantics

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// byStack returns the costs by stack; a stack's centres are written topmost first.
func byStack(m *Machine[Stack], tab *Table) map[string]int {
	out := make(map[string]int)
	for s, c := range m.Costs {
		out[strings.Join(tab.Centres(s), ",")] += c.Time()
	}
	return out
}

func byComma(s string) []string { return strings.Split(s, ",") }

// The program scc "times" 2 * 46 * (scc "plus" 4 + 8) has the stacks of §2.2.
func TestStacksExample(t *testing.T) {
	sem := NewStacks(Lexical{})
	m, _ := run(t, `add n m = case n of { Z -> m; S k -> S (add k m) };
		mul n m = case n of { Z -> Z; S k -> add m (mul k m) };
		main = scc "times" (mul (S (S Z)) (scc "plus" (add (S Z) (S Z))));`, sem)
	got := byStack(m, sem.Table)
	for _, want := range []string{"times,CAF", "plus,times,CAF"} {
		if got[want] == 0 {
			t.Errorf("no costs of <%s>: %v", want, got)
		}
	}
	// No stacks other than these two, <MAIN> and <SUB>.
	if len(got) > 4 {
		t.Errorf("stacks %v", got)
	}
}

// The post-processor selects and inherits costs by the arithmetic of §2.3.
func TestPostProcessor(t *testing.T) {
	not := func(out string) func(string) bool { return func(cc string) bool { return cc != out } }
	theta := map[string]int{"b,a": 10, "a": 20, "c,a": 10, "c,b,a": 50}
	for _, c := range []struct {
		costs                 map[string]int
		selected              func(string) bool
		individual, inherited map[string]int
	}{
		{theta, nil, map[string]int{"a": 20, "b": 10, "c": 60}, map[string]int{"a": 90, "b": 60, "c": 60}},
		{theta, not("b"), map[string]int{"a": 30, "c": 60}, map[string]int{"a": 90, "c": 60}},
		// §2.4.1: compressed and uncompressed stacks.
		{map[string]int{"a": 3, "b,a": 7, "a,b": 1}, nil, map[string]int{"a": 4, "b": 7}, map[string]int{"a": 11, "b": 8}},
		{map[string]int{"a": 3, "b,a": 7, "a,b,a": 1}, nil, map[string]int{"a": 4, "b": 7}, map[string]int{"a": 11, "b": 8}},
	} {
		ind, inh := Post(c.costs, byComma, c.selected)
		if !maps.Equal(ind, c.individual) || !maps.Equal(inh, c.inherited) {
			t.Errorf("of %v: individual %v, inherited %v", c.costs, ind, inh)
		}
	}
}

// Push returns the stacks of the three cases of §2.4.2, on the paper's tables.
func TestPush(t *testing.T) {
	text := func(tab *Table, s Stack) string { return strings.Join(tab.Centres(s), ",") }
	// MAIN1 ⇄ A2 ⇄ B3, A2 ⇄ C4.
	drawn := func() *Table {
		tab := NewTable(MainCC)
		for i, p := range []struct {
			cc string
			on Stack
		}{{"A", 1}, {"B", 2}, {"C", 2}} {
			if s := tab.Push(p.cc, p.on); s != Stack(i+2) {
				t.Fatalf("push %s on %d gives %d", p.cc, p.on, s)
			}
		}
		return tab
	}
	check := func(name string, tab *Table, cc string, on, want Stack, stack string) {
		t.Helper()
		if got := tab.Push(cc, on); got != want || text(tab, got) != stack {
			t.Errorf("%s: push %s on %d gives %d <%s>, want %d <%s>", name, cc, on, got, text(tab, got), want, stack)
		}
	}
	check("case 1", drawn(), "B", 2, 3, "B,A,MAIN")
	tab := drawn()
	check("case 2", tab, "C", 3, 5, "C,B,A,MAIN")
	// Its back pointer leads to 4, not 5.
	check("case 3, first subcase", tab, "B", 5, 6, "B,C,A,MAIN")
	if tab.back[6] != 4 {
		t.Errorf("first subcase: back pointer to %d", tab.back[6])
	}
	// MAIN1 ⇄ A2 ⇄ B3 ⇄ C4: an intermediate stack 5 is built.
	tab = NewTable(MainCC)
	tab.Push("C", tab.Push("B", tab.Push("A", 1)))
	check("case 3, second subcase", tab, "B", 4, 6, "B,C,A,MAIN")
	if got := text(tab, 5); got != "C,A,MAIN" {
		t.Errorf("second subcase: intermediate stack <%s>", got)
	}
	check("case 3, third subcase", tab, "C", 6, 4, "C,B,A,MAIN")
	if tab.Len() != 6 {
		t.Errorf("%d stacks", tab.Len())
	}
	check("again", tab, "B", 4, 6, "B,C,A,MAIN")
	check("direct recursion", tab, "C", 4, 4, "C,B,A,MAIN")

	// §2.5, Fig. 3: D calls A, which is on the stack below B.
	tab = NewTable(MainCC)
	tab.Push("D", tab.Push("B", tab.Push("A", 1)))
	before := tab.Push("D", tab.Push("B", 1))
	if s := tab.Push("A", tab.Push("D", tab.Push("B", tab.Push("A", 1)))); tab.back[s] != before {
		t.Errorf("Fig. 3: <%s> stands on %d, want %d", text(tab, s), tab.back[s], before)
	}
}

// reverse is the program of §3.1, on lists of units. The lengths are shorter, because
// reversing the paper's 100 and 1100 elements takes too long here.
const reverse = `
append xs ys = case xs of { Nil -> ys; Cons z zs -> Cons z (append zs ys) };
rev xs = scc "rev" case xs of { Nil -> Nil; Cons y ys -> append (rev ys) (Cons y Nil) };
upto n = case n of { Z -> Nil; S k -> Cons n (upto k) };
len xs = case xs of { Nil -> Z; Cons y ys -> S (len ys) };
deep n = case n of { Z -> Z; S k -> deep k };
main = scc "main" deep (len a);
a = scc "a" append (b short) (c short);
b x = scc "b" append (d x) (e x);
c x = scc "c" f x;
d x = scc "d" g (Cons x x);
e x = scc "e" g x;
f x = scc "f" append (h x) (i x);
g x = scc "g" append (j (upto five)) (rev (rev (rev (upto five))));
h x = scc "h" j (upto twenty);
i x = scc "i" rev (rev (rev (rev (upto five))));
j l = scc "j" rev (rev (rev (rev (rev (rev l)))));
short = Nil;
five = S (S (S (S (S Z))));
ten = add five five;
twenty = add ten ten;
add n m = case n of { Z -> m; S k -> S (add k m) };
`

// The example program has the stacks of Fig. 7 (§3.1), with the same one as the most
// expensive. One stack of the paper, from main down, is two here: a is a CAF, and its
// costs begin a new stack.
func TestReverseExample(t *testing.T) {
	sem := NewStacks(Lexical{CAF: CAFSubsumed, NamedCAFs: true})
	p := parse(t, reverse)
	m := New(p, sem)
	m.Fuel = 1 << 24
	if _, _, err := m.Run(); err != nil {
		t.Fatal(err)
	}
	got := byStack(m, sem.Table)
	fig7 := []string{
		"rev,j,h,f,c,a", "j,h,f,c,a", "f,c,a", "j,g,e,b,a", "rev,j,g,e,b,a", "g,e,b,a", "rev,g,e,b,a", "a", "b,a",
		"i,f,c,a", "rev,i,f,c,a", "c,a", "g,d,b,a", "rev,g,d,b,a", "j,g,d,b,a", "rev,j,g,d,b,a", "d,b,a", "e,b,a", "h,f,c,a",
	}
	var ours []string
	best, most := "", 0
	for s, c := range got {
		if c > most {
			best, most = s, c
		}
		if s, ok := strings.CutSuffix(s, ",CAF:a"); ok {
			ours = append(ours, s)
		}
	}
	slices.Sort(fig7)
	slices.Sort(ours)
	if !slices.Equal(ours, fig7) {
		t.Errorf("stacks\n%q\nwant those of Fig. 7\n%q", ours, fig7)
	}
	if best != "rev,j,h,f,c,a,CAF:a" {
		t.Errorf("most expensive is <%s>", best)
	}
	// Fig. 9: inherited costs follow the call graph of Fig. 4.
	_, inh := Post(got, byComma, nil)
	for _, c := range []struct{ whole, a, b string }{{"a", "b", "c"}, {"b", "d", "e"}, {"f", "h", "i"}} {
		if own := got[c.whole+",CAF:a"]; inh[c.whole] < inh[c.a]+inh[c.b] || own > inh[c.whole] {
			t.Errorf("inherited: %s %d, %s %d, %s %d", c.whole, inh[c.whole], c.a, inh[c.a], c.b, inh[c.b])
		}
	}
}

// The post-processor computes the figures of Fig. 9 from the paper's ticks (Fig. 6 and 7).
func TestFig9(t *testing.T) {
	ticks := map[string]int{
		"rev,j,h,f,c,a,main": 1181, "rev,j,g,e,b,a,main": 16, "rev,g,e,b,a,main": 10,
		"rev,i,f,c,a,main": 7, "rev,g,d,b,a,main": 11, "rev,j,g,d,b,a,main": 12,
	}
	ind, inh := Post(ticks, byComma, nil)
	if want := map[string]int{"rev": 1237}; !maps.Equal(ind, want) {
		t.Errorf("individual %v", ind)
	}
	want := map[string]int{"main": 1237, "a": 1237, "b": 49, "c": 1188, "d": 23, "e": 26, "f": 1188, "g": 49, "h": 1181, "i": 7, "j": 1209, "rev": 1237}
	if !maps.Equal(inh, want) {
		t.Errorf("inherited %v, want %v", inh, want)
	}
}

// The top of the current stack is the current centre. Selection only affects inherited
// costs, so compressing stacks changes nothing.
func TestStacksRefineCentres(t *testing.T) {
	for _, rules := range []Lexical{{}, {CAF: CAFSubsumed}, {Evaluation: true}} {
		programs(t, HigherOrder, 200, func(seed uint64, p *Program) {
			lex := New(p, rules)
			if _, _, err := lex.Run(); err != nil {
				t.Fatal(err)
			}
			sem := NewStacks(rules)
			st := New(p, sem)
			if _, _, err := st.Run(); err != nil {
				t.Fatal(err)
			}
			tops := make(Attribution[string])
			for s, c := range st.Costs {
				for k, n := range c {
					if n != 0 {
						tops.add(sem.Table.Top(s), Kind(k), n)
					}
				}
			}
			if !maps.Equal(tops, lex.Costs) {
				t.Fatalf("seed %d: tops of stacks bear\n%v, centres\n%v", seed, tops, lex.Costs)
			}
			plain := NewStacks(rules)
			plain.Table.Plain = true
			pm := New(p, plain)
			if _, _, err := pm.Run(); err != nil {
				t.Fatal(err)
			}
			for _, sel := range []func(string) bool{nil, func(cc string) bool { return cc != "a" && cc != "c" }} {
				i1, h1 := Post(byStack(st, sem.Table), byComma, sel)
				i2, h2 := Post(byStack(pm, plain.Table), byComma, sel)
				if sel == nil && !maps.Equal(i1, i2) || !maps.Equal(h1, h2) {
					t.Fatalf("seed %d: compressed\n%v %v\nplain\n%v %v", seed, i1, h1, i2, h2)
				}
				for _, s := range sem.Table.all() {
					if seen := sem.Table.Centres(s); len(seen) != len(unique(seen)) {
						t.Fatalf("seed %d: compressed stack %v", seed, seen)
					}
				}
			}
		})
	}
}

func (t *Table) all() []Stack {
	var out []Stack
	for s := 1; s < len(t.top); s++ {
		out = append(out, Stack(s))
	}
	return out
}

func unique(s []string) []string { return slices.Compact(slices.Sorted(slices.Values(s))) }

func ExampleTable() {
	tab := NewTable(MainCC)
	s := tab.Push("C", tab.Push("B", tab.Push("A", 1)))
	fmt.Println(tab.Centres(tab.Push("B", s)))
	// Output: [B C A MAIN]
}
