package engine

import (
	"fmt"
	"math"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/source"
	"ccagent/eventlog"
	"ccagent/internal/sandbox"
	"ccagent/perf"
)

// meter adds up what the sources cost and what the target uses, and has the sources keep
// within their budgets.
type meter struct {
	host    *source.Host
	sources []source.Source
	clocks  cpuClocks
	// since, if not nil, is the CPU time that a process has used since it was added, ns: where each has a log of
	// its own, as that of a daemon, in which what it had used before is none of the target's.
	since   func(im *process.Image) uint64
	walks   overhead.Histogram // what each sample took in the walker
	before  uint64             // CPU time that an attached target had used, ns
	removed uint64             // CPU time of processes that were removed since, ns
	target  uint64             // and has used since, ns
	// handling is the agent's CPU time of handling records, ns.
	handling uint64
	// charged and handled are of what was charged to sources: handling, and what each had.
	charged uint64
	handled []uint64
	filled  uint64 // CPU time of the target for which the budget was filled, ns
	// throttled is when sources were charged last, ns.
	throttled uint64
	logged    totals // as last written to the log
}

// totals are all costs at a time, ns.
type totals struct {
	time, target, agent uint64
	source.Cost
}

func (m *meter) open(h *source.Host, sources []source.Source) {
	m.host, m.sources, m.clocks, m.handled = h, sources, cpuClocks{}, make([]uint64, len(sources))
}

// begin notes the CPU time that the targets have used so far.
func (m *meter) begin() { m.before = m.used() }

// used returns the CPU time of the targets' processes, ns.
func (m *meter) used() (sum uint64) {
	sum = m.removed
	for pid, im := range m.host.Processes.Images {
		sum += m.usedBy(pid, im)
	}
	return sum
}

func (m *meter) usedBy(pid uint32, im *process.Image) uint64 {
	if m.since != nil {
		return m.since(im)
	}
	return m.clocks.used(pid, im)
}

// remove keeps the CPU time of a process that is removed.
func (m *meter) remove(pid uint32, im *process.Image) {
	m.removed += m.usedBy(pid, im)
	m.clocks.drop(m.clocks[pid])
	delete(m.clocks, pid)
}

// targetCPU returns the CPU time that the target's processes have used since the capture began,
// ns. That of ended processes comes from their parent's wait.
func (m *meter) targetCPU() uint64 {
	sum := m.used()
	m.target = max(m.target, sum-min(sum, m.before))
	return m.target
}

// warmUp is how much CPU time of the target passes before the agent's is charged, ns: most
// of it is reading what the program consists of.
const warmUp = 1e9

// settled is the CPU time of the target after which costs of traps and interrupts that were measured long ago
// are measured again, ns: short captures do not take the time.
const settled = 3e9

// thorough is how often sources are charged for their cost where each process has a log of its own, ns: that takes reading the
// CPU time of all of them.
const thorough = 3e9

// throttle charges each source's cost, so that it keeps within its budget.
func (m *meter) throttle() error {
	time := perf.Monotonic()
	if m.since != nil && time-m.throttled < thorough {
		return m.glance(time)
	}
	m.throttled = time
	uses := make([]source.Use, len(m.sources))
	target := m.targetCPU()
	if target > settled {
		m.host.Budget.Costs.Refresh()
	}
	m.host.Budget.Pass(float64(target - m.filled))
	m.filled = target
	var all float64
	for i, s := range m.sources {
		cost, err := s.Cost()
		if err != nil {
			return err
		}
		uses[i] = source.Use{Cost: cost, Time: time, Target: target, Handling: float64(cost.Handled - m.handled[i])}
		all += uses[i].Handling
		m.handled[i] = cost.Handled
	}
	handling := float64(m.handling-m.charged) * overhead.CPUShare()
	m.charged = m.handling
	if target < warmUp || all == 0 {
		handling, all = 0, 1
	}
	for i, s := range m.sources {
		uses[i].Handling *= handling / all
		if err := s.Throttle(uses[i]); err != nil {
			return err
		}
	}
	return nil
}

// glance has sources look at processes whose probes may cost much of a sudden.
func (m *meter) glance(time uint64) error {
	for _, s := range m.sources {
		if g, ok := s.(source.Glancer); ok {
			if err := g.Glance(time); err != nil {
				return err
			}
		}
	}
	return nil
}

// total adds up all costs so far.
func (m *meter) total() (t totals, err error) {
	t.Part = 1
	for _, s := range m.sources {
		c, err := s.Cost()
		if err != nil {
			return t, err
		}
		t.Samples.Runs += c.Samples.Runs
		t.Samples.Ns += c.Samples.Ns
		t.Interrupts += c.Interrupts
		t.InterruptNs += c.InterruptNs
		t.Probes.Runs += c.Probes.Runs
		t.Probes.Ns += c.Probes.Ns
		t.ProbeNs += c.ProbeNs
		t.RTSNs += c.RTSNs
		t.StoodNs += c.StoodNs
		t.InPlace.Nursery += c.InPlace.Nursery
		t.InPlace.Blocks += c.InPlace.Blocks
		t.InPlace.Large += c.InPlace.Large
		if c.Part != 0 {
			t.Part = c.Part
		}
	}
	agent, err := AgentCPU()
	t.time, t.target, t.agent = perf.Monotonic(), m.targetCPU(), uint64(agent)
	return t, err
}

// AgentCPU returns the CPU time of the agent, and of its confined processes that have ended.
func AgentCPU() (time.Duration, error) {
	var ru unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &ru); err != nil {
		return 0, fmt.Errorf("read own CPU time: %w", err)
	}
	return time.Duration(ru.Utime.Nano()+ru.Stime.Nano()) + sandbox.CPUTime(), nil
}

// Overhead is the cost of the interval since the last call.
func (e *Engine) Overhead() (*eventlog.Overhead, error) {
	m := &e.meter
	t, err := m.total()
	if err != nil {
		return nil, err
	}
	l := m.logged
	m.logged = t
	interval := t.time - l.time
	part := func(now, before uint64) uint32 { return millionths(float64(now-before) / float64(max(interval, 1))) }
	probes, probesBefore := t.Probes.Ns+t.ProbeNs, l.Probes.Ns+l.ProbeNs
	hits, each := t.Probes.Runs-l.Probes.Runs, m.host.Budget.Costs.Trap()
	if hits > 0 {
		each = float64(t.ProbeNs-min(l.ProbeNs, t.ProbeNs)) / float64(hits)
	}
	return &eventlog.Overhead{
		IntervalNs:  interval,
		TargetNs:    t.target - min(l.target, t.target),
		EventNs:     t.Samples.Ns + t.RTSNs + t.StoodNs - l.Samples.Ns - l.RTSNs - l.StoodNs,
		AllocNs:     probes - min(probesBefore, probes),
		AgentNs:     t.agent - l.agent,
		Asked:       millionths(m.host.Budget.Asked),
		EventsTaken: millionths(t.Part),
		Nursery:     part(t.InPlace.Nursery, l.InPlace.Nursery),
		Blocks:      part(t.InPlace.Blocks, l.InPlace.Blocks),
		Large:       part(t.InPlace.Large, l.InPlace.Large),
		ProbeHits:   hits,
		ProbeNs:     uint32(min(each, math.MaxUint32)),
		InterruptNs: t.InterruptNs - min(l.InterruptNs, t.InterruptNs),
		Interrupts:  t.Interrupts - l.Interrupts,
	}, nil
}

func millionths(part float64) uint32 { return uint32(min(max(part, 0), 1)*1e6 + 0.5) }

func (m *meter) close() error { return m.clocks.Close() }

// Report adds what measuring has cost since the engine began to a summary.
func (e *Engine) Report(s *source.Summary) error {
	t, err := e.meter.total()
	if err != nil {
		return err
	}
	s.AgentCPU = time.Duration(t.agent)
	s.BPFRuns, s.BPFTime = t.Samples.Runs+t.Probes.Runs, time.Duration(t.Samples.Ns+t.Probes.Ns)
	s.ProbeHits, s.ProbeTime = t.Probes.Runs, time.Duration(t.ProbeNs+t.RTSNs)
	s.Interrupts, s.InterruptTime = t.Interrupts, time.Duration(t.InterruptNs)
	s.Stood = time.Duration(t.StoodNs)
	s.TargetCPU = time.Duration(t.target)
	s.WalkMedian = time.Duration(e.meter.walks.Quantile(0.5))
	s.WalkP99 = time.Duration(e.meter.walks.Quantile(0.99))
	return nil
}
