package model

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"ccagent/eventlog"
	"ccagent/profile"
)

// Op is what a transform does.
type Op uint8

// The transforms.
const (
	OpRange    Op = iota // keep samples of a time range
	OpFocus              // keep samples with the element on their stack
	OpOwn                // keep samples whose own code the element caused
	OpDrop               // drop samples with the element on their stack
	OpHide               // remove the element's frames, keep the samples
	OpMerge              // merge the frames of a function into their callers
	OpCollapse           // show a module or package as one
	OpFold               // fold recursion
	OpThread             // keep samples of a Haskell thread
	OpCap                // of a capability
	OpCategory           // of a category
	OpPID                // of a process
	OpTID                // of an OS thread
	OpCPU                // of a CPU
)

// Transform narrows what every screen shows.
type Transform struct {
	Op       Op
	Name     string        // the element's, or an expression; the module's or package's to collapse; the category's
	Expr     bool          // Name is a regular expression
	Level    profile.Level // of what Name names: a module or package, or else LevelBinding
	From, To uint64        // ns, for OpRange
	ID       uint64        // of a thread, capability or process
}

// String is the transform as the breadcrumb shows it.
func (t Transform) String() string {
	name := t.Name
	if t.Expr {
		name = "/" + name + "/"
	}
	switch t.Op {
	case OpRange:
		return fmt.Sprintf("range %.2f-%.2fs", float64(t.From)/1e9, float64(t.To)/1e9)
	case OpFold:
		return "fold recursion"
	case OpThread, OpCap, OpPID, OpTID, OpCPU:
		return fmt.Sprintf("%s %d", t.Op, t.ID)
	}
	return t.Op.String() + " " + name
}

var opNames = [...]string{
	OpRange: "range", OpFocus: "focus", OpOwn: "own", OpDrop: "drop", OpHide: "hide", OpMerge: "merge", OpCollapse: "collapse",
	OpFold: "fold", OpThread: "thread", OpCap: "cap", OpCategory: "category", OpPID: "pid", OpTID: "tid", OpCPU: "cpu",
}

// String is the word that the breadcrumb begins with.
func (o Op) String() string { return opNames[o] }

// regexp is the expression that the transform's name stands for.
func (t Transform) regexp() (*regexp.Regexp, error) {
	if t.Expr {
		return regexp.Compile(t.Name)
	}
	switch t.Level {
	case profile.LevelModule:
		return regexp.Compile(profile.ExactModule(t.Name))
	case profile.LevelPackage:
		return regexp.Compile(profile.ExactPackage(t.Name))
	}
	return regexp.Compile("^" + regexp.QuoteMeta(t.Name) + "$")
}

// Filter makes a filter of transforms, for an event (its position in Profile.Events).
// With several threads, capabilities or categories, samples of any of them are kept.
func Filter(event int, ts []Transform) (profile.Filter, error) {
	f := profile.Filter{}.WithEvent(event)
	for _, t := range ts {
		if err := t.apply(&f); err != nil {
			return f, fmt.Errorf("apply transform %q: %w", t, err)
		}
	}
	return f, nil
}

func (t Transform) apply(f *profile.Filter) error {
	to := map[Op]*[]*regexp.Regexp{OpFocus: &f.Focus, OpDrop: &f.Ignore, OpHide: &f.Hide, OpMerge: &f.Merge, OpCollapse: &f.Collapse}[t.Op]
	switch t.Op {
	case OpRange:
		f.Range = profile.Range{From: t.From, To: t.To}
	case OpFold:
		f.FoldRecursion = true
	case OpThread:
		f.Threads = append(f.Threads, t.ID)
	case OpCap:
		f.Caps = append(f.Caps, uint32(t.ID))
	case OpPID:
		f.PIDs = append(f.PIDs, uint32(t.ID))
	case OpTID:
		f.TIDs = append(f.TIDs, uint32(t.ID))
	case OpCPU:
		f.CPUs = append(f.CPUs, uint32(t.ID))
	case OpCategory:
		c, ok := Category(t.Name)
		if !ok {
			return fmt.Errorf("unknown category %q", t.Name)
		}
		f.Categories = append(f.Categories, c)
	default:
		re, err := t.regexp()
		if err != nil {
			return err
		}
		*to = append(*to, re)
	}
	return nil
}

// Category finds a category by its name.
func Category(name string) (eventlog.Category, bool) {
	for c := range profile.Categories {
		if eventlog.Category(c).String() == name {
			return eventlog.Category(c), true
		}
	}
	return 0, false
}

// Split turns a filter into transforms.
func Split(f profile.Filter) []Transform {
	var ts []Transform
	if f.Range != (profile.Range{}) {
		ts = append(ts, Transform{Op: OpRange, From: f.Range.From, To: f.Range.To})
	}
	for _, x := range []struct {
		op  Op
		res []*regexp.Regexp
	}{{OpFocus, f.Focus}, {OpDrop, f.Ignore}, {OpHide, f.Hide}, {OpMerge, f.Merge}, {OpCollapse, f.Collapse}} {
		for _, re := range x.res {
			ts = append(ts, Transform{Op: x.op, Name: re.String(), Expr: true})
		}
	}
	if f.FoldRecursion {
		ts = append(ts, Transform{Op: OpFold})
	}
	for _, id := range f.Threads {
		ts = append(ts, Transform{Op: OpThread, ID: id})
	}
	for _, x := range []struct {
		op  Op
		ids []uint32
	}{{OpCap, f.Caps}, {OpPID, f.PIDs}, {OpTID, f.TIDs}, {OpCPU, f.CPUs}} {
		for _, id := range x.ids {
			ts = append(ts, Transform{Op: x.op, ID: uint64(id)})
		}
	}
	for _, c := range f.Categories {
		ts = append(ts, Transform{Op: OpCategory, Name: c.String()})
	}
	return ts
}

// ParseOnly reads which samples to keep: "thread 3", "cap 0", "gc", …
func ParseOnly(text string) (Transform, error) {
	word := strings.ToLower(strings.Join(strings.Fields(text), " "))
	if name, ok := strings.CutPrefix(word, "category "); ok {
		word = name
	}
	if _, ok := Category(word); ok {
		return Transform{Op: OpCategory, Name: word}, nil
	}
	for _, op := range []Op{OpThread, OpCap, OpPID, OpTID, OpCPU} {
		rest, ok := strings.CutPrefix(word, op.String())
		if !ok {
			continue
		}
		bits := 32
		if op == OpThread {
			bits = 64
		}
		id, err := strconv.ParseUint(strings.TrimSpace(rest), 10, bits)
		if err != nil {
			return Transform{}, fmt.Errorf("%s needs a number", op)
		}
		return Transform{Op: op, ID: id}, nil
	}
	return Transform{}, errors.New("type thread N, cap N, tid N, pid N, cpu N or a category such as gc")
}

// History is the transforms that are applied, with those before and after them for undo and redo. Its
// zero value is empty.
type History struct {
	now  []Transform
	undo [][]Transform
	redo [][]Transform
}

// All gives the transforms, first applied first. Do not change them.
func (h *History) All() []Transform { return h.now }

func (h *History) change(to []Transform) {
	h.undo = append(h.undo, h.now)
	h.redo = nil
	h.now = to
}

// Push adds a transform. A range replaces the range there is: ranges are set,
// not narrowed. It reports whether anything changed.
func (h *History) Push(t Transform) bool {
	if slices.Contains(h.now, t) {
		return false
	}
	next := slices.Clone(h.now)
	if i := slices.IndexFunc(next, func(o Transform) bool { return t.Op == OpRange && o.Op == OpRange }); i >= 0 {
		next[i] = t
	} else {
		next = append(next, t)
	}
	h.change(next)
	return true
}

// Pop takes the last transform off.
func (h *History) Pop() bool {
	if len(h.now) == 0 {
		return false
	}
	h.change(slices.Clone(h.now[:len(h.now)-1]))
	return true
}

// Toggle adds a transform, or takes it off if it is there.
func (h *History) Toggle(t Transform) {
	if !h.Push(t) {
		h.change(slices.DeleteFunc(slices.Clone(h.now), func(o Transform) bool { return o == t }))
	}
}

// DropRange removes the time range.
func (h *History) DropRange() bool {
	if _, ok := h.Range(); !ok {
		return false
	}
	h.change(slices.DeleteFunc(slices.Clone(h.now), func(t Transform) bool { return t.Op == OpRange }))
	return true
}

// Range gives the time range, if there is one.
func (h *History) Range() (Transform, bool) {
	i := slices.IndexFunc(h.now, func(t Transform) bool { return t.Op == OpRange })
	if i < 0 {
		return Transform{}, false
	}
	return h.now[i], true
}

// Undo goes back one change, Redo forward again.
func (h *History) Undo() bool { return step(&h.now, &h.undo, &h.redo) }

// Redo undoes an Undo.
func (h *History) Redo() bool { return step(&h.now, &h.redo, &h.undo) }

func step(now *[]Transform, from, to *[][]Transform) bool {
	if len(*from) == 0 {
		return false
	}
	*to = append(*to, *now)
	*now = (*from)[len(*from)-1]
	*from = (*from)[:len(*from)-1]
	return true
}

// CanUndo reports whether there is a change to undo.
func (h *History) CanUndo() bool { return len(h.undo) > 0 }

// CanRedo reports whether there is a change to redo.
func (h *History) CanRedo() bool { return len(h.redo) > 0 }
