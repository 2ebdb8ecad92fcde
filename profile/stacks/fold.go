package stacks

import (
	"cmp"
	"slices"
	"strings"

	"ccagent/profile"
)

// recurs returns an ancestor of a node that is a frame of the same function, if recursion
// is to be folded; else 0. It does not look at the direct caller.
func (b *builder) recurs(at int32, frame uint32) int32 {
	if !b.s.Filter.FoldRecursion || b.frames.List[frame].Kind == profile.KindCategory || b.nodes[at].frame == frame {
		return 0
	}
	for ; at > 0; at = b.nodes[at].parent {
		if b.nodes[at].frame == frame {
			return at
		}
	}
	return 0
}

// prune removes the nodes that folding left without samples.
func (b *builder) prune() {
	to := make([]int32, len(b.nodes))
	words := make(map[int32][2]uint64, len(b.words))
	kept := b.nodes[:0]
	for i := range b.nodes {
		n := b.nodes[i]
		if i > 0 && n.samples == 0 {
			continue
		}
		to[i] = int32(len(kept))
		if w, ok := b.words[int32(i)]; ok {
			words[to[i]] = w
		}
		if n.parent >= 0 {
			n.parent = to[n.parent]
		}
		kept = append(kept, n)
	}
	b.nodes, b.words, b.at = kept, words, moved(b.at, to)
}

// Folded calls yield for each stack with weight, root first, joined by semicolons as
// flame graph tools expect, in the order of their names.
func (t *Tree) Folded(yield func(stack string, weight uint64)) {
	type line struct {
		stack  string
		weight uint64
	}
	var lines []line
	var names []string
	for i := range t.Nodes {
		if t.Nodes[i].Self == 0 {
			continue
		}
		names = names[:0]
		for n := int32(i); n > 0; n = t.Nodes[n].Parent {
			names = append(names, foldedName(t.Nodes[n].Name))
		}
		if i == 0 {
			names = append(names, "(hidden)")
		}
		slices.Reverse(names)
		lines = append(lines, line{strings.Join(names, ";"), t.Nodes[i].Self})
	}
	slices.SortFunc(lines, func(a, b line) int { return cmp.Compare(a.stack, b.stack) })
	for _, l := range lines {
		yield(l.stack, l.weight)
	}
}

// foldedName replaces the characters of a name that separate frames or lines.
func foldedName(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ';':
			return ':'
		case r < ' ' || r == 0x7f:
			return '_'
		}
		return r
	}, s)
}
