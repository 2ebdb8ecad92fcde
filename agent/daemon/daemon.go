package daemon

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"sync"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"ccagent/agent/config"
	"ccagent/agent/daemon/control"
	"ccagent/agent/daemon/metrics"
	"ccagent/agent/daemon/segments"
	"ccagent/agent/discovery"
	"ccagent/agent/engine"
	"ccagent/agent/invoker"
	"ccagent/agent/process"
	"ccagent/agent/sink"
	"ccagent/agent/source"
	"ccagent/agent/symbols"
	"ccagent/eventlog"
	"ccagent/perf"
	"ccagent/symbolize/debuginfod"
)

// Options are what the command line says.
type Options struct {
	Config   string // file
	StateDir string
	Socket   string
	Version  string // of the agent
	// Log takes a line for the daemon's own log.
	Log func(line string)
	// Closed, if not nil, is called with the paths of pieces that are closed together, those of a user's programs one after the
	// other, by one goroutine.
	Closed func(paths ...string)
	// Engines, if not nil, says how sending pieces goes.
	Engines func() []control.Engine
	// Dump writes a log of what the threads of a process do now, or of its heap, beside the loop: it may take long.
	Dump func(context.Context, Dump) (Dumped, error)
	// Ready, if not nil, is called when the control socket answers.
	Ready func()
}

const (
	// flushInterval is what a killed daemon loses at most.
	flushInterval  = 5 * time.Second
	retainInterval = 10 * time.Second
	// longestHeld is for how long the last piece of a process waits at most to be closed with others.
	longestHeld = time.Minute
	// throttleInterval is how often the budget is looked at.
	throttleInterval = time.Second
	// newInterval is for how long it is looked at in each turn after a process was taken in.
	newInterval = 2 * throttleInterval
	// unwindRows is the room for call frame information of all programs together, of which those of one user have at most
	// half: some 40 MB of the kernel's memory if that is used.
	unwindRows = 8 << 20
	maxFrames  = 128
	// symbolMemory bounds the child that looks names up, in bytes.
	symbolMemory = 256 << 20
)

// Daemon is a running daemon.
type Daemon struct {
	opts   Options
	config config.Daemon
	who    *invoker.User
	folder *segments.Folder
	disk   *sink.Disk // writes the pieces
	logs   *sink.Set
	asked  *source.Asked
	engine *engine.Engine
	finder *discovery.Finder
	socket *net.UnixListener
	begun  time.Time

	procs map[uint32]*proc
	forks forks
	// excluded are the Haskell processes that a rule excludes.
	excluded map[uint32]discovery.Process
	// looked are those that were looked at since the last flush, since they had mapped a library of Haskell's.
	looked map[uint32]bool
	failed map[uint32]failure
	boosts map[uint32]boost
	dumps  dumps
	clock  segments.Clock
	taken  time.Time // when a process was taken in last
	crowd  bool      // it was reported that there is no room for more processes
	apart  bool      // the clocks have come apart: pieces are to begin anew
	full   bool      // some log could not be written last
	missed missed

	calls  chan func() // of the control socket, run by the loop
	closer *closer
	kept   kept
	told   uint64 // events that could not be written, as reported last

	metrics *metrics.Metrics // nil if there are none
	scraped net.Listener
}

// kept is what is in the folder, as it was looked at last.
type kept struct {
	mu      sync.Mutex
	looking bool
	pieces  int
	bytes   int64
}

func (k *kept) amount() (pieces int, bytes int64) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.pieces, k.bytes
}

// Run profiles the host until ctx is cancelled. hangup asks to read the configuration again.
func Run(ctx context.Context, hangup <-chan os.Signal, o Options) (err error) {
	d := &Daemon{opts: o, begun: time.Now(), procs: map[uint32]*proc{}, forks: newForks(),
		excluded: map[uint32]discovery.Process{}, failed: map[uint32]failure{}, looked: map[uint32]bool{}, boosts: map[uint32]boost{}, calls: make(chan func()), finder: discovery.New()}
	defer func() { err = errors.Join(err, d.close()) }()
	if err := d.start(); err != nil {
		return err
	}
	served := make(chan error, 1)
	go func() { served <- control.Serve(ctx, d.socket, d.handle) }()
	if d.scraped != nil {
		go func() {
			if err := d.metrics.Serve(ctx, d.scraped); err != nil {
				d.opts.Log(err.Error())
			}
		}()
	}
	if o.Ready != nil {
		o.Ready()
	}
	d.notify(systemd.SdNotifyReady)
	return d.loop(ctx, hangup, served)
}

// start loads and opens everything, and takes in the processes that run.
func (d *Daemon) start() error {
	c, err := Check(d.opts.Config)
	if err != nil {
		return err
	}
	d.config = c.Daemon
	// A sudo rule for ccagent permits its use, not to see what all users run.
	if d.who, err = invoker.Find("root"); err != nil {
		return fmt.Errorf("the daemon profiles processes of all users: run it as a service or in a shell of root's (sudo -i): %w", err)
	}
	if d.folder, err = segments.Open(d.opts.StateDir); err != nil {
		return err
	}
	// Before anything is loaded: two daemons would measure all twice.
	if err := os.MkdirAll(filepath.Dir(d.opts.Socket), 0o755); err != nil {
		return fmt.Errorf("make the control socket: %w", err)
	}
	if d.socket, err = control.Listen(d.opts.Socket, groupOf(d.config.Group)); err != nil {
		return err
	}
	events := slices.Clone(d.config.Events)
	if d.config.Heap > 0 {
		events = append(events, "heap="+d.config.Heap.String())
	}
	if d.asked, err = source.Parse(engine.HostKinds(), events, perf.Rate{Frequency: d.config.Frequency}); err != nil {
		return err
	}
	for _, line := range d.asked.Notes() {
		d.opts.Log(line)
	}
	if d.dumps.dir, err = dumpFolder(d.opts.StateDir); err != nil {
		return err
	}
	d.logs, d.disk = sink.NewSet(d.opts.Log), sink.NewDisk()
	d.engine, err = engine.Open(engine.Config{
		Asked: d.asked, Logs: d.logs, Who: d.who, Chooser: d, MaxFrames: maxFrames,
		UnwindRows: unwindRows, MaxOverhead: d.config.MaxOverhead / 100, MaxPause: d.config.HeapPause, Collected: d.collected,
	})
	if err != nil {
		return err
	}
	left, err := d.folder.Unfinished()
	if err != nil {
		return err
	}
	if err := d.listenMetrics(); err != nil {
		return err
	}
	store := symbols.New(symbols.Config{Who: d.who.Credentials(), CacheDir: invoker.CacheDir(d.who.UID), Servers: debuginfod.New(d.config.Debuginfod, invoker.DebugCache(d.who.UID), d.who.Credentials()), Memory: symbolMemory})
	d.closer = newCloser(d.opts, left, d.disk, store, d.metrics)
	if err := d.engine.FollowHost(); err != nil {
		return err
	}
	if err := d.engine.Start(); err != nil {
		return err
	}
	all, err := d.finder.All()
	if err != nil {
		return fmt.Errorf("list processes: %w", err)
	}
	for _, p := range all {
		if err := d.take(p); err != nil {
			return err
		}
	}
	return nil
}

// groupOf is the id of a group, −1 if there is none of that name.
func groupOf(name string) int {
	g, err := user.LookupGroup(name)
	if err != nil {
		return -1
	}
	id, err := strconv.Atoi(g.Gid)
	if err != nil {
		return -1
	}
	return id
}

// loop measures until ctx is cancelled.
func (d *Daemon) loop(ctx context.Context, hangup <-chan os.Signal, served <-chan error) error {
	fds, err := d.engine.Changes()
	if err != nil {
		return errors.Join(err, d.finish())
	}
	watching, end := context.WithCancel(context.Background())
	defer end()
	turn, err := newTurns(watching, fds)
	if err != nil {
		return errors.Join(err, d.finish())
	}
	defer turn.timer.Stop()
	looks := time.NewTimer(d.engine.NextLook())
	defer looks.Stop()
	watchdog := d.watchdog()
	flushed, retained, throttled := time.Now(), time.Time{}, time.Time{}
	for {
		watchdog(time.Now())
		select {
		case <-ctx.Done():
			d.notify(systemd.SdNotifyStopping)
			return d.finish()
		case <-hangup:
			if err := d.reload(); err != nil {
				d.opts.Log(fmt.Sprintf("the configuration stays as it was: %v", err))
			}
			continue
		case err := <-served:
			if err != nil {
				d.opts.Log(fmt.Sprintf("requests are not answered any more: %v", err))
			}
			served = nil
		case call := <-d.calls:
			call()
			continue
		case <-turn.changed:
			turn.hasten(time.Now())
			continue
		case <-looks.C:
			if err := d.engine.Look(); err != nil {
				return errors.Join(err, d.finish())
			}
			looks.Reset(d.engine.NextLook())
			continue
		case <-turn.timer.C:
		}
		turn.next(watching, time.Now(), d.pause(time.Now()))
		if err := d.engine.Drain(); err != nil {
			return errors.Join(err, d.finish())
		}
		now := time.Now()
		if d.clock.Pass(segments.ReadClocks()) {
			d.opts.Log("the wall clock was set, or the host was suspended: all logs begin new pieces, which say when")
			d.apart, flushed = true, time.Time{}
		}
		if err := d.endBoosts(now); err != nil {
			return errors.Join(err, d.finish())
		}
		// What the probes of a new process cost is not known yet.
		if now.Sub(throttled) >= throttleInterval || now.Sub(d.taken) < newInterval || now.Before(throttled) {
			throttled = now
			if err := d.engine.Throttle(); err != nil {
				return errors.Join(err, d.finish())
			}
		}
		if now.Sub(flushed) >= min(flushInterval, d.config.Piece.Age) || now.Before(flushed) {
			flushed = now
			if err := d.flush(now); err != nil {
				return errors.Join(err, d.finish())
			}
		}
		if now.Sub(retained) >= retainInterval || now.Before(retained) {
			retained = now
			d.retain()
		}
		looks.Reset(d.engine.NextLook()) // there may be other processes
	}
}

// flush writes what has been counted, ends the logs of processes that have ended, and begins new
// pieces where it is time to.
func (d *Daemon) flush(now time.Time) error {
	if err := d.account(); err != nil {
		return err
	}
	if err := d.tryAgain(); err != nil {
		return err
	}
	if err := d.closer.together(func() error { return d.flushEach(now) }); err != nil {
		return err
	}
	d.apart = false
	if err := d.count(); err != nil {
		return err
	}
	clear(d.looked)
	if err := d.catchUp(now); err != nil {
		return err
	}
	d.reportProblem()
	d.closer.again(now, min(longestHeld, d.config.Piece.Age))
	d.forget()
	return nil
}

// holdAll is what logs that cannot be written hold at most together, in bytes, beside what the disk has been handed.
const holdAll = 64 << 20

// flushEach writes each process's log, or ends it, or begins its next piece.
func (d *Daemon) flushEach(now time.Time) error {
	each := holdAll / (len(d.procs) + 1)
	for _, p := range d.procs {
		p.log.HoldAtMost(each)
		piece := d.config.Piece
		old := d.apart || d.age(now) != d.age(p.since) || p.log.Written() >= piece.Size
		var err error
		switch {
		case p.image.Exited:
			err = d.end(p)
		case errors.Is(p.problem, eventlog.ErrNoRoom), old && !p.log.Counts.None(): // it stays empty as long as nothing runs
			err = d.next(p)
		default:
			p.problem = p.log.Flush()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// age numbers the stretches of time that pieces are of. All pieces end with them, so that they are named
// and sent together. Hosts differ in when the daemon began.
func (d *Daemon) age(at time.Time) time.Duration { return at.Sub(d.begun) / d.config.Piece.Age }

// account has the sources write what they hold. Pieces are closed only after it.
func (d *Daemon) account() error { return d.engine.Account() }

// problem returns how many logs cannot be written, and why one of them cannot.
func (d *Daemon) problem() (logs int, err error) {
	logs, err = d.closer.stuckBy()
	for _, p := range d.procs {
		if p.problem != nil {
			logs, err = logs+1, p.problem
		}
	}
	for _, f := range d.failed {
		logs, err = logs+1, f.err
	}
	return logs, err
}

// unwritten is how many events could not be written.
func (d *Daemon) unwritten() uint64 {
	d.closer.mu.Lock()
	n := d.closer.unwritten
	d.closer.mu.Unlock()
	for _, p := range d.procs {
		n += p.log.Unwritten()
	}
	return n
}

// reportProblem reports that logs cannot be written, that they can be again, and what is missing in them.
func (d *Daemon) reportProblem() {
	logs, err := d.problem()
	if err != nil && !d.full {
		d.opts.Log(fmt.Sprintf("%d logs cannot be written now; each holds up to 1 MB until they can be: %v", logs, err))
	}
	if err == nil && d.full {
		d.opts.Log("all logs are written again")
	}
	if n := d.unwritten(); err == nil && n > d.told {
		d.opts.Log(fmt.Sprintf("%d events were dropped, since the disk was full or took nothing for too long: logs lack them, and say so", n-d.told))
		d.told = n
	}
	d.full = err != nil
}

// retain has the oldest pieces removed beyond what is to be kept, unless that is under way yet.
func (d *Daemon) retain() {
	k := &d.kept
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.looking {
		return
	}
	k.looking = true
	limits := segments.Limits{Bytes: int64(d.config.Keep.Size), Age: d.config.Keep.Age}
	clock := d.clock.Copy()
	d.disk.Do(func() {
		pieces, bytes, err := d.folder.Retain(limits, clock.Age, d.disk.Open)
		k.mu.Lock()
		k.looking, k.pieces, k.bytes = false, pieces, bytes
		k.mu.Unlock()
		if err != nil {
			d.opts.Log(err.Error())
		}
	})
}

// reload reads the configuration again. What cannot be changed while the daemon runs is refused.
func (d *Daemon) reload() error {
	d.notify(reloading())
	defer d.notify(systemd.SdNotifyReady)
	c, err := Check(d.opts.Config)
	if err != nil {
		return err
	}
	fresh := c.Daemon
	if fmt.Sprint(fresh.Events, fresh.Heap, fresh.HeapPause, fresh.Frequency, fresh.MaxOverhead, fresh.Group, fresh.Metrics, fresh.Push, fresh.Debuginfod) != fmt.Sprint(d.config.Events, d.config.Heap, d.config.HeapPause, d.config.Frequency, d.config.MaxOverhead, d.config.Group, d.config.Metrics, d.config.Push, d.config.Debuginfod) {
		return fmt.Errorf("%s: events, heap, heap-pause, frequency, max-overhead, group, metrics, push and debuginfod change when the daemon is started anew", d.opts.Config)
	}
	// CPU time will be counted up to now, so the samples that it is divided among have to be in.
	if err := d.engine.Drain(); err != nil {
		return err
	}
	d.config = fresh
	d.opts.Log("the configuration was read again")
	// The rules may choose others now.
	for _, p := range d.procs {
		if !d.chooses(p.Process) || !reflect.DeepEqual(p.terms, d.terms(p.Process)) {
			if err := d.drop(p); err != nil {
				return err
			}
		}
	}
	clear(d.excluded)
	clear(d.failed)
	all, err := d.finder.All()
	if err != nil {
		return err
	}
	for _, p := range all {
		if d.procs[p.PID] == nil {
			if err := d.take(p); err != nil {
				return err
			}
		}
	}
	return d.renewBoosts()
}

// finish ends all logs.
func (d *Daemon) finish() error {
	var errs []error
	for _, s := range d.engine.Sources.All {
		errs = append(errs, s.Stop())
	}
	errs = append(errs, d.engine.DrainAll(), d.account())
	errs = append(errs, d.closer.together(func() error {
		var errs []error
		for _, p := range d.procs {
			errs = append(errs, d.end(p))
		}
		return errors.Join(errs...)
	}))
	d.engine.Processes.EndCompiling()
	return errors.Join(errs...)
}

// close releases everything.
func (d *Daemon) close() error {
	var errs []error
	if d.socket != nil {
		errs = append(errs, d.socket.Close())
	}
	if d.scraped != nil {
		_ = d.scraped.Close() // its server has, if there was one
	}
	if d.closer != nil {
		d.closer.stop()
	}
	for _, p := range d.procs {
		errs = append(errs, p.log.Close())
	}
	if d.disk != nil {
		d.disk.Close()
	}
	if d.engine != nil {
		errs = append(errs, d.engine.Close())
	}
	return errors.Join(errs...)
}

var _ engine.Chooser = (*Daemon)(nil)

// Unknown is called when a process is sampled that is not known: one that was forked, and that has
// now done something for the first time.
func (d *Daemon) Unknown(pid uint32) (*process.Image, error) {
	if f, ok := d.forks.remove(pid); ok {
		return d.fork(pid, f)
	}
	if found, ok := d.finder.Look(pid); ok && d.chooses(found) {
		err := d.take(found)
		if p := d.procs[pid]; err == nil && p != nil {
			return p.image, nil
		}
		return nil, err
	}
	return nil, d.engine.Remove(pid)
}
