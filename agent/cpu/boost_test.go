package cpu

import (
	"math"
	"testing"

	"ccagent/agent/process"
	"ccagent/eventlog"
)

// A process whose two threads have shares of 1 : 3 of its time keeps them when a boost takes ten times as many
// samples as the event beside it, of one that does not run all the time and of one that has few samples; another
// process has its time as before, and none of them is found in step with the event.
func TestBoostedSamplesWeighTheSame(t *testing.T) {
	const regular, more = 97, 997
	w := newWindow(0)
	take := func(pid, tid uint32, n int, rate float64, boosted bool) {
		for range n {
			w.held = append(w.held, held{boosted: boosted, sample: &eventlog.Sample{PID: pid, TID: tid, Weight: uint64(1e9 / rate)}})
		}
	}
	used := map[thread]uint64{{1, 1}: 1e9, {1, 2}: 3e9, {1, 3}: 1e7, {2, 4}: 1e9}
	for of, ns := range used {
		take(of.pid, of.tid, int(float64(ns)*regular/1e9), regular, false)
	}
	take(1, 1, more, more, true)
	take(1, 2, 3*more, more, true)
	take(1, 3, more/100, more, true)
	b := boosts{of: map[uint32]*boost{1: {rate: more}}}
	b.weigh(w, func(uint32) float64 { return regular })
	got, weights := map[thread]float64{}, map[thread]map[uint64]bool{}
	err := w.close(used, regular, func(_ *process.Image, _ uint64, e *eventlog.Sample) error {
		of := thread{e.PID, e.TID}
		got[of] += float64(e.Weight)
		if weights[of] == nil {
			weights[of] = map[uint64]bool{}
		}
		weights[of][e.Weight] = true
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for of, ns := range used {
		if math.Abs(got[of]-float64(ns)) > 0.15*float64(ns) {
			t.Errorf("thread %v has %.0f ns, and has used %d", of, got[of], ns)
		}
		if len(weights[of]) > 2 { // rounded up and down
			t.Errorf("the samples of thread %v have weights %v", of, weights[of])
		}
	}
	if part := w.inStep(func(uint32) bool { return true }); part != 0 {
		t.Errorf("a part of %v is found to be in step", part)
	}
}
