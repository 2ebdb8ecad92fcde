package model

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Whatever is done, undoing it all gives the beginning, redoing it all the end.
func TestUndoRedoRoundTrip(t *testing.T) {
	for seed := range uint64(200) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		var s History
		changes := 0
		for range rnd.IntN(30) {
			var did bool
			switch rnd.IntN(4) {
			case 0:
				did = s.Pop()
			case 1:
				did = s.Push(Transform{Op: OpRange, From: rnd.Uint64N(3), To: 9})
			case 2:
				did = s.DropRange()
			default:
				did = s.Push(Transform{Op: Op(1 + rnd.IntN(3)), Name: string(rune('a' + rnd.IntN(3)))})
			}
			if did {
				changes++
			}
		}
		end := slices.Clone(s.All())
		for i := range changes {
			if !s.Undo() {
				t.Fatalf("seed %d: change %d of %d cannot be undone", seed, i, changes)
			}
		}
		if s.CanUndo() || len(s.All()) != 0 {
			t.Fatalf("seed %d: after undoing all: %v", seed, s.All())
		}
		for s.Redo() {
		}
		if !slices.Equal(s.All(), end) {
			t.Fatalf("seed %d: after redoing all: %v, want %v", seed, s.All(), end)
		}
	}
}

func TestStackHasOneRange(t *testing.T) {
	var s History
	s.Push(Transform{Op: OpRange, From: 1, To: 2})
	s.Push(Transform{Op: OpFocus, Name: "M.f"})
	s.Push(Transform{Op: OpRange, From: 3, To: 4})
	want := []Transform{{Op: OpRange, From: 3, To: 4}, {Op: OpFocus, Name: "M.f"}}
	if !slices.Equal(s.All(), want) {
		t.Errorf("%v, want %v", s.All(), want)
	}
	if s.Push(Transform{Op: OpFocus, Name: "M.f"}) {
		t.Error("the same transform was pushed twice")
	}
	if !s.DropRange() || s.DropRange() {
		t.Error("dropping the range")
	}
}
