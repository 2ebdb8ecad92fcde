package blocked

import (
	"math/rand/v2"
	"time"
)

// most is the longest stretch, ns.
const most = uint64(30 * time.Second)

// firstRetry is how long to wait where a collection ran, ns, and each time twice as long. Each time the agent wakes.
const firstRetry = uint64(time.Millisecond)

// stretches cuts time into stretches, each with one random moment. Moments are CLOCK_MONOTONIC, ns.
type stretches struct {
	begun  uint64 // what was looked at ends here
	length uint64 // of the stretch that begins there
	due    uint64 // its moment
	again  uint64 // how long to wait if it has to be looked at again
	cost   float64
}

func newStretches(now, length uint64) stretches {
	s := stretches{begun: now, length: length}
	s.draw()
	return s
}

func (s *stretches) draw() { s.due, s.again = s.begun+rand.Uint64N(s.length), firstRetry }

// wait is how long it is to the moment.
func (s *stretches) wait(now uint64) time.Duration { return time.Duration(s.due - min(now, s.due)) }

// retries reports whether the stretch was looked at in vain.
func (s *stretches) retries() bool { return s.again > firstRetry }

// weight is for how long a look now stands: until the end of the stretch that now is in, since some may have gone by.
func (s *stretches) weight(now uint64) uint64 {
	return ((max(now, s.begun)-s.begun)/s.length + 1) * s.length
}

// charge adds what a look took, ns, to the average, and returns by how much that has risen.
func (s *stretches) charge(cost float64) float64 {
	was := s.cost
	if s.cost == 0 {
		s.cost = cost
	}
	s.cost += (cost - s.cost) / 8
	return s.cost - was
}

// pass ends the stretch that was looked at, now. Those that follow have a length.
func (s *stretches) pass(now, length uint64) {
	s.begun += s.weight(now)
	s.length = length
	s.draw()
}

// retry has the stretch looked at again soon; longest is the longest wait. It reports whether the stretch has gone by since.
func (s *stretches) retry(now, longest uint64) bool {
	end := s.begun + s.length
	gone := now < end && now+s.again >= end
	s.due, s.again = now+s.again, min(2*s.again, longest)
	return gone
}

// searches says when to look again for what was not found.
type searches struct{ next, wait uint64 }

// firstWait is that after the first search. Each wait is twice the one before.
const firstWait = uint64(10 * time.Millisecond)

func (s *searches) again(now uint64) bool {
	if now < s.next {
		return false
	}
	s.wait = max(firstWait, min(2*s.wait, most))
	s.next = now + s.wait
	return true
}

// rest puts the next search off until what this one took, ns, is a share of the time; 0 is no bound.
func (s *searches) rest(now, took uint64, share float64) {
	if share > 0 {
		s.next = max(s.next, now+uint64(min(float64(took)/share, float64(longestRest))))
	}
}

// longestRest bounds the wait between searches, ns.
const longestRest = uint64(10 * time.Minute)

// draw draws one of each `of` threads, at random: each has the same chance, whatever order
// they stand in.
type draw struct {
	most   uint64 // that are to be drawn in a look, about
	of     uint64
	seen   uint64
	chosen uint64 // of the group that was begun
}

func (d *draw) begin() { d.seen = 0 }

// next reports whether the next thread is drawn.
func (d *draw) next() bool {
	at := d.seen % d.of
	if at == 0 {
		d.chosen = rand.Uint64N(d.of)
	}
	d.seen++
	return at == d.chosen
}

// end chooses for the next look by how many threads there were in this one.
func (d *draw) end() { d.of = max((d.seen+d.most-1)/d.most, 1) }
