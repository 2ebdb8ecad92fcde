package ticky

import (
	"strings"
	"testing"

	"ccagent/agent/process"
	"ccagent/agent/sourcetest"
	"ccagent/bpf"
	"ccagent/internal/testprog"
	"ccagent/perf"
)

func TestMain(m *testing.M) { sourcetest.Main(m) }

// closed is a probe.
type closed struct{ times int }

func (c *closed) Close() error {
	c.times++
	return nil
}

// Counters of a process that ended without sending them are reported as lost, and those of
// one that sent them are not.
func TestLossIsReported(t *testing.T) {
	testprog.NeedRoot(t)
	r := sourcetest.Open(t, Kind(), perf.Rate{})
	s := r.Source.(*ticky)
	sent, killed := process.NewImage(1, 1), process.NewImage(2, 2)
	r.Processes.Images[1], r.Processes.Images[2] = sent, killed
	probe := &closed{}
	for _, im := range []*process.Image{sent, killed} {
		s.links[im.Incarnation] = probe
	}
	if err := s.Consume(&perf.Sample{SampleHeader: bpf.SampleHeader{Record: bpf.RecordTicky, Pid: sent.PID}}); err != nil {
		t.Fatal(err)
	}
	for _, im := range []*process.Image{sent, killed} {
		if err := s.Detach(im, 0); err != nil {
			t.Fatal(err)
		}
	}
	if len(r.Warned) != 1 || !strings.Contains(r.Warned[0], "process 2 are lost") {
		t.Errorf("the warnings are %q", r.Warned)
	}
	if probe.times != 2 {
		t.Errorf("%d probes were removed, want 2", probe.times)
	}
}
