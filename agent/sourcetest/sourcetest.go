// Package sourcetest has what tests of sources share: a host of the real kernel whose ring
// buffer is so small that records are lost, and a look at the log.
package sourcetest

import (
	"ccagent/agent/closures"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/rlimit"
	"golang.org/x/sys/unix"

	"ccagent/agent/invoker"
	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/sink"
	"ccagent/agent/source"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
	"ccagent/symbolize/worker"
)

// Main runs tests; in a child that compiles call frame information it does that.
func Main(m *testing.M) {
	worker.Main()
	os.Exit(m.Run())
}

// Rig is one source on the real kernel. Nobody reads its ring buffer unless Consume is called.
type Rig struct {
	*source.Host
	Source source.Source
	log    *sink.Sink
	Warned []string
}

// Open opens the source of the named events of a kind, loaded. Root is needed.
func Open(t *testing.T, kind source.Kind, rate perf.Rate, events ...string) *Rig {
	t.Helper()
	asked, err := source.Parse([]source.Kind{kind}, events, rate)
	if err != nil {
		t.Fatal(err)
	}
	if err := rlimit.RemoveMemlock(); err != nil {
		t.Fatal(err)
	}
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		t.Fatal(err)
	}
	config := bpf.Config{MaxFrames: 32, CPUs: cpus, RingBytes: os.Getpagesize(), UnwindRows: process.UnwindRows(0), PIDNamespace: namespace(t)}
	walker, err := bpf.Load(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, walker.Close()) })
	who, err := invoker.Find("")
	if err != nil {
		t.Fatal(err)
	}
	r := &Rig{}
	warn := func(line string) { r.Warned = append(r.Warned, line) }
	log := sink.New(sink.Config{Who: who, Warn: warn})
	r.log = log
	if err := log.Create(filepath.Join(t.TempDir(), "log.eventlog"), "", 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { check(t, log.Close()) })
	r.Host = &source.Host{
		Walker: walker, Log: sink.NewSet(warn, log), Budget: overhead.NewBudget(0), Walks: &overhead.Histogram{}, Closures: closures.NewRegistry(),
		TargetCPU: func() uint64 { return 0 },
		Image:     func(pid uint32) (*process.Image, error) { return r.Processes.Images[pid], nil },
		Write: func(_ *process.Image, s *perf.Sample) (*eventlog.Sample, error) {
			return &eventlog.Sample{Event: uint32(s.Event), PID: s.Pid, TID: s.Tid, Weight: s.Period}, nil
		},
	}
	r.Place, r.WriteAt = r.Write, func(im *process.Image, time uint64, e *eventlog.Sample) error { return log.Emit(time, e) }
	r.LogOf = func(uint32) *sink.Sink { return log }
	r.Threads = func() ([]int, bool, error) { return nil, false, nil }
	set := asked.Sources(r.Host)
	if len(set.All) != 1 {
		t.Fatalf("%d sources of one kind", len(set.All))
	}
	r.Source = set.All[0]
	r.Processes = process.New(walker, r.Host.Log, who, r.Source)
	t.Cleanup(func() {
		r.Processes.StopCompiling(0)
		check(t, errors.Join(r.Source.Close(), r.Processes.Close()))
	})
	if err := r.Source.Load(); err != nil {
		t.Fatal(err)
	}
	return r
}

func check(t *testing.T, err error) {
	if err != nil {
		t.Error(err)
	}
}

// namespace is that of the test's process ids, nil where it is the initial one.
func namespace(t *testing.T) *bpf.PIDNamespace {
	t.Helper()
	ns, err := bpf.OwnPIDNamespace()
	if err != nil {
		t.Fatal(err)
	}
	return ns
}

// Losses gives what the log has of losses of a reason, after an Account.
func (r *Rig) Losses(t *testing.T, reason eventlog.LossReason) (n uint64) {
	t.Helper()
	if err := r.Source.Account(); err != nil {
		t.Fatal(err)
	}
	r.Each(t, func(e eventlog.Event) {
		if l, ok := e.(*eventlog.Loss); ok && l.Reason == reason {
			n += l.Count
		}
	})
	return n
}

// Each calls f with the events of the log.
func (r *Rig) Each(t *testing.T, f func(eventlog.Event)) {
	t.Helper()
	if err := r.log.Flush(); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(r.log.File().Path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	events := eventlog.NewReader(file)
	for events.Next() {
		f(events.Record().Event)
	}
	if events.Err() != nil {
		t.Fatal(events.Err())
	}
}

// Lost is how many records of an event the ring buffer had no room for.
func (r *Rig) Lost(t *testing.T, event int) (n uint64) {
	t.Helper()
	perCPU, err := r.Walker.Lost(event)
	if err != nil {
		t.Fatal(err)
	}
	for _, lost := range perCPU {
		n += lost
	}
	return n
}

// Self is the calling thread.
func Self() int { return unix.Gettid() }

// Discover adds a process that runs already.
func (r *Rig) Discover(pid uint32, comm, path string) (*process.Image, error) {
	return r.Processes.Discover(r.log, pid, comm, path, false)
}

// Run runs a program until the test's end and has the source attach to it.
func (r *Rig) Run(t *testing.T, exe string, args ...string) *process.Image {
	t.Helper()
	cmd := exec.Command(exe, args...)
	cmd.Dir = t.TempDir() // where run-time systems leave heap profiles
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		check(t, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
	})
	// Start returns when the kernel closes files, before it has mapped the program; the
	// environment is what it sets last.
	Until(t, "the program is executed", func() bool {
		environment, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", cmd.Process.Pid))
		return err == nil && len(environment) > 0
	})
	im, err := r.Discover(uint32(cmd.Process.Pid), "", exe)
	if err != nil {
		t.Fatal(err)
	}
	return im
}

// patience is how long Until waits for what has to come.
const patience = 5 * time.Minute

// Until waits until something is so.
func Until(t *testing.T, what string, is func() bool) {
	t.Helper()
	for begun := time.Now(); !is(); time.Sleep(time.Millisecond) {
		if time.Since(begun) > patience {
			t.Fatalf("not within %v: %s", patience, what)
		}
	}
}
