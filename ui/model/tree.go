package model

import "ccagent/profile"

func callTree(sel *profile.Selection, invert bool) *Tree {
	t := sel.Tree(profile.TreeOptions{Invert: invert})
	out := &Tree{Invert: invert, Nodes: make([]TreeNode, len(t.Nodes))}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		o := TreeNode{
			Name: n.Name, Parent: int(n.Parent), Kids: n.Children,
			Self: sel.Fraction(n.Self), Total: sel.Fraction(n.Total), Samples: n.Samples,
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
