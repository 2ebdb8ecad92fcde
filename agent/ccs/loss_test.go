package ccs

import (
	"strings"
	"testing"

	"ccagent/agent/process"
	"ccagent/agent/sourcetest"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/internal/testprog"
	"ccagent/perf"
)

func TestMain(m *testing.M) { sourcetest.Main(m) }

// A stack whose record was lost is written as such, and samples whose stacks there was no
// room for are reported.
func TestLossIsReported(t *testing.T) {
	testprog.NeedRoot(t)
	r := sourcetest.Open(t, Kind(), perf.Rate{})
	s := r.Source.(*ccs)
	im := process.NewImage(1, 1)
	im.Exited = true
	r.Processes.Images[1] = im
	sample := func(stack uint64) uint32 {
		var e eventlog.Sample
		if err := s.Annotate(im, &perf.Sample{SampleHeader: bpf.SampleHeader{Pid: 1, Ccs: stack}}, &e); err != nil {
			t.Fatal(err)
		}
		return e.Centres
	}
	lost := sample(0x10)
	sent := sample(0x20)
	record := &perf.Sample{SampleHeader: bpf.SampleHeader{Record: bpf.RecordCCS, Pid: 1}, Stack: bpf.CCSRecord{Ccs: 0x20}}
	if err := s.Consume(record); err != nil {
		t.Fatal(err)
	}
	for i := range uint64(maxStacks) {
		s.stacks.at(im, 0x1000+8*i)
	}
	if id := sample(8); id != 0 {
		t.Errorf("one stack too many has id %d", id)
	}
	if err := s.Finish(0); err != nil {
		t.Fatal(err)
	}
	problems := map[uint32]eventlog.CentreProblem{}
	r.Each(t, func(e eventlog.Event) {
		if st, ok := e.(*eventlog.CentreStack); ok {
			problems[st.ID] = st.Problem
		}
	})
	if len(problems) != 2 || problems[lost] != eventlog.CentreLost || problems[sent] != eventlog.CentreWhole {
		t.Errorf("stack %d was lost and %d sent; the log has %v", lost, sent, problems)
	}
	if len(r.Warned) != 1 || !strings.HasPrefix(r.Warned[0], "1 samples") {
		t.Errorf("the warnings are %q", r.Warned)
	}
}
