package daemon

import (
	"net"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"ccagent/agent/counters"
	"ccagent/agent/daemon/metrics"
	"ccagent/agent/process"
	"ccagent/agent/sink"
	"ccagent/agent/source"
	"ccagent/eventlog"
)

// listenMetrics makes the metrics, if they are configured. Nobody is served yet.
func (d *Daemon) listenMetrics() (err error) {
	if d.config.Metrics == "" {
		return nil
	}
	d.metrics = metrics.New(d.opts.Version)
	d.scraped, err = net.Listen("tcp", d.config.Metrics)
	return err
}

// count reads what the run-time systems have counted, writes it into their logs, and sets the metrics.
func (d *Daemon) count() error {
	all := make([]metrics.Process, 0, len(d.procs))
	for _, p := range d.procs {
		one := metrics.Process{Service: p.Service, User: p.UID}
		if c, err := counters.Read(p.image); err == nil && !p.image.Exited {
			since := c.Since(p.counted)
			if !p.counts { // what it has done before is not the daemon's to count
				since = counters.RTS{Live: c.Live, InUse: c.InUse}
			}
			one.RTS = &since
			if err := p.writeHeap(c, since.Major > 0); err != nil {
				return err
			}
			p.counted, p.counts = c, true
		}
		if d.metrics != nil {
			one.Threads, one.Haskell = threadsOf(p.PID), -1
			if n, ok := d.engine.HaskellThreads(p.image); ok && !p.image.Exited {
				one.Haskell = n
			}
			all = append(all, one)
		}
	}
	if d.metrics == nil {
		return nil
	}
	d.metrics.SetProcesses(all)
	return d.setAgent()
}

// collected is called with each collection that was seen.
func (d *Daemon) collected(im *process.Image, pause uint64, major bool) {
	if p := d.procs[im.PID]; p != nil && d.metrics != nil {
		d.metrics.Collected(p.Service, p.UID, time.Duration(pause), major)
	}
}

// writeHeap writes the heap's size into a process's log, and what the last major collection that was
// seen has left, if they have changed or the log does not say. Minor ones after it, since the counters
// were read before, add to that what they did not look at.
func (p *proc) writeHeap(c counters.RTS, major bool) error {
	fresh := p.heapIn != p.log
	p.heapIn = p.log
	if c.InUse != p.counted.InUse || fresh {
		if err := p.log.Emit(sink.Now, &eventlog.HeapSize{Bytes: c.InUse}); err != nil {
			return err
		}
	}
	if major {
		p.live = c.Live
	}
	if !major && !fresh || p.live == 0 {
		return nil
	}
	return p.log.Emit(sink.Now, &eventlog.HeapLive{Bytes: p.live})
}

func (d *Daemon) setAgent() error {
	s := d.status()
	var cost source.Summary
	if err := d.engine.Report(&cost); err != nil {
		return err
	}
	d.closer.mu.Lock()
	closing, closed := len(d.closer.queue)+len(d.closer.held)+len(d.closer.nameless), d.closer.pieces
	d.closer.mu.Unlock()
	d.metrics.SetAgent(metrics.Agent{
		Samples: s.Samples, Lost: s.Lost, Unwritten: s.Unwritten, PiecesClosed: closed, PiecesFailed: s.Failed,
		BPF: cost.BPFTime, Interrupts: cost.InterruptTime, Probes: cost.ProbeTime, Target: cost.TargetCPU,
		Pieces: s.Pieces, Closing: closing, Stalled: s.Stalled, Bytes: s.Bytes, Engines: s.Engines,
	})
	return nil
}

// threadsOf counts a process's threads, 0 once it has ended.
func threadsOf(pid uint32) int {
	var st unix.Stat_t
	// A folder of /proc has a link for each folder in it, besides two.
	if unix.Stat("/proc/"+strconv.FormatUint(uint64(pid), 10)+"/task", &st) != nil {
		return 0
	}
	return int(st.Nlink) - 2
}
