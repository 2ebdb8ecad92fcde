package main

import (
	"bufio"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"

	common "go.opentelemetry.io/proto/otlp/common/v1"
	otlp "go.opentelemetry.io/proto/otlp/profiles/v1development"
	"google.golang.org/protobuf/proto"

	"ccagent/eventlog"
	"ccagent/scripts/collector"
)

// probeEvery is how often a process is started whose first sample is timed. It runs alone in its
// control group, without a limit.
const (
	probeEvery   = 15 * time.Second
	probeService = "probe"
)

func measureHost(o *options, duration time.Duration) (err error) {
	dir := o.keep
	if dir == "" {
		if dir, err = os.MkdirTemp("", "host-"); err != nil {
			return err
		}
		defer os.RemoveAll(dir)
	} else if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	received := filepath.Join(dir, "received")
	if err := os.Mkdir(received, 0o700); err != nil {
		return err
	}
	c, err := collector.Start(o.collector, received)
	if err != nil {
		return err
	}
	defer c.Kill()
	p, err := newPopulation(o)
	defer p.stop()
	if err != nil {
		return err
	}
	// Half of the processes are there before the daemon.
	for n := range o.processes / 2 {
		if err := p.start(n); err != nil {
			return err
		}
	}
	d, err := startDaemon(o, dir, c.Address)
	if err != nil {
		return err
	}
	stopped := false
	defer func() {
		if !stopped {
			d.stop()
		}
	}()
	started, err := d.group.cpu()
	if err != nil {
		return err
	}
	for n := o.processes / 2; n < o.processes; n++ {
		if err := p.start(n); err != nil {
			return err
		}
	}
	begun := time.Now()
	probes := map[int]time.Time{}
	busy, err := busyTime()
	if err != nil {
		return err
	}
	var held int64
	var readings []reading
	for next := begun.Add(probeEvery); time.Since(begun) < duration; time.Sleep(time.Second) {
		if err := p.check(); err != nil {
			return err
		}
		if now, err := d.group.held(); err == nil {
			held = max(held, now)
		}
		used, err := d.group.cpu()
		if err != nil {
			return err
		}
		readings = append(readings, reading{time.Since(d.begun), used})
		if time.Now().After(next) {
			next = next.Add(probeEvery)
			pid, at, err := probe(p)
			if err != nil {
				return err
			}
			probes[pid] = at
		}
	}
	total, err := d.group.cpu()
	if err != nil {
		return err
	}
	if now, err := busyTime(); err == nil {
		busy = now - busy
	}
	wall := time.Since(begun)
	peak, err := d.group.peak()
	if err != nil {
		return err
	}
	s, err := d.status()
	if err != nil {
		return err
	}
	inBPF, err1 := d.metric("ccagent_bpf_seconds_total")
	interrupts, err2 := d.metric("ccagent_interrupt_seconds_total")
	inProbes, err4 := d.metric("ccagent_probe_seconds_total")
	profiled, err3 := d.metric("ccagent_profiled_cpu_seconds_total")
	for _, err := range []error{err1, err2, err3, err4} {
		if err != nil {
			return err
		}
	}
	stopped = true
	if err := d.stop(); err != nil {
		return fmt.Errorf("stop the daemon: %w", err)
	}
	pieces, bytes, err := bytesOf(d.dir, ".eventlog")
	if err != nil {
		return err
	}
	cpus := float64(runtime.NumCPU())
	ofHost := func(cpu, of time.Duration) float64 { return 100 * cpu.Seconds() / of.Seconds() / cpus }
	fmt.Printf("| %d processes, %v | |\n|---|---|\n", o.processes, wall.Round(time.Second))
	printLine("the host's CPUs are busy", "%.0f %%", ofHost(busy, wall))
	printLine("the daemon with its children", "%.2f %% of the host's CPU time; %.1f s until it had started", ofHost(total-started, wall), started.Seconds())
	if minutes, each, quiet, ok := steady(readings); ok {
		printLine(fmt.Sprintf("the same after the first pieces, in minutes with a set of pieces each (%d)", minutes),
			"%.2f %%, %.1f ms a second; %.1f where no pieces are closed, and %.0f ms for a set", ofHost(each, time.Minute), each.Seconds()/60*1e3, quiet*1e3, (each.Seconds()-60*quiet)*1e3)
	}
	printLine("sampling, in the kernel, as it reports", "%.2f %% of the time of the processes (BPF %.2f, interrupts %.2f, probes %.2f)", 100*(inBPF+interrupts+inProbes)/profiled, 100*inBPF/profiled, 100*interrupts/profiled, 100*inProbes/profiled)
	printLine("memory, peak", "%.0f MB with the cache of files, %.0f MB without; the daemon's own %.0f MB resident", float64(peak)/1e6, float64(held)/1e6, float64(s.RSS)/1e6)
	printLine("logs", "%d pieces, %.0f kB a process-hour", pieces, float64(bytes)/1e3/(wall.Hours()*float64(o.processes)))
	printLine("samples", "%d, %d lost, %d events not written, %d pieces failed", s.Samples, s.Lost, s.Unwritten, s.Failed)
	first, err := firstSamples(d.dir, probes)
	if err != nil {
		return err
	}
	printLine("from a program's start to its first sample", "%s", quantiles(first))
	lasting, ended, err := arrivals(received)
	if err != nil {
		return err
	}
	printLine("from a piece's last event to the collector", "%s", quantiles(lasting))
	printLine("of programs that have ended, whose last pieces wait for those of others", "%s", quantiles(ended))
	for _, e := range s.Engines {
		printLine("sent to "+e.Name, "%d pieces, %d wait, %v dropped, %.0f kB a process-hour before compression", e.Sent, e.Waiting, e.Dropped, float64(e.Bytes)/1e3/(wall.Hours()*float64(o.processes)))
	}
	return nil
}

// reading is the CPU time that the daemon and its children have used by a time since its start.
type reading struct {
	at, cpu time.Duration
}

// steady is what the daemon uses once the first pieces of all builds are closed, which takes two minutes: in a minute that begins between two
// sets of pieces, on average, and as a part of a CPU in the half of a minute in which none are closed. They are closed each minute
// since it started, and sent within half of one.
func steady(readings []reading) (minutes int, each time.Duration, quiet float64, ok bool) {
	const first = 2*time.Minute + 30*time.Second
	by := func(at time.Duration) (time.Duration, bool) {
		i := slices.IndexFunc(readings, func(r reading) bool { return r.at >= at })
		if i < 1 {
			return 0, false
		}
		a, b := readings[i-1], readings[i]
		return a.cpu + time.Duration(float64(b.cpu-a.cpu)*float64(at-a.at)/float64(b.at-a.at)), true
	}
	from, ok := by(first)
	if !ok {
		return 0, 0, 0, false
	}
	for at := first + time.Minute; ; at += time.Minute {
		to, known := by(at)
		if !known {
			break
		}
		const still = 28 * time.Second // before the minute's pieces are closed
		before, _ := by(at - time.Minute)
		after, _ := by(at - time.Minute + still)
		minutes++
		each = to - from
		quiet += (after - before).Seconds() / still.Seconds()
	}
	if minutes == 0 {
		return 0, 0, 0, false
	}
	return minutes, each / time.Duration(minutes), quiet / float64(minutes), true
}

// probe runs a program of some 0.2 s of CPU time.
func probe(p *population) (pid int, at time.Time, err error) {
	cmd := exec.Command(filepath.Join(p.o.programs, p.releases()[0], "host", "alloc31"), "8000")
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	cmd.Env = []string{"OTEL_SERVICE_NAME=" + probeService}
	at = time.Now()
	if err := cmd.Run(); err != nil {
		return 0, at, fmt.Errorf("run %v: %w", cmd.Args, err)
	}
	return cmd.Process.Pid, at, nil
}

// busyTime is what all CPUs have spent on anything.
func busyTime() (time.Duration, error) {
	text, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, err
	}
	var user, nice, system, idle, wait, irq, softirq int64
	if _, err := fmt.Sscanf(string(text), "cpu %d %d %d %d %d %d %d", &user, &nice, &system, &idle, &wait, &irq, &softirq); err != nil {
		return 0, err
	}
	const hz = 100 // of /proc/stat
	return time.Duration(user+nice+system+irq+softirq) * time.Second / hz, nil
}

// firstSamples returns for each probe how long after its start its first sample was.
func firstSamples(dir string, probes map[int]time.Time) (all []time.Duration, err error) {
	err = filepath.WalkDir(filepath.Join(dir, probeService), func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		pid, at, err := firstSample(path)
		if begun, ok := probes[pid]; err == nil && ok {
			all = append(all, at.Sub(begun))
		}
		return err
	})
	if missing := len(probes) - len(all); missing > 0 {
		fmt.Fprintf(os.Stderr, "host: %d of %d probes have no sample\n", missing, len(probes))
	}
	return all, err
}

func firstSample(path string) (pid int, at time.Time, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, at, err
	}
	defer f.Close()
	r := eventlog.NewReader(bufio.NewReader(f))
	for r.Next() {
		switch e := r.Record().Event.(type) {
		case *eventlog.Capture:
			pid, at = int(e.PID), time.Unix(0, int64(e.StartUnixNs))
			if n, _, ok := cutPID(path); ok {
				pid = n
			}
		case *eventlog.Sample:
			return pid, at.Add(time.Duration(r.Record().Time)), nil
		}
	}
	return 0, at, fmt.Errorf("%s has no sample: %w", path, r.Err())
}

func cutPID(path string) (pid int, rest string, ok bool) {
	name := filepath.Base(path)
	for i := range name {
		if name[i] == '-' {
			pid, err := strconv.Atoi(name[:i])
			return pid, name[i:], err == nil
		}
	}
	return 0, "", false
}

// arrivals returns how long after the last event of a piece the request with it was at the collector, of processes that go on and of those that
// probe has started, which have ended.
func arrivals(received string) (lasting, ended []time.Duration, err error) {
	files, err := filepath.Glob(filepath.Join(received, "*.pb"))
	if err != nil {
		return nil, nil, err
	}
	for _, path := range files {
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, nil, err
		}
		info, err := os.Stat(path)
		if err != nil {
			return nil, nil, err
		}
		var data otlp.ProfilesData
		if err := proto.Unmarshal(text, &data); err != nil {
			return nil, nil, err
		}
		for _, of := range data.ResourceProfiles {
			p := of.ScopeProfiles[0].Profiles[0]
			took := info.ModTime().Sub(time.Unix(0, int64(p.TimeUnixNano+p.DurationNano)))
			if slices.ContainsFunc(of.Resource.Attributes, func(a *common.KeyValue) bool {
				table := data.Dictionary.StringTable
				return table[a.KeyStrindex] == "service.name" && table[a.Value.GetStringValueStrindex()] == probeService
			}) {
				ended = append(ended, took)
			} else {
				lasting = append(lasting, took)
			}
		}
	}
	return lasting, ended, nil
}

func quantiles(all []time.Duration) string {
	if len(all) == 0 {
		return "none"
	}
	slices.Sort(all)
	at := func(share int) time.Duration { return all[(len(all)-1)*share/100].Round(time.Millisecond) }
	return fmt.Sprintf("median %v, 95 %% %v, longest %v (%d)", at(50), at(95), at(100), len(all))
}
