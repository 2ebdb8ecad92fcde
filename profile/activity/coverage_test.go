package activity_test

import (
	"bytes"
	"math"
	"math/rand/v2"
	"testing"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/activity"
)

// scheduled is a capability's schedule and the samples of it: threads 1 and 2 run in turns, with
// stretches off the CPU between.
type scheduled struct {
	name string
	// busy is the part of the time on a CPU, first that of it in which thread 1 runs; turn is the
	// mean length of a turn in sampling intervals.
	busy, first, turn float64
	samples           int
}

// draw runs a schedule, samples the CPU once in each interval at a place of its own, and returns the
// log and the true parts of the time from the first sample to the last in which each thread ran. Weights are what the capability used
// of the CPU, divided by the number of samples, as the agent makes them.
func (c scheduled) draw(t *testing.T, r *rand.Rand) ([]byte, map[uint64]float64) {
	t.Helper()
	const step = 1e6
	end := float64(c.samples)
	type stretch struct {
		to  float64
		tso uint64
	}
	var runs []stretch
	ran := map[uint64]float64{1: 0, 2: 0}
	for at := 0.0; at < end; {
		tso := uint64(2)
		switch {
		case r.Float64() < 1-c.busy:
			tso = 0
		case r.Float64() < c.first:
			tso = 1
		}
		to := min(at+r.ExpFloat64()*c.turn, end)
		runs = append(runs, stretch{to, tso})
		at = to
	}
	type hit struct {
		at  float64
		tso uint64
	}
	var hits []hit
	k := 0
	for i := range c.samples {
		at := float64(i) + r.Float64()
		for runs[k].to < at {
			k++
		}
		if runs[k].tso != 0 {
			hits = append(hits, hit{at, runs[k].tso})
		}
	}
	if len(hits) < 2 {
		return nil, nil
	}
	first, last, used, at := hits[0].at, hits[len(hits)-1].at, 0.0, 0.0
	for _, s := range runs {
		if s.tso != 0 {
			used += s.to - at
			ran[s.tso] += max(0, min(s.to, last)-max(at, first)) / (last - first)
		}
		at = s.to
	}
	var log bytes.Buffer
	w := eventlog.NewWriter(&log, nil)
	write := func(at uint64, e eventlog.Event) {
		if err := w.Write(at, eventlog.NoCap, e); err != nil {
			t.Fatal(err)
		}
	}
	write(0, &eventlog.Capture{PID: 1})
	write(0, &eventlog.EventDef{Index: 0, Requested: "cpu-clock", Granted: "cpu-clock", Unit: "ns"})
	write(0, &eventlog.Nodes{First: 1, Nodes: []eventlog.Node{{Kind: eventlog.FramePC, Addr: 100}}})
	weight := uint64(used * step / float64(len(hits)))
	for _, h := range hits {
		write(uint64(h.at*step), &eventlog.Sample{PID: 1, TID: 1, Node: 1, Weight: weight, TSO: h.tso})
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return log.Bytes(), ran
}

// At least 95 % of the intervals of threads' and capabilities' shares hold what the schedule has, but
// for chance: also where a thread runs nearly all the time, and where turns are longer or shorter
// than a sampling interval.
func TestCoverage(t *testing.T) {
	const trials = 25
	for _, c := range []scheduled{
		{"turns of a tenth of an interval", 0.6, 0.5, 0.1, 400},
		{"turns of 5 intervals", 0.6, 0.5, 5, 400},
		{"turns of 40 intervals", 0.6, 0.5, 40, 800},
		{"nearly always", 0.99, 0.97, 1, 800},
		{"always", 1, 0.7, 0.3, 800},
		{"seldom", 0.02, 0.5, 0.3, 800},
	} {
		held, all := 0, 0
		for trial := range trials {
			log, truth := c.draw(t, rand.New(rand.NewPCG(uint64(trial), 7)))
			if log == nil {
				continue // no stretch of time
			}
			p, err := profile.Load(bytes.NewReader(log))
			if err != nil {
				t.Fatal(err)
			}
			a := activity.Of(p.Select(profile.Filter{}))
			if a == nil {
				continue
			}
			check := func(s *activity.Share, truth float64) {
				all++
				if s.Low <= truth+1e-9 && truth-1e-9 <= s.High {
					held++
				}
			}
			for i := range a.Threads {
				check(&a.Threads[i].Share, truth[a.Threads[i].TSO])
			}
			check(&a.Capabilities[0].Shares[activity.Mutator], truth[1]+truth[2])
			check(&a.Capabilities[0].Shares[activity.Off], 1-truth[1]-truth[2])
		}
		if least := int(0.95*float64(all) - 4.5*math.Sqrt(0.95*0.05*float64(all))); held < least {
			t.Errorf("%s: %d of %d intervals hold, want at least %d", c.name, held, all, least)
		} else {
			t.Logf("%s: %d of %d", c.name, held, all)
		}
	}
}
