package model

import (
	"fmt"
	"regexp"
	"slices"

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

// Filter is the profile's filter for an event (its position in
// Profile.Events) and transforms.
func Filter(event int, ts []Transform) (profile.Filter, error) {
	f := profile.Filter{}.WithEvent(event)
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
