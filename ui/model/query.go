package model

import (
	"slices"
	"unique"

	"ccagent/profile"
	"ccagent/profile/columns"
)

// Query is all that decides what is on screen. It is compared by value: equal queries have
// the same answer.
type Query struct {
	Samples
	Selected Key
	File     columns.FileID // whose source is shown; 0 = none
	Window   Window         // of the timeline; zero where the screen has no time axis
	// Part is what the screen shows besides; nil for nothing. Its dynamic type must be
	// comparable.
	Part Part
}

// Samples says which samples are looked at.
type Samples struct {
	Event      int // its position in Profile.Events
	Transforms Transforms
}

// Window is a stretch of time in columns.
type Window struct {
	From, To uint64 // ns
	Cols     int
}

// Part is a screen's own share of a query.
type Part interface {
	// Compute gives the answer, which must not be changed later. It runs beside the event
	// loop. An error is shown to the user; the answer is then shown as well.
	Compute(in *Input) (any, error)
}

// Input is what a Part is computed from.
type Input struct {
	*Engine
	Query     Query
	Samples   Samples            // those of Selection: the query's, or all if its transforms are wrong
	Selection *profile.Selection // the samples kept
}

// Source is the query's file with its heat; nil if there is none.
func (in *Input) Source() *Source {
	f := in.Query.File
	if f == 0 || int(f) >= in.p.Files() {
		return nil
	}
	return Recall(in.Engine, sourceKey{in.Samples, f}, func() *Source { return in.file(in.Selection, f) })
}

type sourceKey struct {
	Samples
	File columns.FileID
}

// Transforms are transforms in the order in which they are applied. They are compared by
// value: two that hold the same are equal. The zero value is none.
type Transforms struct{ last unique.Handle[link] }

// link is a transform and those before it.
type link struct {
	Transform
	before Transforms
}

// TransformsOf makes Transforms of a list.
func TransformsOf(ts ...Transform) Transforms {
	var out Transforms
	for _, t := range ts {
		out = Transforms{unique.Make(link{t, out})}
	}
	return out
}

// All gives the transforms, first applied first.
func (t Transforms) All() []Transform {
	var out []Transform
	for t != (Transforms{}) {
		l := t.last.Value()
		out = append(out, l.Transform)
		t = l.before
	}
	slices.Reverse(out)
	return out
}
