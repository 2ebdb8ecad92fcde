package model

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"ccagent/profile"
)

// Op is what a transform does.
type Op uint8

// The transforms.
const (
	OpRange Op = iota // keep samples of a time range
	OpFocus           // keep samples with the element on their stack
	OpOwn             // keep samples whose own code the element caused
	OpDrop            // drop samples with the element on their stack
	OpHide            // remove the element's frames, keep the samples
)

// Transform narrows what every screen shows.
type Transform struct {
	Op       Op
	Name     string // the element's, or an expression; for all but OpRange
	Expr     bool   // Name is a regular expression
	From, To uint64 // ns, for OpRange
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
	case OpFocus:
		return "focus " + name
	case OpDrop:
		return "drop " + name
	default:
		return "hide " + name
	}
}

// regexp is the expression that the transform's name stands for.
func (t Transform) regexp() (*regexp.Regexp, error) {
	if t.Expr {
		return regexp.Compile(t.Name)
	}
	return regexp.Compile("^" + regexp.QuoteMeta(t.Name) + "$")
}

// Filter adds transforms to a filter, for an event (its position in
// Profile.Events).
func Filter(base profile.Filter, event int, ts []Transform) (profile.Filter, error) {
	f := base.WithEvent(event)
	f.Focus, f.Ignore, f.Hide = slices.Clone(f.Focus), slices.Clone(f.Ignore), slices.Clone(f.Hide)
	for _, t := range ts {
		if t.Op == OpRange {
			f.Range = profile.Range{From: t.From, To: t.To}
			continue
		}
		re, err := t.regexp()
		if err != nil {
			return f, fmt.Errorf("apply transform %q: %w", t, err)
		}
		switch t.Op {
		case OpFocus:
			f.Focus = append(f.Focus, re)
		case OpDrop:
			f.Ignore = append(f.Ignore, re)
		case OpHide:
			f.Hide = append(f.Hide, re)
		}
	}
	return f, nil
}

// Split takes what a filter says of time and names out of it, as transforms.
func Split(f profile.Filter) (profile.Filter, []Transform) {
	var ts []Transform
	if f.Range != (profile.Range{}) {
		ts = append(ts, Transform{Op: OpRange, From: f.Range.From, To: f.Range.To})
	}
	for _, x := range []struct {
		op  Op
		res []*regexp.Regexp
	}{{OpFocus, f.Focus}, {OpDrop, f.Ignore}, {OpHide, f.Hide}} {
		for _, re := range x.res {
			ts = append(ts, Transform{Op: x.op, Name: re.String(), Expr: true})
		}
	}
	f.Range, f.Focus, f.Ignore, f.Hide = profile.Range{}, nil, nil, nil
	return f, ts
}

// Fixed describes what of a filter is no transform: threads, capabilities and
// the like, which only the command line sets.
func Fixed(f profile.Filter) string {
	var out []string
	add := func(name string, n int, v any) {
		if n > 0 {
			out = append(out, fmt.Sprintf("%s %v", name, v))
		}
	}
	add("thread", len(f.Threads), f.Threads)
	add("tid", len(f.TIDs), f.TIDs)
	add("pid", len(f.PIDs), f.PIDs)
	add("cap", len(f.Caps), f.Caps)
	add("cpu", len(f.CPUs), f.CPUs)
	add("category", len(f.Categories), f.Categories)
	return strings.Join(out, ", ")
}

// Stack is a stack of transforms with its history. Its zero value is empty.
type Stack struct {
	now  []Transform
	undo [][]Transform
	redo [][]Transform
}

// All gives the transforms, first applied first. Do not change them.
func (s *Stack) All() []Transform { return s.now }

func (s *Stack) change(to []Transform) {
	s.undo = append(s.undo, s.now)
	s.redo = nil
	s.now = to
}

// Push adds a transform. A range replaces the range there is: ranges are set,
// not narrowed. It reports whether anything changed.
func (s *Stack) Push(t Transform) bool {
	if slices.Contains(s.now, t) {
		return false
	}
	next := slices.Clone(s.now)
	if i := slices.IndexFunc(next, func(o Transform) bool { return t.Op == OpRange && o.Op == OpRange }); i >= 0 {
		next[i] = t
	} else {
		next = append(next, t)
	}
	s.change(next)
	return true
}

// Pop takes the last transform off.
func (s *Stack) Pop() bool {
	if len(s.now) == 0 {
		return false
	}
	s.change(slices.Clone(s.now[:len(s.now)-1]))
	return true
}

// DropRange removes the time range.
func (s *Stack) DropRange() bool {
	if _, ok := s.Range(); !ok {
		return false
	}
	s.change(slices.DeleteFunc(slices.Clone(s.now), func(t Transform) bool { return t.Op == OpRange }))
	return true
}

// Range gives the time range, if there is one.
func (s *Stack) Range() (Transform, bool) {
	i := slices.IndexFunc(s.now, func(t Transform) bool { return t.Op == OpRange })
	if i < 0 {
		return Transform{}, false
	}
	return s.now[i], true
}

// Undo goes back one change, Redo forward again.
func (s *Stack) Undo() bool { return step(&s.now, &s.undo, &s.redo) }

// Redo undoes an Undo.
func (s *Stack) Redo() bool { return step(&s.now, &s.redo, &s.undo) }

func step(now *[]Transform, from, to *[][]Transform) bool {
	if len(*from) == 0 {
		return false
	}
	*to = append(*to, *now)
	*now = (*from)[len(*from)-1]
	*from = (*from)[:len(*from)-1]
	return true
}

// CanUndo and CanRedo tell whether there is anything to go to.
func (s *Stack) CanUndo() bool { return len(s.undo) > 0 }

// CanRedo see CanUndo.
func (s *Stack) CanRedo() bool { return len(s.redo) > 0 }
