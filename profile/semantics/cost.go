package semantics

import (
	"fmt"
	"strings"
)

// Kind is a kind of abstract cost: Table I of Sansom & Peyton Jones, Table 1 of
// Brassel et al., and the cost terms of Wortmann & Duke §2.2.
type Kind uint8

const (
	Apply   Kind = iota // A
	Match               // C of the first two papers, E (case) of the third: a case expression
	Lookup              // V
	Update              // U
	Alloc               // H: one heap object
	Enter               // E: entry of an scc; it is counted and takes no time
	Unfold              // F: a flat function
	Choose              // N: a non-deterministic step
	BindVar             // B: a logical variable is bound
	EvalLam             // L of Wortmann & Duke
	EvalCon             // C of Wortmann & Duke
	LetEval             // T of Wortmann & Duke: a let expression
	kinds
)

var kindNames = [kinds]string{"A", "C", "V", "U", "H", "E", "F", "N", "B", "lam", "con", "let"}

func (k Kind) String() string { return kindNames[k] }

// Costs counts costs by kind.
type Costs [kinds]int

// Time is the sum of all costs except entry counts, which take no time.
func (c Costs) Time() int {
	sum := 0
	for k, n := range c {
		if Kind(k) != Enter {
			sum += n
		}
	}
	return sum
}

func (c Costs) String() string {
	var parts []string
	for k, n := range c {
		if n != 0 {
			parts = append(parts, fmt.Sprintf("%d%s", n, Kind(k)))
		}
	}
	return strings.Join(parts, " ")
}

// Attribution (θ) maps each bearer to its costs.
type Attribution[M comparable] map[M]Costs

func (a Attribution[M]) add(m M, k Kind, n int) {
	c := a[m]
	c[k] += n
	a[m] = c
}

// Total is the sum over all bearers.
func (a Attribution[M]) Total() Costs {
	var t Costs
	for _, c := range a {
		for k, n := range c {
			t[k] += n
		}
	}
	return t
}
