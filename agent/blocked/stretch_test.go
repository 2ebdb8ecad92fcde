package blocked

import (
	"math"
	"testing"
)

// Every thread is drawn as often as any other, and stands for as many as there are to one that is drawn.
func TestDraw(t *testing.T) {
	const threads, looks = 300, 20000
	d := draw{of: 1, most: 128}
	d.begin()
	for range threads {
		if !d.next() {
			t.Fatal("one of each one is drawn, and one is not")
		}
	}
	d.end()
	drawn := make([]uint64, threads)
	of := d.of
	for range looks {
		d.begin()
		for i := range drawn {
			if d.next() {
				drawn[i]++
			}
		}
		d.end()
		if d.of != of || d.of < 2 {
			t.Fatalf("one of %d is drawn, then one of %d", of, d.of)
		}
	}
	p := 1 / float64(of)
	limit := 6 * math.Sqrt(looks*p*(1-p)) // 1 in 5e8 is beyond, of each thread
	for i, n := range drawn {
		if math.Abs(float64(n)-looks*p) > limit {
			t.Errorf("thread %d was drawn %d times of %d, one of %d is to be", i, n, looks, of)
		}
	}
}

// The weights of looks add up to the time that passes, also where looks come late or have to be
// repeated, and moments lie anywhere in their stretches.
func TestStretches(t *testing.T) {
	const begin = 1e9
	s := newStretches(begin, captureTerms.least)
	now, sum := uint64(begin), uint64(0)
	var early, late int
	for n := range 10000 {
		if s.due < s.begun || s.due >= s.begun+s.length {
			t.Fatalf("the moment %d is not in the stretch of %d from %d", s.due, s.length, s.begun)
		}
		if s.due-s.begun < s.length/2 {
			early++
		} else {
			late++
		}
		now = max(now, s.due)
		switch n % 3 {
		case 1:
			now += 3 * s.length
		case 2:
			s.retry(now, captureTerms.retry)
			now += uint64(s.wait(now))
		}
		sum += s.weight(now)
		s.charge(1e6)
		s.pass(now, lengthFor(s.cost, 0.005))
	}
	if passed := now - begin; sum < passed || sum-passed > s.length {
		t.Errorf("the weights are %d of %d", sum, passed)
	}
	if d := early - late; math.Abs(float64(d)) > 600 { // 6 standard deviations
		t.Errorf("%d moments are early, %d late", early, late)
	}
	if s.length != 2e8 {
		t.Errorf("looks of 1 ms within 0.5 %% come every %d ns", s.length)
	}
}

// A stretch that goes by while collections run is reported once.
func TestRetries(t *testing.T) {
	s := newStretches(0, captureTerms.least)
	gone := 0
	for now := s.due; now < 2*s.length; now += uint64(s.wait(now)) {
		if s.retry(now, captureTerms.retry) {
			gone++
		}
	}
	if gone != 1 {
		t.Errorf("a stretch has gone by %d times", gone)
	}
}
