package bpf

// ThunkState is what a thunk that a thread evaluates looks like to others: the top byte of the words of a RecordEvaluating.
type ThunkState = samplerThunkState

// States of thunks.
const (
	ThunkUnmarked   = samplerThunkStateTHUNK_UNMARKED   // like one that nobody evaluates
	ThunkMarked     = samplerThunkStateTHUNK_MARKED     // a black hole of that thread
	ThunkTaken      = samplerThunkStateTHUNK_TAKEN      // a black hole of another thread
	ThunkEvaluated  = samplerThunkStateTHUNK_EVALUATED  // it has its value
	ThunkUnreadable = samplerThunkStateTHUNK_UNREADABLE // not known
)

// thunkEvent says which events' samples come with the thunks that are evaluated, and as which event these are.
type thunkEvent struct {
	of    func(event int) bool // nil for none
	event int
}

// RecordThunks has programs of events that are loaded from now on record the thunks that a sample's thread evaluates: those of the
// events for which of returns true. Records that are lost are counted as those of the event with that index.
func (s *Sampler) RecordThunks(event int, of func(event int) bool) { s.thunks = thunkEvent{of, event} }
