// Package metrics serves what the daemon knows of itself and of the processes that it profiles to
// Prometheus. Processes are added up by service, whose number is bounded, so that the number of series
// is too.
package metrics

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"ccagent/agent/counters"
	"ccagent/agent/daemon/control"
	"ccagent/internal/fair"
)

// maxServices bounds the services that have series of their own, of which those that processes of one user were the first to be called by are
// at most half: a process can call itself what it likes. The others are Other.
const maxServices = 400

// Other is the service of all processes beyond the bound.
const Other = "(other)"

// Metrics are all series. They may be set while they are served.
type Metrics struct {
	registry *prometheus.Registry
	agent    map[string]prometheus.Counter
	gauges   map[string]prometheus.Gauge

	mu       sync.Mutex
	services map[string]bool
	shares   *fair.Shares

	gcs, allocated, copied, cpu *prometheus.CounterVec
	processes, threads          *prometheus.GaugeVec
	live, inUse                 *prometheus.GaugeVec
	pauses                      *prometheus.HistogramVec
	green                       *prometheus.GaugeVec
	pushed, pushedBytes         *prometheus.CounterVec
	waiting, failing            *prometheus.GaugeVec
	before                      Agent
}

// Agent is the daemon's own state. Numbers that only grow are since it began.
type Agent struct {
	Samples, Lost, Unwritten, PiecesClosed, PiecesFailed uint64
	BPF, Interrupts, Probes, Target                      time.Duration
	Pieces, Closing, Stalled                             int
	Bytes                                                int64
	Engines                                              []control.Engine
}

// Process is what a process has used since it was added last.
type Process struct {
	Service string
	User    uint32
	RTS     *counters.RTS // nil if it cannot be read; Live and InUse are totals
	Threads int
	// Haskell threads that were seen and have not ended; −1 if that is not known.
	Haskell int
}

// New makes the series, of a version of the agent.
func New(version string) *Metrics {
	m := &Metrics{registry: prometheus.NewRegistry(), agent: map[string]prometheus.Counter{}, gauges: map[string]prometheus.Gauge{}, services: map[string]bool{}, shares: fair.Of(maxServices)}
	factory := promauto.With(m.registry)
	counter := func(name, help string) {
		m.agent[name] = factory.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	counter("ccagent_samples_total", "Samples that were taken.")
	counter("ccagent_samples_lost_total", "Samples for which the ring buffer had no room.")
	counter("ccagent_events_unwritten_total", "Events of logs that were dropped because the disk was full, or took nothing, for long.")
	counter("ccagent_pieces_closed_total", "Pieces of logs that were closed.")
	counter("ccagent_pieces_failed_total", "Pieces of logs that could not be finished.")
	counter("ccagent_bpf_seconds_total", "CPU time of the BPF programs that take samples.")
	counter("ccagent_interrupt_seconds_total", "CPU time of the interrupts that bring samples, as measured when the daemon began.")
	counter("ccagent_probe_seconds_total", "CPU time of traps at probes, and of all that probes of collections and threads take.")
	counter("ccagent_profiled_cpu_seconds_total", "CPU time of all profiled processes.")
	gauge := func(name, help string) {
		m.gauges[name] = factory.NewGauge(prometheus.GaugeOpts{Name: name, Help: help})
	}
	gauge("ccagent_pieces", "Pieces of logs that are kept.")
	gauge("ccagent_pieces_bytes", "Size of all pieces that are kept.")
	gauge("ccagent_pieces_closing", "Pieces that wait for their names.")
	gauge("ccagent_logs_stalled", "Logs that cannot be written now.")
	counters := func(name, help string, labels ...string) *prometheus.CounterVec {
		return factory.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, append([]string{"service"}, labels...))
	}
	gauges := func(name, help string) *prometheus.GaugeVec {
		return factory.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, []string{"service"})
	}
	m.gcs = counters("ccagent_haskell_collections_total", "Collections by the run-time system, of the oldest generation (major) and of others (minor).", "generation")
	m.allocated = counters("ccagent_haskell_allocated_bytes_total", "Bytes that Haskell code has allocated, as of the last collection.")
	m.copied = counters("ccagent_haskell_copied_bytes_total", "Bytes that collections have copied.")
	m.cpu = counters("ccagent_haskell_cpu_seconds_total", "CPU time by what ran: the exact time of the processes, divided by the categories of their samples when a piece is closed.", "category")
	m.processes = gauges("ccagent_haskell_processes", "Processes that are profiled.")
	m.threads = gauges("ccagent_haskell_os_threads", "Threads of the operating system.")
	m.live = gauges("ccagent_haskell_live_bytes", "What the last collections left in the heap.")
	m.inUse = gauges("ccagent_haskell_heap_bytes", "Memory that the run-time system has taken for the heap.")
	m.pauses = factory.NewHistogramVec(prometheus.HistogramOpts{
		Name: "ccagent_haskell_gc_pause_seconds", Help: "Pauses of the collections that were seen, from the request to stop until the program goes on.",
		Buckets: prometheus.ExponentialBuckets(20e-6, 2.5, 15), // to 7.5 s
	}, []string{"service", "generation"})
	m.green = gauges("ccagent_haskell_threads", "Haskell threads that were seen and have not ended.")
	engine := []string{"engine"}
	m.pushed = factory.NewCounterVec(prometheus.CounterOpts{Name: "ccagent_push_pieces_total", Help: "Pieces that were sent to an engine (result sent), or dropped for a reason."}, []string{"engine", "result"})
	m.pushedBytes = factory.NewCounterVec(prometheus.CounterOpts{Name: "ccagent_push_bytes_total", Help: "Size of what was sent to an engine, before compression."}, engine)
	m.waiting = factory.NewGaugeVec(prometheus.GaugeOpts{Name: "ccagent_push_waiting", Help: "Pieces that wait to be sent."}, engine)
	m.failing = factory.NewGaugeVec(prometheus.GaugeOpts{Name: "ccagent_push_failing", Help: "1 if the last attempt to send has failed."}, engine)
	build := factory.NewGauge(prometheus.GaugeOpts{Name: "ccagent_build_info", Help: "1, with the version as a label.", ConstLabels: prometheus.Labels{"version": version}})
	build.Set(1)
	m.registry.MustRegister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), collectors.NewGoCollector())
	return m
}

// SetAgent sets the daemon's own series.
func (m *Metrics) SetAgent(a Agent) {
	b := m.before
	m.before = a
	add := func(name string, now, before float64) { m.agent[name].Add(max(now-before, 0)) }
	add("ccagent_samples_total", float64(a.Samples), float64(b.Samples))
	add("ccagent_samples_lost_total", float64(a.Lost), float64(b.Lost))
	add("ccagent_events_unwritten_total", float64(a.Unwritten), float64(b.Unwritten))
	add("ccagent_pieces_closed_total", float64(a.PiecesClosed), float64(b.PiecesClosed))
	add("ccagent_pieces_failed_total", float64(a.PiecesFailed), float64(b.PiecesFailed))
	add("ccagent_bpf_seconds_total", a.BPF.Seconds(), b.BPF.Seconds())
	add("ccagent_interrupt_seconds_total", a.Interrupts.Seconds(), b.Interrupts.Seconds())
	add("ccagent_probe_seconds_total", a.Probes.Seconds(), b.Probes.Seconds())
	add("ccagent_profiled_cpu_seconds_total", a.Target.Seconds(), b.Target.Seconds())
	m.setEngines(a.Engines, b.Engines)
	m.gauges["ccagent_pieces"].Set(float64(a.Pieces))
	m.gauges["ccagent_pieces_bytes"].Set(float64(a.Bytes))
	m.gauges["ccagent_pieces_closing"].Set(float64(a.Closing))
	m.gauges["ccagent_logs_stalled"].Set(float64(a.Stalled))
}

// setEngines sets the series of engines, whose numbers are since the daemon began.
func (m *Metrics) setEngines(now, before []control.Engine) {
	then := map[string]control.Engine{}
	for _, e := range before {
		then[e.Name] = e
	}
	for _, e := range now {
		b := then[e.Name]
		m.pushed.WithLabelValues(e.Name, "sent").Add(float64(e.Sent - b.Sent))
		for reason, n := range e.Dropped {
			m.pushed.WithLabelValues(e.Name, reason).Add(float64(n - b.Dropped[reason]))
		}
		m.pushedBytes.WithLabelValues(e.Name).Add(float64(e.Bytes - b.Bytes))
		m.waiting.WithLabelValues(e.Name).Set(float64(e.Waiting))
		failing := 0.0
		if e.Failing != "" {
			failing = 1
		}
		m.failing.WithLabelValues(e.Name).Set(failing)
	}
}

// service is the label of a service, one of whose processes is of a user.
func (m *Metrics) service(name string, user uint32) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.services[name] {
		if m.shares.Take(user, 1) != nil {
			return Other
		}
		m.services[name] = true
	}
	return name
}

// SetProcesses sets the series of all processes that are profiled.
func (m *Metrics) SetProcesses(all []Process) {
	type sums struct {
		processes, threads, live, inUse, green float64
		counted                                bool // green is known of some
	}
	by := map[string]sums{}
	m.mu.Lock()
	for name := range m.services {
		by[name] = sums{}
	}
	m.mu.Unlock()
	for _, p := range all {
		name := m.service(p.Service, p.User)
		s := by[name]
		s.processes++
		s.threads += float64(p.Threads)
		if p.Haskell >= 0 {
			s.green, s.counted = s.green+float64(p.Haskell), true
		}
		if r := p.RTS; r != nil {
			s.live, s.inUse = s.live+float64(r.Live), s.inUse+float64(r.InUse)
			m.gcs.WithLabelValues(name, "major").Add(float64(min(r.Major, r.Collections)))
			m.gcs.WithLabelValues(name, "minor").Add(float64(r.Collections - min(r.Major, r.Collections)))
			m.allocated.WithLabelValues(name).Add(float64(r.Allocated))
			m.copied.WithLabelValues(name).Add(float64(r.Copied))
		}
		by[name] = s
	}
	for name, s := range by {
		m.processes.WithLabelValues(name).Set(s.processes)
		m.threads.WithLabelValues(name).Set(s.threads)
		m.live.WithLabelValues(name).Set(s.live)
		m.inUse.WithLabelValues(name).Set(s.inUse)
		if s.counted {
			m.green.WithLabelValues(name).Set(s.green)
		} else {
			m.green.DeleteLabelValues(name)
		}
	}
}

// Collected adds a collection of a process of a service.
func (m *Metrics) Collected(service string, user uint32, pause time.Duration, major bool) {
	generation := "minor"
	if major {
		generation = "major"
	}
	m.pauses.WithLabelValues(m.service(service, user), generation).Observe(pause.Seconds())
}

// AddCPU adds CPU time of a service by category.
func (m *Metrics) AddCPU(service string, user uint32, byCategory map[string]time.Duration) {
	name := m.service(service, user)
	for category, d := range byCategory {
		m.cpu.WithLabelValues(name, category).Add(d.Seconds())
	}
}

// Serve answers scrapes of /metrics at a listener until ctx ends.
func (m *Metrics) Serve(ctx context.Context, l net.Listener) error {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{MaxRequestsInFlight: 4}))
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second, WriteTimeout: 30 * time.Second, MaxHeaderBytes: 1 << 14}
	stop := context.AfterFunc(ctx, func() { s.Close() })
	defer stop()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve metrics: %w", err)
	}
	return nil
}
