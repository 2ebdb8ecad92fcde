package graph

import (
	"cmp"
	"slices"

	"ccagent/internal/ghc"
)

func isStack(k ghc.ClosureType) bool {
	return k == ghc.Stack || k == ghc.APStack || k == ghc.Continuation
}

// keep puts what is large into the result, with the types and roots that it refers to.
func (a *analysis) keep(r *Result, types []Type, tree []folded, paths []Path) {
	typeOf, rootOf := map[int]int{}, map[int]int{}
	keepType := func(k int) int {
		i, known := typeOf[k]
		if !known {
			i = len(r.Types)
			typeOf[k] = i
			r.Types = append(r.Types, types[k])
		}
		return i
	}
	keepRoot := func(k int) int {
		i, known := rootOf[k]
		if !known {
			i = len(r.Roots)
			rootOf[k] = i
			r.Roots = append(r.Roots, a.roots[k])
		}
		return i
	}
	byBytes := make([]int, 0, len(types))
	for k := range types {
		if types[k].Count > 0 {
			byBytes = append(byBytes, k)
		}
	}
	slices.SortFunc(byBytes, func(x, y int) int { return cmp.Or(cmp.Compare(types[y].Bytes, types[x].Bytes), cmp.Compare(x, y)) })
	for _, k := range byBytes[:min(len(byBytes), maxTypes)] {
		keepType(k)
	}
	for _, i := range a.largest(tree) {
		f := &tree[i]
		b := f.Branch
		b.Parent, b.Type, b.Root = tree[f.parent].Parent, -1, -1
		if f.root >= 0 {
			b.Root = keepRoot(int(f.root))
		}
		if i > 0 && (f.root < 0 || !a.roots[f.root].apart()) {
			b.Type = keepType(int(f.kind))
		}
		tree[i].Parent = len(r.Tree) // its new number, for those below it
		if i == 0 {
			b.Parent = 0
		}
		r.Tree = append(r.Tree, b)
	}
	for _, p := range paths {
		p.Type, p.Root = keepType(p.Type), keepRoot(p.Root)
		for i := range p.Steps {
			p.Steps[i].Type = keepType(p.Steps[i].Type)
		}
		r.Paths = append(r.Paths, p)
	}
}

// largest chooses the branches that have most, each with all above it, in the order of the tree.
func (a *analysis) largest(tree []folded) []int {
	least := tree[0].Retained / leastPart
	var large []int
	for i := range tree {
		if i == 0 || tree[i].Retained >= max(least, 1) {
			large = append(large, i)
		}
	}
	if len(large) > maxBranches {
		// A branch has no more than the one above it, and comes after it.
		slices.SortStableFunc(large, func(x, y int) int {
			return cmp.Or(cmp.Compare(tree[y].Retained, tree[x].Retained), cmp.Compare(x, y))
		})
		large = large[:maxBranches]
		slices.Sort(large)
	}
	return large
}
