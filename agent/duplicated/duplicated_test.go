package duplicated

import (
	"testing"

	"ccagent/agent/process"
	"ccagent/agent/source"
	"ccagent/agent/sourcetest"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/perf"
)

func TestMain(m *testing.M) { sourcetest.Main(m) }

// rig is the source with a process, and what it writes.
type rig struct {
	*duplicated
	im      *process.Image
	samples []*eventlog.Sample // of CPU time, in order
	written []eventlog.Sample
	times   []uint64
}

func newRig(unit string) *rig {
	r := &rig{im: &process.Image{Incarnation: 1, PID: 100}}
	host := &source.Host{Walker: &bpf.Sampler{}, CPUTime: &source.Event{Def: eventlog.EventDef{Index: 0, Unit: unit}}}
	host.WriteKnown = func(_ *process.Image, time uint64, e *eventlog.Sample) error {
		r.written = append(r.written, *e)
		r.times = append(r.times, time)
		return nil
	}
	event, _, _ := grant(name, perf.Rate{})
	event.Def.Index = 1
	r.duplicated = open(host, []*source.Event{event}, 0).(*duplicated)
	r.images[r.im.Incarnation] = &image{now: newEvaluations()}
	return r
}

// sample has a thread sampled while it evaluates thunks in a state.
func (r *rig) sample(t *testing.T, thread uint32, time, collections uint64, state bpf.ThunkState, thunks ...uint64) {
	t.Helper()
	s := perf.Sample{}
	s.Time, s.Pid, s.Tid, s.Tso = time, r.im.PID, thread, uint64(thread)
	e := &eventlog.Sample{Event: 0, TID: thread, Node: 7}
	r.samples = append(r.samples, e)
	if err := r.Annotate(r.im, &s, e); err != nil {
		t.Fatal(err)
	}
	s.Record, s.Total = bpf.RecordEvaluating, collections
	for _, at := range thunks {
		s.Frames = append(s.Frames, at|uint64(state)<<bpf.FrameKindShift)
	}
	if err := r.Consume(&s); err != nil {
		t.Fatal(err)
	}
}

// weigh has the samples from one on written, with a weight of 1000; those that were left out are not.
func (r *rig) weigh(t *testing.T, from int, leftOut ...int) {
	t.Helper()
next:
	for i := from; i < len(r.samples); i++ {
		for _, out := range leftOut {
			if i == out {
				continue next
			}
		}
		r.samples[i].Weight = 1000
		if err := r.Written(r.im, 0, r.samples[i]); err != nil {
			t.Fatal(err)
		}
	}
}

const ms = uint64(1e6)

// Samples become samples of evaluation that is done twice, with the stack, the time and a part of the weight.
func TestSamples(t *testing.T) {
	r := newRig("ns")
	r.sample(t, 1, 10*ms, 5, bpf.ThunkUnmarked, 0x1000)
	r.sample(t, 2, 10*ms+1, 5, bpf.ThunkUnmarked, 0x1000)
	r.sample(t, 1, 11*ms, 5, bpf.ThunkUnmarked, 0x2000) // of its own
	r.sample(t, 2, 11*ms+1, 5, bpf.ThunkEvaluated, 0x1000)
	r.weigh(t, 0)
	weights := map[uint64]uint64{}
	for i, e := range r.written {
		if e.Event != 1 || e.Node != 7 {
			t.Errorf("%+v", e)
		}
		weights[r.times[i]] = e.Weight
	}
	// The first was taken before the second thread was seen: it may have begun since.
	if len(weights) != 2 || weights[10*ms+1] != 500 || weights[11*ms+1] != 1000 || len(r.waits) != 0 {
		t.Errorf("weights by time: %v, %d wait", weights, len(r.waits))
	}
}

// An address is of another thunk after a collection.
func TestCollectionsPart(t *testing.T) {
	r := newRig("ns")
	r.sample(t, 1, 10*ms, 5, bpf.ThunkUnmarked, 0x1000)
	r.sample(t, 2, 11*ms, 6, bpf.ThunkUnmarked, 0x1000)
	r.weigh(t, 0)
	if len(r.written) != 0 {
		t.Errorf("written: %+v", r.written)
	}
}

// A sample that is not written, as one at a tick in step with the program, holds up no other.
func TestSamplesThatAreLeftOut(t *testing.T) {
	r := newRig("ns")
	for i := range uint64(4) {
		r.sample(t, 1, i*ms, 5, bpf.ThunkEvaluated, 0x1000)
	}
	r.weigh(t, 0, 0, 2)
	if len(r.written) != 2 || r.times[0] != ms || r.times[1] != 3*ms || len(r.waits) != 0 {
		t.Errorf("written at %v, %d wait", r.times, len(r.waits))
	}
}

// Samples of cycles have their weight at once, and wait for those that follow them; not when the log may be exchanged.
func TestSamplesOfCyclesWait(t *testing.T) {
	r := newRig("cycles")
	r.sample(t, 1, 10*ms, 5, bpf.ThunkUnmarked, 0x1000)
	r.weigh(t, 0)
	if err := r.Throttle(source.Use{}); err != nil || len(r.waits) != 1 {
		t.Fatalf("%d wait, %v", len(r.waits), err)
	}
	r.sample(t, 2, 10*ms+uint64(patience), 5, bpf.ThunkUnmarked, 0x1000)
	r.weigh(t, 1)
	if err := r.Throttle(source.Use{}); err != nil || len(r.waits) != 1 {
		t.Fatalf("%d wait, %v", len(r.waits), err)
	}
	if err := r.settle(0); err != nil || len(r.waits) != 0 || len(r.written) != 1 {
		t.Errorf("%d wait, written %+v, %v", len(r.waits), r.written, err)
	}
}

// What waits, and what is kept of threads that have ended, is bounded.
func TestWaitingIsBounded(t *testing.T) {
	r := newRig("ns")
	for i := range uint32(mostWaiting + 100) {
		r.sample(t, i, uint64(i), 5, bpf.ThunkUnmarked)
	}
	if len(r.waits) != mostWaiting || len(r.newest) != 0 {
		t.Errorf("%d samples wait, %d threads are kept", len(r.waits), len(r.newest))
	}
}

// Records that the ring buffer has no room for are reported as lost.
func TestLossIsReported(t *testing.T) {
	testprog.NeedRoot(t)
	r := sourcetest.Open(t, Kind(), perf.Rate{}, name)
	d := r.Source.(*duplicated)
	const clock = 1
	r.CPUTime = &source.Event{Def: eventlog.EventDef{Index: clock, Unit: "ns"}}
	im := r.Run(t, testprog.Build(t, "twice", testprog.Options{Threaded: true}), "private", "100000", "1000")
	if d.images[im.Incarnation] == nil {
		t.Fatal("the source has not attached to a Haskell program")
	}
	program, err := r.Walker.EventProgram(clock)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Walker.AddTarget(im.PID); err != nil {
		t.Fatal(err)
	}
	e, err := perf.Lookup("cpu-clock")
	if err != nil {
		t.Fatal(err)
	}
	tids, err := perf.Threads(int(im.PID))
	if err != nil {
		t.Fatal(err)
	}
	sampled, err := perf.Open(e, perf.Rate{Frequency: 997}, program, tids)
	if err != nil {
		t.Fatal(err)
	}
	defer sampled.Close()
	if err := sampled.Enable(); err != nil {
		t.Fatal(err)
	}
	index := int(d.event.Def.Index)
	sourcetest.Until(t, "a record is lost", func() bool { return r.Lost(t, index) > 0 })
	if err := sampled.Disable(); err != nil {
		t.Fatal(err)
	}
	sourcetest.Until(t, "the log reports what is lost", func() bool { return r.Losses(t, eventlog.LossRingFull) == r.Lost(t, index) })
}
