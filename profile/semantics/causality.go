package semantics

import (
	"math/bits"
	"slices"
)

// Causes is a set of causes: the conjunction that an annotation stands for. It is a
// bit set held in a string, so that sets can be compared by ==.
type Causes string

func (a Causes) union(b Causes) Causes {
	if len(a) < len(b) {
		a, b = b, a
	}
	if len(b) == 0 {
		return a
	}
	out := []byte(a)
	for i := range len(b) {
		out[i] |= b[i]
	}
	return Causes(out)
}

// Within reports whether all of a's causes are among b's.
func (a Causes) Within(b Causes) bool { return b.union(a) == b }

// Causality is the cost semantics of Wortmann & Duke: each cost is annotated with
// everything without which it would not have arisen. cur is the annotation that
// enclosing rules have added, own that of the control expression itself. A cost with
// several causes is counted once, under the set of them.
type Causality struct{ names []string }

var _ Semantics[Causes] = (*Causality)(nil)

// Cause returns the set with one cause.
func (c *Causality) Cause(name string) Causes {
	i := slices.Index(c.names, name)
	if i < 0 {
		i = len(c.names)
		c.names = append(c.names, name)
	}
	b := make([]byte, i/8+1)
	b[i/8] = 1 << (i % 8)
	return Causes(b)
}

// Names lists a set's causes.
func (c *Causality) Names(s Causes) []string {
	var out []string
	for i := range len(s) {
		for b := s[i]; b != 0; b &= b - 1 {
			out = append(out, c.names[8*i+bits.TrailingZeros8(b)])
		}
	}
	slices.Sort(out)
	return out
}

// Main implements Semantics.
func (*Causality) Main() Causes { return "" }

// Global adds nothing: a global that is a value has only the causes written on it.
func (c *Causality) Global(*Bind) Causes { return "" }

// Scope adds the cause cc to the expression's own annotation.
func (c *Causality) Scope(cur, own Causes, cc string) (Causes, Causes) {
	return cur, own.union(c.Cause(cc))
}

// Join implements Semantics.
func (*Causality) Join(a, b Causes) Causes { return a.union(b) }

// Operand is βθ₂ of the rules App and Case.
func (*Causality) Operand(cur, own Causes) Causes { return cur.union(own) }

// Value keeps a value's own annotation and adds nothing from the enclosing rules.
func (*Causality) Value(_, own Causes) Causes { return own }

// Heap implements Semantics.
func (*Causality) Heap(_, own Causes, value bool) Causes {
	if value {
		return own
	}
	return ""
}

// Found implements Semantics.
func (*Causality) Found(_, own, bound Causes, _ bool) Causes { return own.union(bound) }

// Thunk is βθ of the rule Var.
func (*Causality) Thunk(cur, own, _ Causes) Causes { return cur.union(own) }

// Updated implements Semantics.
func (*Causality) Updated(_, own, value Causes, _ bool) Causes { return own.union(value) }

// Body is βδθ₃ of the rule App.
func (*Causality) Body(cur, own, lam Causes) Causes { return cur.union(own).union(lam) }

// Branch is βδθ₃ of the rule Case, and θ₃ of Case′.
func (*Causality) Branch(cur, own, value Causes, sole bool) Causes {
	if sole {
		return cur
	}
	return cur.union(own).union(value)
}

// Added implements Semantics.
func (*Causality) Added(own, operand Causes, sole bool) Causes {
	if sole {
		return ""
	}
	return own.union(operand)
}

// Carried implements Semantics.
func (*Causality) Carried(own, operand Causes, sole bool) Causes {
	if !sole {
		return ""
	}
	return own.union(operand)
}

// Bearer implements Semantics.
func (*Causality) Bearer(k Kind, cur, own, _ Causes) (Causes, bool) {
	switch k {
	case EvalLam, EvalCon, Apply, Lookup, LetEval, Match:
		return cur.union(own), true
	}
	return "", false
}
