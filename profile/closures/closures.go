package closures

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"

	"ccagent/internal/ghc"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/profile/curry"
	sure "ccagent/profile/interval"
)

// Row is closures of one kind that are written at one place.
type Row struct {
	// Name is a constructor with its module, the binding that a thunk or function is part of,
	// or for types of the run-time system's own what they are, in brackets.
	Name string
	Kind string // "constructor", "thunk", "function"; empty for others
	// Code says of thunks and functions what Name is.
	Module, Package string
	File            string
	FileID          columns.FileID
	Span            columns.Extent // of it only the line may be known
	Near            bool           // only the symbol before the code is known
	// Role says of a constructor that the compiler of a functional-logic program adds to a type
	// what it stands for.
	Role    curry.Role
	haskell string // the module of such a constructor as the compiler calls it

	// Share is the part of the bytes of small objects, Low and High its 95 % interval, and
	// Effective the number of independent samples that would say it as exactly.
	Share, Low, High, Effective float64
	// Tied is set if the row's order after the row before it is within noise.
	Tied bool
	// Mean is the mean size of a closure in bytes, what it has left behind included.
	Mean   float64
	Blocks int    // that have such a closure
	Found  uint64 // such closures, in all blocks
}

// Table is what was allocated, by closure.
type Table struct {
	Rows   []Row // by share, largest first
	Blocks int   // that were sampled
	// Effective is how many blocks that stand for equally many bytes would say as much.
	Effective float64
	Read      uint64 // bytes of them that were read
	// Stands is how many bytes the blocks stand for.
	Stands float64
}

// Filter chooses blocks.
type Filter struct {
	Range      profile.Range // 0 for To: to the end
	PID        uint32        // 0 for all
	Capability int           // −1 for all
}

// All chooses every block.
var All = Filter{Capability: -1}

func (f *Filter) keeps(b *columns.NurseryBlock) bool {
	return b.Time >= f.Range.From && (f.Range.To == 0 || b.Time < f.Range.To) && (f.PID == 0 || b.PID == f.PID) &&
		(f.Capability < 0 || b.Capability == uint32(f.Capability))
}

// key says which closures are one row.
type key struct {
	name, kind string
	file       columns.FileID
	span       columns.Extent
}

// Of returns what a log's sampled blocks say.
func Of(p *profile.Profile, f Filter) *Table {
	n := &p.Nurseries
	var blocks []*columns.NurseryBlock
	for i := range n.Blocks {
		if f.keeps(&n.Blocks[i]) && n.Blocks[i].Read > 0 {
			blocks = append(blocks, &n.Blocks[i])
		}
	}
	t := &Table{Blocks: len(blocks)}
	rowOf := rows(p, t)
	weights := make([]float64, len(blocks))
	of := make([][]float64, len(t.Rows)) // by row and block
	bytes := make([]uint64, len(t.Rows))
	for i, b := range blocks {
		// A group of blocks stands for all that it holds by what was read of it.
		each := float64(b.Places) * float64(b.Used) / float64(b.Read)
		weights[i] = each * float64(b.Read)
		t.Read += b.Read
		t.Stands += weights[i]
		for _, c := range n.Counts(b) {
			row := rowOf[c.Closure]
			if of[row] == nil {
				of[row] = make([]float64, len(blocks))
			}
			if of[row][i] == 0 {
				t.Rows[row].Blocks++
			}
			of[row][i] += each * float64(c.Bytes)
			t.Rows[row].Found += uint64(c.Count)
			bytes[row] += uint64(c.Bytes)
		}
	}
	for i := range t.Rows {
		r := &t.Rows[i]
		if r.Found == 0 {
			continue
		}
		sum := 0.0
		for _, x := range of[i] {
			sum += x
		}
		r.Share = sum / t.Stands
		in := sure.Ratio(of[i], weights, perBlock)
		r.Low, r.High, r.Effective = in.Low, in.High, in.Effective
		r.Mean = float64(bytes[i]) / float64(r.Found)
	}
	t.Effective = sure.Units(weights)
	t.sort(of)
	return t
}

// sort puts the rows that were found in the order of their shares, and compares neighbours. of is
// what each row has of each block.
func (t *Table) sort(of [][]float64) {
	var order []int
	for i := range t.Rows {
		if t.Rows[i].Found > 0 {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(i, j int) int {
		a, b := &t.Rows[i], &t.Rows[j]
		return cmp.Or(cmp.Compare(b.Share, a.Share), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Kind, b.Kind))
	})
	rows := make([]Row, len(order))
	for at, i := range order {
		rows[at] = t.Rows[i]
		if at > 0 {
			before, r := &rows[at-1], &rows[at]
			each := float64(before.Found+r.Found) / float64(max(1, before.Blocks, r.Blocks))
			r.Tied = !sure.OrderedUnits(of[order[at-1]], of[i], min(each, perBlock))
		}
	}
	t.Rows = rows
}

// perBlock is how many independent samples a block counts for at most. Blocks that are all alike
// say no more than the closures in them, of which there are a hundred or two in each.
const perBlock = 64

// rows makes the rows of all closures of a log, and returns the row of each.
func rows(p *profile.Profile, t *Table) []int {
	n := &p.Nurseries
	at := map[key]int{}
	of := make([]int, len(n.Closures))
	for i := range n.Closures {
		r := row(p, &n.Closures[i], i == 0)
		k := key{r.Name, r.Kind, r.FileID, r.Span}
		j, ok := at[k]
		if !ok {
			j = len(t.Rows)
			at[k] = j
			t.Rows = append(t.Rows, r)
		}
		of[i] = j
	}
	return of
}

// Names of rows: of what could not be read as closures, and of thunks that were evaluated before
// the collection.
const (
	Unread    = "(not read)"
	Evaluated = "(evaluated thunks)"
)

// Describe describes one of a log's closures, by its index: name, kind and where it was written. The
// first is what is not known.
func Describe(p *profile.Profile, closure uint32) Row {
	if closure == 0 || int(closure) >= len(p.Nurseries.Closures) {
		return Row{Name: "(unknown)"}
	}
	return row(p, &p.Nurseries.Closures[closure], false)
}

// row describes a closure.
func row(p *profile.Profile, c *columns.Closure, isUnread bool) Row {
	if isUnread {
		return Row{Name: Unread}
	}
	if c.Type.In(ghc.Constr, ghc.ConstrNoCAF) {
		pkg, module, name := ghc.SplitConstructor(c.Name)
		if name == "" {
			return Row{Name: "(constructor without a name)", Kind: "constructor"}
		}
		r := Row{Name: name, Kind: "constructor", Module: module, Package: ghc.PackageOf(pkg)}
		if p.IsCurry() {
			r.Module, r.Name, r.Role = curryConstructor(module, name)
			r.haskell = module
		}
		return r
	}
	if name := bands[c.Type]; name != "" {
		return Row{Name: name}
	}
	r := Row{Kind: c.Type.Kind()}
	code := p.Code(c.Place)
	r.Name, r.Module, r.Package, r.Near = code.Name, code.Module, code.Package, code.Kind == profile.KindNear
	if code.Symbol != "" && code.Package == "" && strings.HasPrefix(code.Name, "(") {
		r.Name = code.Symbol
	}
	if r.FileID, r.Span = p.Written(c.Place); r.FileID == 0 && r.Kind != "" {
		r.FileID, r.Span = p.Around(c.Place)
	}
	if r.FileID != 0 {
		r.File = p.File(r.FileID).Path
	}
	if made := p.MadeIn(c.Place); made != nil {
		r.Name, r.Module, r.Package, r.Near = made.QualifiedName(), made.Module, made.Package, false
	}
	switch {
	case c.Type.In(ghc.RetBCO, ghc.StopFrame) || c.Type.In(ghc.AtomicallyFrame, ghc.CatchSTMFrame):
		r.Kind = "frame"
	case r.Kind == "":
		r.Name = "(primitive: " + r.Name + ")"
	}
	return r
}

// bands name the closures whose info table is the run-time system's own.
var bands = map[ghc.ClosureType]string{
	ghc.Blackhole: Evaluated, ghc.Ind: Evaluated, ghc.ThunkSelector: "(selector thunks)",
	ghc.AP: "(applications)", ghc.APStack: "(suspended evaluations)", ghc.PAP: "(partial applications)", ghc.BCO: "(byte code)",
	ghc.MVar: "(MVars)", ghc.MVarDirty: "(MVars)", ghc.TVar: "(TVars)", ghc.MutVar: "(mutable variables)", ghc.MutVarDirty: "(mutable variables)",
	ghc.ArrWords: "(byte arrays)", ghc.Weak: "(weak pointers)", ghc.TSO: "(threads)", ghc.Stack: "(stacks)",
	ghc.TRecChunk: "(transactions)", ghc.BlockingQueue: "(blocking queues)", ghc.Continuation: "(continuations)",
	ghc.MutArr: "(arrays)", ghc.MutArr + 1: "(arrays)", ghc.MutArr + 2: "(arrays)", ghc.MutArrFrozen: "(arrays)",
	ghc.SmallArr: "(small arrays)", ghc.SmallArr + 1: "(small arrays)", ghc.SmallArr + 2: "(small arrays)", ghc.SmallArrFrozen: "(small arrays)",
}

// curryConstructor returns the names of a constructor, with its module, and of the module as Curry
// has them: "Prelude.[] (choice)" is a choice between two lists.
func curryConstructor(module, qualified string) (curryModule, curryName string, role curry.Role) {
	own, generated := curry.Module(module)
	name, role, ok := curry.Constructor(strings.TrimPrefix(qualified, module+"."))
	if !ok || role == curry.Value && !generated {
		return own, qualified, curry.Value
	}
	qualified = own + "." + name
	if role != curry.Value {
		qualified += " (" + role.String() + ")"
	}
	return own, qualified, role
}

// Count estimates how many closures of the row were made, with a 95 % interval, where small objects
// of so many bytes were allocated in all. A constructor's are all of one size, so that it is as sure
// as the share.
func (r *Row) Count(bytes uint64) (count, low, high float64) {
	if r.Mean == 0 {
		return 0, 0, 0
	}
	each := float64(bytes) / r.Mean
	return r.Share * each, r.Low * each, r.High * each
}

// Where returns the file and line at which closures of the row were written, "Leak.hs:12";
// empty if that is not known.
func (r *Row) Where() string {
	if r.File == "" {
		return ""
	}
	where := path.Base(r.File)
	if r.Span.Line > 0 {
		where += ":" + strconv.Itoa(int(r.Span.Line))
		if r.Span.Col > 0 {
			where += ":" + strconv.Itoa(int(r.Span.Col))
		}
	}
	return where
}
