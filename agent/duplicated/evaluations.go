package duplicated

import (
	"cmp"
	"slices"

	"ccagent/bpf"
)

// thunk is a thunk on a thread's stack, by its address.
type thunk struct {
	address uint64
	state   bpf.ThunkState
}

// look is what was seen of a thread in a sample: when, and the thunks that it evaluated.
type look struct {
	thread uint64
	time   uint64 // ns
	thunks []thunk
}

// visit is a stretch of a thread's looks in a row in which it evaluated a thunk.
type visit struct {
	thread uint64
	before uint64   // when it was looked at last before, 0 if it was not since the last collection
	looks  []uint64 // when it was seen to evaluate the thunk, at least once
	after  uint64   // when it was next seen not to evaluate the thunk; 0 if it was not yet
}

// evaluations are the evaluations of a process between two collections.
type evaluations struct {
	visits map[uint64][]visit // by the thunk's address, in order of their first look
	looks  map[uint64]look    // the last one of each thread
	number int                // of looks in all visits
}

func newEvaluations() *evaluations {
	return &evaluations{visits: map[uint64][]visit{}, looks: map[uint64]look{}}
}

// mostKept bounds what is kept of a process between two collections.
const mostKept = 1 << 18

// add takes a look at a thread, which is later than all before at the same thread.
func (e *evaluations) add(l look) {
	before, seen := e.looks[l.thread]
	for _, t := range l.thunks {
		if e.number >= mostKept {
			break
		}
		e.number++
		if v := e.of(t.address, l.thread); v != nil && v.after == 0 {
			v.looks = append(v.looks, l.time)
			continue
		}
		e.visits[t.address] = append(e.visits[t.address], visit{thread: l.thread, before: before.time, looks: []uint64{l.time}})
	}
	if seen {
		for _, t := range before.thunks {
			if v := e.of(t.address, l.thread); v != nil && v.looks[len(v.looks)-1] < l.time && v.after == 0 {
				v.after = l.time
			}
		}
	}
	e.looks[l.thread] = l
}

// of returns the last visit of a thread to a thunk, nil if there is none.
func (e *evaluations) of(address, thread uint64) *visit {
	visits := e.visits[address]
	for i := range slices.Backward(visits) {
		if visits[i].thread == thread {
			return &visits[i]
		}
	}
	return nil
}

// again is which part of the work at a look had been done before, by expectation: 0 if all of it is done for the first time.
func (e *evaluations) again(l look) (part float64) {
	for _, t := range l.thunks {
		part = max(part, e.againFor(l, t))
	}
	return part
}

// againFor is again for one of the thunks. Of threads that evaluate it at the same time, the one that has been at it for longest does the work first.
// As that is known to a look or so only, those that differ by no more are as likely to be first as each other: own, which this look itself ends,
// is half a look too large.
func (e *evaluations) againFor(l look, t thunk) float64 {
	switch t.state {
	case bpf.ThunkEvaluated:
		return 1
	case bpf.ThunkUnreadable:
		return 0
	}
	own := 0
	if v := e.of(t.address, l.thread); v != nil {
		own = v.until(l.time)
	}
	ahead, beside, known := 0.0, 0.0, false
	// Of several visits of one thread at most one is at this time.
	for _, v := range e.visits[t.address] {
		chance := v.chance(l.time)
		if v.thread == l.thread || chance == 0 {
			continue
		}
		known = known || chance == 1
		switch progress := v.until(l.time); {
		case progress > own:
			ahead = max(ahead, chance)
		case progress >= own-1:
			beside += chance
		}
	}
	if t.state == bpf.ThunkTaken && !known { // by a thread that was not seen at it
		beside++
	}
	return max(ahead, beside/(1+beside))
}

// until is how many looks there were by a time.
func (v *visit) until(time uint64) int {
	n, _ := slices.BinarySearch(v.looks, time+1)
	return n
}

// chance is how likely the thread evaluates the thunk at a time at which the thunk has no value.
func (v *visit) chance(time uint64) float64 {
	first := v.looks[0]
	switch {
	case time >= first:
		// As there is no value yet, a thread that evaluated it still does, unless it was seen not to: it has given up.
		if v.after != 0 && time >= v.after {
			return 0
		}
		return 1
	case v.before == 0 || time <= v.before: // it may not have run before
		return 0
	}
	// It has begun between two looks, at any time of these alike.
	return float64(time-v.before) / float64(first-v.before)
}

// sorted puts thunks in order of their addresses and drops all but the first look at each: one that a thread evaluates twice is its own
// value, and never comes to one.
func sorted(thunks []thunk) []thunk {
	slices.SortStableFunc(thunks, func(a, b thunk) int { return cmp.Compare(a.address, b.address) })
	return slices.CompactFunc(thunks, func(a, b thunk) bool { return a.address == b.address })
}
