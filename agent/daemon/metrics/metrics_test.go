package metrics

import (
	"fmt"
	"testing"
	"time"
)

// byService are the values of a series, by service; a histogram's are the numbers of observations.
func byService(t *testing.T, m *Metrics, series string) map[string]float64 {
	t.Helper()
	families, err := m.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, family := range families {
		if family.GetName() != series {
			continue
		}
		for _, one := range family.GetMetric() {
			for _, label := range one.GetLabel() {
				if label.GetName() == "service" {
					values[label.GetValue()] += one.GetGauge().GetValue() + one.GetCounter().GetValue() + float64(one.GetHistogram().GetSampleCount())
				}
			}
		}
	}
	return values
}

// Processes that call themselves by ever new names have series of their own up to half of the bound, and leave those of other users
// theirs; what has no series of its own is counted all the same.
func TestServicesOfOneUserLeaveOthersTheirs(t *testing.T) {
	m := New("test")
	const names = 3 * maxServices
	var all []Process
	for i := range names {
		all = append(all, Process{Service: fmt.Sprint("liar", i), User: 1, Haskell: -1})
	}
	m.SetProcesses(append(all, Process{Service: "api", User: 2, Haskell: -1}))
	m.AddCPU("web", 2, map[string]time.Duration{"mutator": time.Second})
	m.Collected("more", 1, time.Millisecond, true)
	processes := byService(t, m, "ccagent_haskell_processes")
	if processes["api"] != 1 || processes[Other] != names-maxServices/2 || len(processes) != maxServices/2+2 {
		t.Errorf("of %d services %v processes are api, %v %s; want %d, 1 and %d", len(processes), processes["api"], processes[Other], Other, maxServices/2+2, names-maxServices/2)
	}
	if cpu := byService(t, m, "ccagent_haskell_cpu_seconds_total"); len(cpu) != 1 || cpu["web"] != 1 {
		t.Errorf("CPU time is %v, want 1 s of web", cpu)
	}
	if pauses := byService(t, m, "ccagent_haskell_gc_pause_seconds"); len(pauses) != 1 || pauses[Other] != 1 {
		t.Errorf("pauses are %v, want one of %s", pauses, Other)
	}
}
