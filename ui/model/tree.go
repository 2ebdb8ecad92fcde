package model

import (
	"ccagent/profile"
	"ccagent/profile/stacks"
)

// Function names a function of a call tree; the zero Function is none.
type Function struct{ Name, Module, Package string }

// Sandwich is what calls a function, and what it calls. Node 0 of both is the
// function; nil if no stack has it.
type Sandwich struct {
	Function         Function
	Callers, Callees *Tree
}

// leastInverted is the part of the samples below which the screen's inverted tree
// does not tell callers apart.
const leastInverted = 0.0001

func (e *Engine) callTree(sel *profile.Selection, base string, invert bool) *stacks.Tree {
	return e.trees.get(base, invert, func() *stacks.Tree {
		return stacks.TreeOf(sel, stacks.Options{Invert: invert, Least: leastInverted})
	})
}

// treePair keeps the latest call tree, each way round: they are large.
type treePair [2]struct {
	base string
	tree *stacks.Tree
}

func (p *treePair) get(base string, invert bool, make func() *stacks.Tree) *stacks.Tree {
	t := &p[0]
	if invert {
		t = &p[1]
	}
	if t.tree == nil || t.base != base {
		t.base, t.tree = base, make()
	}
	return t.tree
}

func (e *Engine) sandwich(sel *profile.Selection, base string, f Function) *Sandwich {
	out := &Sandwich{Function: f}
	t := e.callTree(sel, base, false)
	for i := range t.Nodes {
		if fr := t.Nodes[i].Frame; i > 0 && fr.Name == f.Name && fr.Module == f.Module && fr.Package == f.Package {
			callers, callees := t.Sandwich(fr)
			out.Callers, out.Callees = modelTree(sel, callers, true), modelTree(sel, callees, false)
			break
		}
	}
	return out
}

func modelTree(sel *profile.Selection, t *stacks.Tree, invert bool) *Tree {
	out := &Tree{Invert: invert, Nodes: make([]TreeNode, len(t.Nodes))}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		o := TreeNode{
			Name: n.Name, Parent: int(n.Parent), Kids: n.Children,
			Self: sel.Fraction(n.Self), Total: sel.Fraction(n.Total), Samples: n.Samples, Forced: sel.Fraction(n.Forced),
		}
		if f := n.Frame; f != nil {
			o.Path, o.Line, o.File, o.Symbol, o.Detail = f.File, int(f.Line), f.FileID, f.Symbol, f.Detail
			o.Category = f.Kind == profile.KindCategory
			o.Module, o.Package, o.Collapsed = f.Module, f.Package, f.Kind == profile.KindCollapsed
		}
		out.Nodes[i] = o
	}
	return out
}

// Function is the function that a node is of; the zero Function if it is of none.
func (n *TreeNode) Function() Function {
	if n.Category {
		return Function{}
	}
	return Function{n.Name, n.Module, n.Package}
}
