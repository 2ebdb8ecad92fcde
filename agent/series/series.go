package series

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"ccagent/agent/census"
	"ccagent/agent/closures"
	"ccagent/agent/hold"
	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/rtsites"
	"ccagent/agent/sink"
	"ccagent/agent/source"
	"ccagent/agent/uprobe"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// series is the source of censuses of a capture (hostSeries is that of a host). It takes them of the first Haskell process alone: the
// standard events of heap profiles do not say which process a band is of, so readers would mix several.
type series struct {
	source.Base
	host     *source.Host
	period   time.Duration
	multi    bool
	programs *bpf.Leaders
	bucket   *overhead.Bucket
	traps    overhead.Tally

	image    *image                 // nil while there is none
	missing  error                  // why there is none
	ended    uint64                 // ns that processes stood which have ended, on all CPUs
	target   uint64                 // CPU time of the target when the bucket was filled last, ns
	accounts []*eventlog.HeapSeries // as written last, by process

	background sync.WaitGroup // removals of probes
}

// image is the process image whose heap is counted.
type image struct {
	im      *process.Image
	at      *rtsites.Census
	site    census.Site
	probes  []io.Closer
	follows bool // the programs know it
	reader  *census.Reader
	mapped  int // mappings that the reader knows

	work    *worker // nil while no census is under way
	next    uint64  // when the next one is due, CLOCK_MONOTONIC
	waited  uint64  // since when it is due and is not allowed; 0 if it is not
	before  moment  // of the census before
	begun   bool    // the log has the profile's beginning
	era     uint64
	account eventlog.HeapSeries
	changed bool
	hurry   bool // it collects its heap again before that is copied
	fresh   bool // its account was not written yet
	atRest  bool // its collector moves nothing: it is counted where it stands

	closures *closures.Registry // what its log has
	// Of the processes of a host.
	budget *overhead.Bucket
	used   uint64 // CPU time of the process when the budget was filled last, ns
	giveUp uint64 // when a collection is waited for no longer, CLOCK_MONOTONIC
}

// moment is a time and the CPU time that the target had used then, ns.
type moment struct{ time, target uint64 }

func open(h *source.Host, asked []*source.Event, _ source.Need) source.Source {
	if len(asked) == 0 {
		return nil
	}
	h.Budget.Costs.NeedTrap()
	return &series{host: h, period: asked[0].Detail.(time.Duration), bucket: h.Budget.Heap()}
}

// Load loads the probes' programs.
func (s *series) Load() error {
	s.multi = uprobe.Multi()
	if s.host.LoadLate {
		return nil
	}
	return s.load()
}

func (s *series) load() (err error) {
	if s.programs == nil {
		s.programs, err = s.host.Walker.LoadLeaders(s.multi)
	}
	return err
}

// errNoHaskell is why a process that is no Haskell program has no census.
var errNoHaskell = errors.New("it runs no Haskell program compiled by GHC")

// Attach puts the probes into a process, unless another has them.
func (s *series) Attach(im *process.Image) error {
	if s.image != nil {
		return nil
	}
	if im.RTS == nil {
		if s.missing == nil && !im.FromStart {
			s.missing = errNoHaskell
		}
		return nil
	}
	i, err := s.attach(im)
	if err == nil {
		s.image, s.missing = i, nil
		return nil
	}
	if errors.Is(err, process.ErrEnded) { // another may live longer
		return nil
	}
	if s.missing == nil || errors.Is(s.missing, errNoHaskell) {
		s.missing = err
		s.host.Log.Warn(fmt.Sprintf("the heap of process %d cannot be counted: %v; events that are available go on", im.PID, err))
	}
	return nil
}

func (s *series) attach(im *process.Image) (*image, error) {
	i, err := s.prepare(im)
	if err == nil {
		err = s.put(i)
	}
	return i, err
}

// prepare finds what a census of a process takes, and puts nothing into it.
func (s *series) prepare(im *process.Image) (*image, error) {
	symbols, err := im.RTS.RTSSymbols()
	if err != nil {
		return nil, err
	}
	i := &image{im: im, fresh: true, closures: s.host.Closures}
	if i.at, err = rtsites.FindCensus(symbols); errors.Is(err, rtsites.ErrMachine) {
		return nil, err
	} else if err != nil {
		return nil, fmt.Errorf("%w; ccagent heap %d counts it between collections all the same", err, im.PID)
	}
	var ok bool
	if i.site, ok = census.SiteOf(im.RTS, i.at); !ok {
		return nil, errors.New("the functions of its run-time system are in no file")
	}
	if err := s.load(); err != nil {
		return nil, err
	}
	i.account = eventlog.HeapSeries{PID: im.PID, PeriodNs: uint64(s.period), MaxPauseNs: uint64(s.host.MaxPause), Missed: make([]uint64, eventlog.HeapMisses)}
	return i, nil
}

// put puts the probes into a process.
func (s *series) put(i *image) error {
	for at, program := range map[uint64]programOf{i.at.Collect: s.programs.Collect, i.at.Resurrect: s.programs.Collected} {
		probe, err := i.im.Put(program(), s.multi, process.Probe{Addr: at})
		if err != nil {
			s.remove(i)
			return err
		}
		i.probes = append(i.probes, probe)
	}
	return nil
}

// remove takes the probes out, which the kernel takes its time for.
func (s *series) remove(i *image) {
	for _, p := range i.probes {
		s.background.Go(func() { p.Close() }) // fails only for what is gone already
	}
	i.probes = nil
}

// Unavailable is why the heap cannot be counted.
func (s *series) Unavailable() error {
	if s.image != nil || s.missing == nil {
		return nil
	}
	return fmt.Errorf("event %s is not available: %w", name, s.missing)
}

// Throttle takes what was counted, and has the next census taken when it is due.
func (s *series) Throttle(u source.Use) error {
	s.bucket.Pass(float64(u.Target-min(s.target, u.Target)), 0)
	s.target = max(s.target, u.Target)
	i := s.image
	if i == nil || i.im.Exited {
		return nil
	}
	if i.work != nil {
		select {
		case t := <-i.work.done:
			i.work = nil
			return s.take(i, t, moment{u.Time, u.Target})
		default:
			return nil
		}
	}
	if !i.follows && !s.follow(i) || u.Time < i.next {
		return nil
	}
	if !s.bucket.Unlimited() && s.bucket.Level() < 0 {
		if i.waited == 0 {
			i.waited = u.Time
		}
		return nil
	}
	if i.waited != 0 {
		i.account.DeferredNs += u.Time - i.waited
		i.waited = 0
	}
	i.look()
	if i.before == (moment{}) {
		i.before = moment{u.Time, u.Target}
	}
	i.work = s.start(i)
	return nil
}

// look has the reader know what the process maps.
func (i *image) look() {
	if n := len(i.im.Mappings); i.reader == nil || i.mapped != n {
		i.reader, i.mapped = census.NewReader(i.im, &i.at.Heap), n
		if i.atRest {
			i.reader.CountSegments()
		}
	}
}

// follow begins to count collections, once the run-time system has a heap.
func (s *series) follow(i *image) bool {
	r := census.NewReader(i.im, &i.at.Heap)
	oldest, err := r.OldestGeneration()
	if err != nil {
		return false // it is only starting
	}
	i.follows = s.programs.Follow(i.im.PID, oldest) == nil
	return i.follows
}

// take writes a census, or why it was given up, and charges what it has cost.
func (s *series) take(i *image, t taken, now moment) error {
	a := &i.account
	a.AgentNs += t.cpu
	a.StoodNs += uint64(t.stood)
	a.LongestNs = max(a.LongestNs, uint64(t.longest))
	a.Stops += t.stops
	a.Over += t.over
	for m, n := range t.missed {
		a.Missed[m] += n
	}
	cpus := 1.0 // that the program used since the census before
	if time := now.time - min(i.before.time, now.time); time > 0 {
		cpus = max(cpus, float64(now.target-min(i.before.target, now.target))/float64(time))
	}
	i.before = now
	stood := uint64(float64(t.stood) * cpus)
	a.CostNs += stood
	cost := float64(stood) + float64(t.cpu)*overhead.CPUShare()
	s.bucket.Pass(0, cost)
	if i.budget != nil {
		i.budget.Pass(0, cost)
	}
	i.changed = true
	i.next = max(t.begun+uint64(s.period), now.time)
	if t.err != nil {
		return s.miss(i, t.err)
	}
	a.Taken++
	i.im.Log.Counts.Censuses++
	return s.write(i, t)
}

// reasons are the errors for which a census is given up.
var reasons = []struct {
	err  error
	miss eventlog.HeapMiss
}{
	{hold.ErrPassed, eventlog.HeapMissLate}, {census.ErrCollected, eventlog.HeapMissCollected}, {census.ErrPause, eventlog.HeapMissPause},
	{hold.ErrStopped, eventlog.HeapMissStopped}, {census.ErrContradiction, eventlog.HeapMissOdd}, {hold.ErrEnded, eventlog.HeapMissEnded}, {io.EOF, eventlog.HeapMissEnded}, // there is no memory to read any more
}

// reasonOf is why a census was given up.
func reasonOf(err error) eventlog.HeapMiss {
	if traced := (*hold.TracedError)(nil); errors.As(err, &traced) {
		return eventlog.HeapMissTraced
	}
	for _, r := range reasons {
		if errors.Is(err, r.err) {
			return r.miss
		}
	}
	return eventlog.HeapMissOther
}

// miss counts a census that was given up.
func (s *series) miss(i *image, err error) error {
	if errors.Is(err, context.Canceled) {
		return nil // the capture ends
	}
	if errors.Is(err, census.ErrNonmoving) && !i.atRest {
		i.atRest, i.next = true, 0
		i.reader.CountSegments()
		s.host.Log.Warn(fmt.Sprintf("process %d: %s", i.im.PID, census.NonmovingGarbage))
		return nil
	}
	a, m := &i.account, reasonOf(err)
	i.hurry = i.hurry || m == eventlog.HeapMissCollected
	a.Missed[m]++
	if m == eventlog.HeapMissOther || m == eventlog.HeapMissOdd {
		a.Detail = err.Error()
	}
	return nil
}

// never is a time that does not come.
const never = ^uint64(0)

// write writes a census as the standard's events of a heap profile by closure type, the largest band
// first, and how it was taken.
func (s *series) write(i *image, t taken) error {
	if err := i.begin(t.time, s.period); err != nil {
		return err
	}
	to := census.KindLog{Emit: func(e eventlog.Event) error { return i.im.Log.Emit(t.time, e) }, Code: i.im.Log.Seen.AddCode, Registry: i.closures}
	if err := t.kinds.Write(to, i.im.PID, i.reader.Tables); err != nil {
		return err
	}
	i.era++
	events := make([]eventlog.Event, 0, len(t.bands)+4)
	events = append(events, t.how)
	if t.draw != nil {
		events = append(events, t.draw.Event(i.im.PID, t.bands))
	}
	events = append(events, &eventlog.HeapSampleBegin{Era: i.era})
	for _, b := range t.bands {
		events = append(events, &eventlog.HeapSampleString{Bytes: b.Bytes, Label: eventlog.CleanName(b.Name)})
	}
	for _, e := range append(events, &eventlog.HeapSampleEnd{Era: i.era}) {
		if err := i.im.Log.Emit(t.time, e); err != nil {
			return err
		}
	}
	return nil
}

// begin begins the profile in the log, once.
func (i *image) begin(at uint64, period time.Duration) error {
	if i.begun {
		return nil
	}
	i.begun = true
	return i.im.Log.Emit(at, &eventlog.HeapProfBegin{PeriodNs: uint64(period), Breakdown: eventlog.BreakdownClosureType})
}

// Declare begins the profile in a new log.
func (s *series) Declare(uint64) error {
	if s.image != nil {
		s.image.begun, s.image.changed = false, true
	}
	return nil
}

// Account writes what was taken and what was not, if that has changed.
func (s *series) Account() error {
	if s.image == nil {
		return nil
	}
	return s.accountOf(s.image)
}

func (s *series) accountOf(i *image) error {
	if i.follows {
		state, err := s.programs.State(i.im.PID)
		if err == nil {
			i.changed = i.changed || state.Collections != i.account.Collections
			i.account.Collections, i.account.Majors = state.Collections, state.Majors
		}
	}
	if now := perf.Monotonic(); i.waited != 0 {
		i.account.DeferredNs += now - min(i.waited, now)
		i.waited, i.changed = now, true
	}
	if !i.changed {
		return nil
	}
	i.changed = false
	return s.emit(i)
}

func (s *series) emit(i *image) error {
	a := i.account
	if n := len(s.accounts); n > 0 && s.accounts[n-1].PID == a.PID && !i.fresh {
		s.accounts[n-1] = &a
	} else {
		s.accounts, i.fresh = append(s.accounts, &a), false
	}
	return i.im.Log.Emit(sink.Now, &a)
}

// Stop has no further collection waited for.
func (s *series) Stop() error {
	if i := s.image; i != nil && i.work != nil {
		i.work.stop()
	}
	return nil
}

// Finish writes the census that is under way.
func (s *series) Finish(uint64) error {
	i := s.image
	if i == nil {
		return s.none()
	}
	if err := s.settle(i); err != nil {
		return err
	}
	i.changed = true
	return s.Account()
}

// none says in the log why there is no census.
func (s *series) none() error {
	if len(s.accounts) > 0 {
		return nil // of a process that has ended
	}
	a := &eventlog.HeapSeries{PeriodNs: uint64(s.period), MaxPauseNs: uint64(s.host.MaxPause), Problem: cmp.Or(s.missing, errNoHaskell).Error()}
	s.accounts = append(s.accounts, a)
	return s.host.Log.Emit(sink.Now, a)
}

// settle stops the census that is under way, and takes what it gives.
func (s *series) settle(i *image) error {
	if i.work == nil {
		return nil
	}
	i.work.stop()
	t := <-i.work.done
	i.work = nil
	return s.take(i, t, moment{i.before.time, i.before.target})
}

// Detach ends the series of an image that has ended.
func (s *series) Detach(im *process.Image, _ uint64) error {
	i := s.image
	if i == nil || i.im != im {
		return nil
	}
	err := s.settle(i)
	i.changed = true
	err = errors.Join(err, s.Account())
	s.ended += i.account.CostNs
	s.image = nil
	s.remove(i)
	return errors.Join(err, s.programs.Forget(im.PID))
}

// Cost returns for how long the program stood, and what the probes have cost.
func (s *series) Cost() (c source.Cost, err error) {
	if s.programs == nil {
		return c, nil
	}
	runs, err := s.programs.RunStats()
	if err != nil {
		return c, err
	}
	c.StoodNs = s.ended
	if s.image != nil {
		c.StoodNs += s.image.account.CostNs
	}
	c.RTSNs = runs.Ns + s.traps.Count(runs.Runs, s.host.Budget.Costs.Trap())
	return c, nil
}

// Report adds the series to the summary.
func (s *series) Report(sum *source.Summary) { sum.Heap = s.accounts }

// Close removes the probes.
func (s *series) Close() error {
	if i := s.image; i != nil {
		if i.work != nil {
			i.work.stop()
			<-i.work.done
		}
		s.image = nil
		s.remove(i)
	}
	s.background.Wait()
	if s.programs == nil {
		return nil
	}
	err := s.programs.Close()
	s.programs = nil
	return err
}
