package semantics

import "slices"

// Stack identifies a cost-centre stack by its code in a [Table].
type Stack int

// Table is the cost-centre-stack table of Morgan & Jarvis §2.4. Each entry is a centre
// on top of another stack, whose index leads to it.
type Table struct {
	top   []string
	back  []Stack // the stack without its top
	index []map[string]Stack
	// Plain keeps every instance of a centre on a stack; compressed stacks keep only
	// the topmost.
	Plain bool
}

// NewTable returns a table with a stack of one entry for each of the given centres. The
// first has code 1.
func NewTable(bases ...string) *Table {
	t := &Table{top: []string{""}, back: []Stack{0}, index: []map[string]Stack{nil}}
	for _, cc := range bases {
		t.entry(cc, 0)
	}
	return t
}

func (t *Table) entry(cc string, back Stack) Stack {
	t.top = append(t.top, cc)
	t.back = append(t.back, back)
	t.index = append(t.index, make(map[string]Stack))
	return Stack(len(t.top) - 1)
}

// Len is the number of entries.
func (t *Table) Len() int { return len(t.top) - 1 }

// Push returns a stack with a centre on top of it, by the three cases of §2.4.2.
func (t *Table) Push(cc string, on Stack) Stack {
	if s, ok := t.index[on][cc]; ok { // 1: pushed here before
		return s
	}
	if t.Plain {
		return t.link(cc, on)
	}
	var above []string // centres above the earlier instance, topmost first
	for s := on; s != 0; s = t.back[s] {
		if t.top[s] != cc {
			above = append(above, t.top[s])
			continue
		}
		if len(above) == 0 { // direct recursion
			return s
		}
		// 3: the stack without the earlier instance, with entries added where missing.
		at := t.back[s]
		for _, c := range slices.Backward(above) {
			at = t.on(c, at)
		}
		at = t.on(cc, at)
		t.index[on][cc] = at
		return at
	}
	return t.link(cc, on) // 2: nowhere on the stack
}

// on returns a stack with a centre on top that is not on the stack yet. The bottom of
// all stacks has no index of its own.
func (t *Table) on(cc string, at Stack) Stack {
	if at == 0 {
		for s := 1; s < len(t.top); s++ {
			if t.back[s] == 0 && t.top[s] == cc {
				return Stack(s)
			}
		}
		return t.entry(cc, 0)
	}
	if s, ok := t.index[at][cc]; ok {
		return s
	}
	return t.link(cc, at)
}

func (t *Table) link(cc string, on Stack) Stack {
	s := t.entry(cc, on)
	t.index[on][cc] = s
	return s
}

// Centres returns a stack's centres, topmost first.
func (t *Table) Centres(s Stack) []string {
	var out []string
	for ; s != 0; s = t.back[s] {
		out = append(out, t.top[s])
	}
	return out
}

// Top returns a stack's top, which is the current centre.
func (t *Table) Top(s Stack) string { return t.top[s] }

// Stacks is the cost semantics of Morgan & Jarvis: [Lexical] with stacks in place of
// centres and the rule SCC′ in place of SCC.
type Stacks struct {
	scoped[Stack]
	Table *Table
	// Rules are the rules for single centres, which hold except for SCC.
	Rules Lexical

	bases map[string]Stack
}

var _ Semantics[Stack] = (*Stacks)(nil)

// NewStacks returns the semantics with a new table, in which <MAIN> has code 1.
func NewStacks(rules Lexical) *Stacks {
	s := &Stacks{Table: NewTable(MainCC), Rules: rules, bases: map[string]Stack{MainCC: 1}}
	return s
}

func (s *Stacks) base(cc string) Stack {
	b, ok := s.bases[cc]
	if !ok {
		b = s.Table.entry(cc, 0)
		s.bases[cc] = b
	}
	return b
}

// Main implements Semantics.
func (s *Stacks) Main() Stack { return s.base(MainCC) }

// Global implements Semantics.
func (s *Stacks) Global(b *Bind) Stack { return s.base(s.Rules.Global(b)) }

// Scope is SCC′.
func (s *Stacks) Scope(cur, own Stack, cc string) (Stack, Stack) { return s.Table.Push(cc, cur), own }

// whole returns the centre of a stack with one entry, and "" for a longer stack. Only
// a stack with one entry can be subsumed or belong to a CAF.
func (s *Stacks) whole(x Stack) string {
	if s.Table.back[x] == 0 {
		return s.Table.top[x]
	}
	return ""
}

func (s *Stacks) subsume(cur, x Stack, lambda bool) Stack {
	if w := s.whole(x); w != "" && s.Rules.subsume("", w, lambda) == "" {
		return cur
	}
	return x
}

// Thunk implements Semantics.
func (s *Stacks) Thunk(cur, _, bound Stack) Stack {
	if s.Rules.CAF == CAFFirst && isCAF(s.whole(bound)) {
		return cur
	}
	return bound
}

// Found implements Semantics.
func (s *Stacks) Found(cur, _, bound Stack, lambda bool) Stack { return s.subsume(cur, bound, lambda) }

// Updated implements Semantics.
func (s *Stacks) Updated(cur, _, value Stack, lambda bool) Stack {
	return s.subsume(cur, value, lambda)
}

// Body implements Semantics.
func (s *Stacks) Body(cur, _, lam Stack) Stack {
	if s.Rules.Evaluation {
		return cur
	}
	return lam
}

// Post is the post-processor of Morgan & Jarvis §2.3: it computes individual and
// inherited costs by centre from costs by stack. split returns a stack's centres,
// topmost first. If selected is nil, all centres are selected.
func Post[C int | float64](costs map[string]C, split func(string) []string, selected func(cc string) bool) (individual, inherited map[string]C) {
	individual, inherited = make(map[string]C), make(map[string]C)
	for key, c := range costs {
		first := true
		seen := make(map[string]bool)
		for _, cc := range split(key) {
			if selected != nil && !selected(cc) {
				continue
			}
			if first {
				individual[cc] += c
				first = false
			}
			if !seen[cc] {
				inherited[cc] += c
				seen[cc] = true
			}
		}
	}
	return individual, inherited
}
