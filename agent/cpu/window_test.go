package cpu

import (
	"testing"

	"ccagent/agent/process"
	"ccagent/eventlog"
)

// Weights add up to the CPU time of threads, and what no sample stands for is known.
func TestWindowWeighsByCPUTime(t *testing.T) {
	const period = 4_000_000
	busy, slow, rare := thread{1, 1}, thread{1, 2}, thread{1, 3}
	w := newWindow(0)
	got := map[thread]uint64{}
	all := func(uint32) bool { return true }
	sample := func(of thread, n int) {
		for range n {
			w.held = append(w.held, held{sample: &eventlog.Sample{PID: of.pid, TID: of.tid, Weight: period}})
		}
	}
	settle := func(used map[thread]uint64) {
		t.Helper()
		err := w.close(used, 250, func(_ *process.Image, _ uint64, e *eventlog.Sample) error {
			got[thread{e.PID, e.TID}] += e.Weight
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	near := func(what string, got, want uint64) {
		t.Helper()
		if got+2 < want || got > want+2 {
			t.Errorf("%s: %d, want %d", what, got, want)
		}
	}
	// The first has enough samples for itself; the others share their time.
	sample(busy, 100)
	sample(slow, 3)
	settle(map[thread]uint64{busy: 500_000_000, slow: 10_000_000, rare: 5_000_000})
	near("a busy thread", got[busy], 500_000_000)
	near("a thread of few samples", got[slow], 15_000_000)
	near("left", w.leftover(all), 0)
	// One sample does not stand for a tenth of a second; the next one makes up for it.
	sample(slow, 1)
	settle(map[thread]uint64{slow: 14_000_000})
	near("one sample", got[slow], 15_000_000+2*period)
	near("left of it", w.leftover(all), 6_000_000)
	sample(slow, 2)
	settle(map[thread]uint64{slow: 4_000_000})
	near("in all", got[slow], 15_000_000+14_000_000+4_000_000)
	near("left in the end", w.leftover(all), 0)
	near("all weights", w.weight, 533_000_000)
	if part := w.inStep(all); part != 0 {
		t.Errorf("a part of %v is in step", part)
	}
	// A thread with four times the samples of its time.
	step := thread{2, 2}
	sample(step, 200)
	settle(map[thread]uint64{step: 200_000_000})
	near("in step", uint64(w.inStep(all)*733_000_000), 200_000_000)
	near("its weight", got[step], 200_000_000)
}

// Of many processes of a millisecond each, those with a sample stand for those without.
func TestWindowSharesShortProcesses(t *testing.T) {
	const (
		period = 4_000_000
		each   = 1_500_000
	)
	w := newWindow(0)
	got := map[uint32]uint64{}
	gone := map[uint32]bool{}
	total := uint64(0)
	for window := range uint32(4) {
		used := map[thread]uint64{{1, 1}: 400_000_000}
		for range 100 {
			w.held = append(w.held, held{sample: &eventlog.Sample{PID: 1, TID: 1, Weight: period}})
		}
		for i := range uint32(100) {
			of := thread{1000*(window+1) + i, 1}
			used[of] = each
			total += each
			if i%8 < 3 {
				w.held = append(w.held, held{sample: &eventlog.Sample{PID: of.pid, TID: 1, Weight: period}})
			}
			gone[of.pid] = true
		}
		err := w.close(used, 250, func(_ *process.Image, _ uint64, e *eventlog.Sample) error {
			got[e.PID] += e.Weight
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		w.forget(func(pid uint32) bool { return window == 1 && gone[pid] })
	}
	if got[1] != 4*400_000_000 {
		t.Errorf("a long process has %d ns", got[1])
	}
	delete(got, 1)
	var sum uint64
	for pid, ns := range got {
		sum += ns
		if ns < period*9/10 || ns > period*11/10 {
			t.Errorf("the sample of process %d stands for %d ns", pid, ns)
		}
	}
	if sum+10 < total || sum > total+10 {
		t.Errorf("short processes have %d ns of %d", sum, total)
	}
}
