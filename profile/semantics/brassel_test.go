package semantics

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"strings"
	"testing"
)

// lenProgram is the program of Brassel et al. §3. Numbers are Z and S n, as in the
// paper's measurements; a function that counts down builds the list.
const lenProgram = `
len(x) = fcase x of { Nil -> Z; Cons y ys -> let w = len(ys) in S w };
len2s(x) = fcase x of { Nil -> Z; Cons y ys -> fcase ys of { Nil -> let o = Z in S o;
	Cons z zs -> let v = len2s(zs), w = S v in S w } };
add(n, m) = fcase n of { Z -> m; S k -> let r = add(k, m) in S r };
upto(n) = fcase n of { Z -> Nil; S k -> let r = upto(k) in Cons n r };
deep(n) = fcase n of { Z -> Z; S k -> deep(k) };
main() = let list = scc "list" upto(elements), a = scc "len" len(list), b = scc "len2s" len2s(list), s = add(a, b) in s;
`

// The symbolic costs of len and len2s on 5000 elements are those of the table in §3. The
// paper rounds its figures up to hundreds: 5001 unfoldings are 5100, 2501 are 2600.
func TestLenTable(t *testing.T) {
	src := strings.Replace(lenProgram, "main() = let ", "main() = let "+number("elements", 5000), 1)
	p := parse(t, src)
	m := New(p, Lexical{})
	m.Fuel = 1 << 22
	v, _, err := m.Run()
	for err == nil && v.Tag == "S" { // evaluate main's number completely
		v, _, err = m.Force("print", v.Args[0])
	}
	if err != nil {
		t.Fatal(err)
	}
	exact := map[string]Costs{
		"len":   {Match: 5001, Lookup: 5001, Unfold: 5001, Alloc: 5000, Enter: 1},
		"len2s": {Match: 5001, Lookup: 5001, Unfold: 2501, Alloc: 5000, Enter: 1},
	}
	paper := map[string]Costs{
		"len":   {Match: 5100, Lookup: 5100, Unfold: 5100},
		"len2s": {Match: 5100, Lookup: 5100, Unfold: 2600},
	}
	for cc, want := range exact {
		got := m.Costs[cc]
		for _, k := range []Kind{Match, Lookup, Unfold, Alloc, Enter} {
			if got[k] != want[k] {
				t.Errorf("%s: %d %v, want %d", cc, got[k], k, want[k])
			}
		}
		for k, want := range paper[cc] {
			if up := (got[k] + 99) / 100 * 100; want != 0 && up != want {
				t.Errorf("%s: %d %v is %d in hundreds, %d in the paper", cc, got[k], Kind(k), up, want)
			}
		}
	}
	// main adds the lengths, with a function call for each element of the first list.
	if got := m.Costs[MainCC]; (got[Match]+99)/100*100 != 5100 || (got[Lookup]+99)/100*100 != 5100 {
		t.Errorf("main: %v", got)
	}
	if m.Costs["list"][Unfold] != 5001 {
		t.Errorf("list: %v", m.Costs["list"])
	}
}

// number returns the source of a binding of a variable to n.
func number(name string, n int) string {
	var b strings.Builder
	b.WriteString("n0 = Z, ")
	for i := range n {
		last := fmt.Sprintf("n%d", i+1)
		if i == n-1 {
			last = name
		}
		fmt.Fprintf(&b, "%s = S n%d, ", last, i)
	}
	return b.String()
}

// outcomes runs a program with every sequence of choices, up to a number of derivations.
func outcomes(p *Program, most int, each func(choices []int, m *Machine[string], v Value, err error)) {
	queue := [][]int{nil}
	for range most {
		if len(queue) == 0 {
			return
		}
		script := queue[0]
		queue = queue[1:]
		m := New(p, Lexical{})
		m.Fuel = 20000
		var made []int
		m.Choose = func(n int) int {
			c := 0
			if len(made) < len(script) {
				c = script[len(made)]
			} else {
				for i := 1; i < n; i++ {
					queue = append(queue, append(append([]int{}, made...), i))
				}
			}
			made = append(made, c)
			return c
		}
		v, _, err := m.Run()
		each(made, m, v, err)
	}
}

// An instrumented program, run without cost semantics, counts the costs that the cost
// semantics attributes, in every derivation (Theorem 1).
//
// The printed theorem needs two conditions. The transformation counts a V for every
// variable, but the rule Val charges none for an unbound variable; so only a flexible
// case may evaluate an unbound variable. And update matches only constructors.
func TestInstrumentedCosts(t *testing.T) {
	compared, outside, choices := 0, 0, 0
	for seed := range uint64(400) {
		p := Generate(rand.New(rand.NewPCG(seed, 1)), FlatLogic)
		in, err := Instrument(p)
		if err != nil {
			t.Fatal(err)
		}
		outcomes(p, 20, func(made []int, m *Machine[string], v Value, err error) {
			if m.BareFree > 0 || errors.Is(err, ErrFuel) {
				outside++
				return
			}
			q := New(in, Lexical{})
			q.Choose = func(int) int {
				if len(made) == 0 {
					return 0
				}
				c := made[0]
				made = made[1:]
				return c
			}
			choices += len(made)
			w, _, err2 := q.Run()
			if err != nil {
				if err2 == nil {
					t.Fatalf("seed %d: a failing derivation (%v) succeeds when instrumented", seed, err)
				}
				return
			}
			if err2 != nil || w.Tag != v.Tag {
				t.Fatalf("seed %d: instrumented gives %v %v, want %v", seed, w.Tag, err2, v.Tag)
			}
			if got, want := clean(q.Ticks), clean(m.Costs); !maps.Equal(got, want) {
				t.Fatalf("seed %d: instrumented counts\n%v, the semantics\n%v", seed, got, want)
			}
			compared++
		})
	}
	if compared < 1000 || choices < 1000 || outside > compared {
		t.Errorf("compared %d derivations with %d choices; %d were outside the theorem", compared, choices, outside)
	}
}

func clean(a map[string]Costs) map[string]Costs {
	out := make(map[string]Costs)
	for cc, c := range a {
		if c != (Costs{}) {
			out[cc] = c
		}
	}
	return out
}

// A flexible case counts the lookup of a logical variable once. The printed
// transformation would count it twice: once by V_cc and once within ⟦x⟧.
func TestGuess(t *testing.T) {
	p := parse(t, `main() = let x = x in scc "cc" fcase x of { S y -> Z };`)
	m := New(p, Lexical{})
	if _, _, err := m.Run(); err != nil {
		t.Fatal(err)
	}
	// V, U, B, one H for y; no C, and no N because there is only one branch.
	if got := m.Costs["cc"]; got != (Costs{Lookup: 1, Update: 1, BindVar: 1, Alloc: 1, Enter: 1}) {
		t.Errorf("guess costs %v", got)
	}
	p = parse(t, `main() = let x = x in scc "cc" fcase x of { S y -> Z; Z -> Z };`)
	m = New(p, Lexical{})
	if _, _, err := m.Run(); err != nil || m.Costs["cc"][Choose] != 1 {
		t.Errorf("guess of two: %v %v", m.Costs["cc"], err)
	}
	p = parse(t, `main() = let x = x in case x of { Z -> Z };`)
	if _, _, err := New(p, Lexical{}).Run(); !errors.Is(err, ErrSuspend) {
		t.Errorf("rigid case on a logical variable: %v", err)
	}
}
