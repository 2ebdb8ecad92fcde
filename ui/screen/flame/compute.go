package flame

import (
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/stacks"
	"ccagent/ui/model"
	"ccagent/ui/screen"
)

// part is a call tree, and one function's callers and callees.
type part struct {
	invert   bool
	sandwich screen.Function // the zero Function is none
}

// answer answers a part.
type answer struct {
	tree     *Tree
	sandwich *Sandwich
}

// Compute implements model.Part.
func (p part) Compute(in *model.Input) (any, error) {
	out := &answer{}
	type treeKey struct {
		model.Samples
		invert bool
	}
	out.tree = model.Recall(in.Engine, treeKey{in.Samples, p.invert}, func() *Tree {
		return newTree(in.Selection, callTree(in, p.invert), p.invert)
	})
	if p.sandwich != (screen.Function{}) {
		type key struct {
			model.Samples
			of screen.Function
		}
		out.sandwich = model.Recall(in.Engine, key{in.Samples, p.sandwich}, func() *Sandwich { return sandwich(in, p.sandwich) })
	}
	return out, nil
}

// Tree is the call tree, or with Invert the callers of each leaf.
type Tree struct {
	Invert bool
	Nodes  []TreeNode // parents before their children; 0 is the root
}

// TreeNode is a function in a context.
type TreeNode struct {
	Name        string
	Path        string
	Line        int
	File        columns.FileID
	Module      string
	Package     string
	Collapsed   bool   // a module or package shown as one
	Symbol      string // raw
	Category    bool   // no function: a category or an explanation
	Parent      int    // −1 for the root
	Kids        []int32
	Self, Total float64
	Forced      float64 // part of Total in thunks that the frame above forced
	// PlusMinus is how far Total's 95 % interval reaches to its further side. Tied: the order
	// after the sibling before is within noise.
	PlusMinus float64
	Tied      bool
	// SelfPlusMinus is PlusMinus of Self; 0 where Self is zero by definition.
	SelfPlusMinus float64
}

// Sandwich is what calls a function, and what it calls. Node 0 of both is the
// function; nil if no stack has it.
type Sandwich struct {
	Function         screen.Function
	Callers, Callees *Tree
}

// leastInverted is the part of the samples below which the inverted tree merges callers.
const leastInverted = 0.0001

// leastSure is the part of the samples below which intervals are not computed: a tree has
// many nodes of one sample.
const leastSure = 0.0005

// wholeTrees keeps the latest call tree of each direction: they are large.
type wholeTrees [2]struct {
	samples model.Samples
	tree    *stacks.Tree
}

func callTree(in *model.Input, invert bool) *stacks.Tree {
	t := &model.Recall(in.Engine, struct{}{}, func() *wholeTrees { return &wholeTrees{} })[0]
	if invert {
		t = &model.Recall(in.Engine, struct{}{}, func() *wholeTrees { return &wholeTrees{} })[1]
	}
	if t.tree == nil || t.samples != in.Samples {
		t.samples, t.tree = in.Samples, stacks.TreeOf(in.Selection, stacks.Options{Invert: invert, Least: leastInverted})
	}
	return t.tree
}

func sandwich(in *model.Input, f screen.Function) *Sandwich {
	out := &Sandwich{Function: f}
	t := callTree(in, false)
	for i := range t.Nodes {
		if fr := t.Nodes[i].Frame; i > 0 && fr.Name == f.Name && fr.Module == f.Module && fr.Package == f.Package {
			callers, callees := t.Sandwich(fr)
			out.Callers, out.Callees = newTree(in.Selection, callers, true), newTree(in.Selection, callees, false)
			break
		}
	}
	return out
}

func newTree(sel *profile.Selection, t *stacks.Tree, invert bool) *Tree {
	out := &Tree{Invert: invert, Nodes: make([]TreeNode, len(t.Nodes))}
	sure := t.Sure(sel, leastSure)
	for i := range t.Nodes {
		n := &t.Nodes[i]
		o := TreeNode{
			Name: n.Name, Parent: int(n.Parent), Kids: n.Children,
			Self: sel.Fraction(n.Self), Total: sel.Fraction(n.Total), Forced: sel.Fraction(n.Forced),
		}
		if f := n.Frame; f != nil {
			o.Path, o.Line, o.File, o.Symbol = f.File, int(f.Line), f.FileID, f.Symbol
			o.Category = f.Kind == profile.KindCategory
			o.Module, o.Package, o.Collapsed = f.Module, f.Package, f.Kind == profile.KindCollapsed
		}
		if o.Total >= leastSure {
			o.PlusMinus, o.Tied = sure[i].PlusMinus(o.Total), sure[i].Tied
			o.SelfPlusMinus = sure[i].Self.PlusMinus(o.Self)
		}
		out.Nodes[i] = o
	}
	return out
}

// Function is the function that a node is of; the zero Function if it is of none.
func (n *TreeNode) Function() screen.Function {
	if n.Category {
		return screen.Function{}
	}
	return screen.Function{Name: n.Name, Module: n.Module, Package: n.Package}
}
