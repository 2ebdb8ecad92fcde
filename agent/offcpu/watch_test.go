package offcpu

import "testing"

// What passes since a mark is time off the CPU but for what the thread has run, and being preempted is no wait.
func TestPass(t *testing.T) {
	const ms = 1_000_000
	for _, c := range []struct {
		from mark
		to   now
		want unwatched
	}{
		{mark{time: 100 * ms, ran: 10 * ms, delayed: 5 * ms}, now{200 * ms, 40 * ms, 25 * ms, true}, unwatched{70 * ms, 50 * ms, 70 * ms}},
		{mark{time: 100 * ms, ran: 10 * ms, delayed: 5 * ms, unsure: 4 * ms}, now{200 * ms, 40 * ms, 25 * ms, true}, unwatched{70 * ms, 46 * ms, 74 * ms}},
		{mark{time: 100 * ms, ran: 10 * ms}, now{200 * ms, 40 * ms, 0, false}, unwatched{70 * ms, 0, 70 * ms}},                 // how long it was preempted is not known
		{mark{time: 100 * ms, ran: 10 * ms}, now{110 * ms, 40 * ms, 0, true}, unwatched{0, 0, 0}},                              // it ran on more than there was time, by the tick
		{mark{time: 100 * ms, ran: 10 * ms}, now{90 * ms, 40 * ms, 0, true}, unwatched{}},                                      // before the mark
		{mark{time: 100 * ms, ran: 10 * ms, unsure: 50 * ms}, now{110 * ms, 10 * ms, 0, true}, unwatched{10 * ms, 0, 10 * ms}}, // no more than there was time
	} {
		th := thread{blind: &c.from}
		th.pass(c.to)
		if th.time != c.want {
			t.Errorf("%+v: %+v, want %+v", c.to, th.time, c.want)
		}
	}
}

// Waits without a stack count once: of a thread whose waits are not known they are part of the time that passes.
func TestUnsent(t *testing.T) {
	th := thread{}
	th.unsent(7)
	th.blind = &mark{}
	th.unsent(5)
	if want := (unwatched{7, 7, 7}); th.time != want {
		t.Errorf("%+v, want %+v", th.time, want)
	}
}
