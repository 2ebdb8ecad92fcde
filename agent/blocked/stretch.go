package blocked

import (
	"math/rand/v2"
	"time"
)

// Stretches are at least least long, which gives 20 looks a second, and at most most.
const (
	least = uint64(50 * time.Millisecond)
	most  = uint64(30 * time.Second)
)

// How long to wait where a collection ran: firstRetry, and each time twice as long, up to lastRetry.
// Each time the agent wakes.
const (
	firstRetry = uint64(time.Millisecond)
	lastRetry  = uint64(32 * time.Millisecond)
)

// stretches cuts time into stretches, each with one random moment. Moments are CLOCK_MONOTONIC, ns.
type stretches struct {
	begun  uint64 // what was looked at ends here
	length uint64 // of the stretch that begins there
	due    uint64 // its moment
	again  uint64 // how long to wait if it has to be looked at again
	cost   float64
}

func newStretches(now uint64) stretches {
	s := stretches{begun: now, length: least}
	s.draw()
	return s
}

func (s *stretches) draw() { s.due, s.again = s.begun+rand.Uint64N(s.length), firstRetry }

// wait is how long it is to the moment.
func (s *stretches) wait(now uint64) time.Duration { return time.Duration(s.due - min(now, s.due)) }

// pass ends the stretch that was looked at, now, and returns for how long the look stands: until the
// end of the stretch that now is in, since some may have gone by. share is the part of a CPU that
// looks may take, 0 for any; cost is what this one took, in ns.
func (s *stretches) pass(now uint64, share, cost float64) (weight uint64) {
	n := (max(now, s.begun)-s.begun)/s.length + 1
	weight = n * s.length
	s.begun += weight
	if s.cost == 0 {
		s.cost = cost
	}
	s.cost += (cost - s.cost) / 8
	s.length = least
	if share > 0 {
		s.length = min(max(least, uint64(s.cost/share)), most)
	}
	s.draw()
	return weight
}

// retry has the stretch looked at again soon. It reports whether the stretch has gone by since.
func (s *stretches) retry(now uint64) bool {
	end := s.begun + s.length
	gone := now < end && now+s.again >= end
	s.due, s.again = now+s.again, min(2*s.again, lastRetry)
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

// mostSamples is how many threads are drawn in a look, about.
const mostSamples = 128

// draw draws one of each `of` threads, at random: each has the same chance, whatever order
// they stand in.
type draw struct {
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
func (d *draw) end() { d.of = max((d.seen+mostSamples-1)/mostSamples, 1) }
