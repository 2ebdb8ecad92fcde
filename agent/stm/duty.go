package stm

import (
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/source"
	"ccagent/agent/uprobe"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/internal/transactions"
	"ccagent/perf"
)

// mode is whether the probes are in place.
type mode uint8

const (
	resting  mode = iota // out
	watching             // in place until further notice
	probing              // in place for a window
)

// duty keeps the probes within their budget. Times are CLOCK_MONOTONIC, ns.
type duty struct {
	mode      mode
	since     uint64                                        // when the mode began, or the watch was last accounted for
	begun     bool                                          // something has been counted
	sinceAt   progress                                      // when since was
	covered   progress                                      // what has been counted stands for what was up to here
	gone      progress                                      // of images that have ended
	notBefore uint64                                        // earliest begin of the next window
	result    chan *window                                  // of the window that is open
	windows   []*window                                     // recent ones, in order of time; the last is held, or a watch
	owed      map[*image]*[eventlog.TransactionEnds]float64 // attempts that were counted, and of whose kind no window has had a sample since
	perHit    float64                                       // what a hit costs, ns, moving average
	slowing   float64                                       // what of that the program waits for, likewise
	hitRate   float64                                       // hits a second while in place, moving average
	runs      uint64                                        // when the hit rate was last measured, and when that was
	runsAt    uint64
	thin      uint32
	round     uint64
	taken     uint64 // samples
	totals    transactions.Totals
}

// window is a stretch of time in which all attempts that end are counted.
type window struct {
	open, close uint64
	from, to    progress // when it was opened and closed
	factor      float64  // what an attempt in it stands for; 0 while that is not known
	cpuFactor   float64  // what CPU time in it stands for
	held        []held   // samples until then
	counts      map[*image]bpf.TransactionAccount
	hits        uint64
	slowed      uint64 // of the CPU time between from and to, what hits took
	err         error
}

// held is a sample that waits for its weight.
type held struct {
	im *process.Image
	r  perf.Sample
	// variables are written beside it; nil if none are to be.
	variables *eventlog.TransactionVariables
}

// Parameters of windows.
const (
	minWindow = 250 * time.Microsecond
	maxWindow = 100 * time.Millisecond
	// minCycle is the least time from window to window, ns. A random time of up to as much is added, so that windows do not
	// fall into step with the program.
	minCycle = 60e6
	// maxWatchShare is the share of the budget that probes may take that are in place all the time, maxWindowShare the
	// share of the bucket's depth that a window may, and maxWaitShare that of waiting for the ends of attempts.
	maxWatchShare  = 0.7
	maxWindowShare = 1.0 / 16
	maxWaitShare   = 1.0 / 2
	// maxWait bounds that in time.
	maxWait = 500 * time.Millisecond
	// samplesPerSecond are taken while probes are in place all the time, samplesInWindow in a window.
	samplesPerSecond = 100
	samplesInWindow  = 16
	firstPerHit      = 2000 // ns, before any was measured
	maxWindows       = 8
	mostThin         = 1 << 20
)

// windowOf returns the window in which a sample was taken, nil if it is not known any more.
func (d *duty) windowOf(time uint64) *window {
	d.taken++
	for i := len(d.windows) - 1; i >= 0; i-- {
		if d.windows[i].open <= time {
			return d.windows[i]
		}
	}
	return nil
}

func (d *duty) add(w *window) {
	if len(d.windows) == maxWindows {
		d.windows = append(d.windows[:0], d.windows[1:]...)
	}
	d.windows = append(d.windows, w)
}

// watch puts the probes into a process until further notice.
func (s *stm) watch(si *image) error {
	link, err := si.im.Put(s.program, s.multi, si.probes...)
	if err != nil {
		return err
	}
	if !s.guard.keep(si, link) {
		s.closeAll([]*uprobe.Probes{link})
		return nil
	}
	if s.mode == watching {
		return nil
	}
	return s.begin()
}

// begin begins a watch: all probes are in place.
func (s *stm) begin() error {
	now := perf.Monotonic()
	s.mode, s.since, s.sinceAt = watching, now, s.progress()
	if !s.begun {
		s.begun, s.covered = true, s.sinceAt
	}
	s.add(&window{open: now, factor: 1, cpuFactor: 1})
	cost, err := s.Cost()
	s.runs, s.runsAt = cost.Probes.Runs, now
	if err = errors.Join(err, s.control(now, true)); err == nil && !s.bucket.Unlimited() {
		s.guard.watch(s.background.Go)
	}
	return err
}

// control sets the window of a watch, in which as many hits are allowed as the bucket pays for.
func (s *stm) control(since uint64, accepts bool) error {
	s.round++
	c := bpf.TransactionWindow{Since: since, Thin: s.thin, Round: s.round}
	if accepts {
		c.Accepts = 1
	}
	if since != 0 && !s.bucket.Unlimited() {
		c.Most = uint64(max(s.bucket.Level(), 0)/s.cost()) + 1
	}
	return s.guard.set(c)
}

// Throttle charges what the probes have cost to the bucket, and takes them out and puts them in.
func (s *stm) Throttle(u source.Use) error {
	if s.program == nil || s.stopped() {
		return nil
	}
	spent := u.Cost.Probes.Ns + u.Cost.ProbeNs
	s.bucket.Pass(float64(u.Target-min(s.target, u.Target)), float64(int64(spent-s.charged))+u.Handling)
	s.measure(u)
	s.charged, s.target = spent, u.Target
	for _, si := range s.images { // whose memory is gone when they end
		si.look()
	}
	switch s.mode {
	case probing:
		select {
		case w := <-s.result:
			return s.probed(w)
		default:
		}
	case watching:
		if s.guard.wasCut() == nil && (s.bucket.Unlimited() || s.bucket.Level() >= 0) {
			return s.setThin(s.hitRate / samplesPerSecond)
		}
		return s.rest(u.Time)
	case resting:
		return s.next(u.Time)
	}
	return nil
}

// measure updates what a hit costs, and how many there are while probes are in place all the time.
func (s *stm) measure(u source.Use) {
	runs := u.Cost.Probes.Runs
	if n := float64(runs - s.ran.Runs); n >= 1 {
		each := (float64(u.Cost.Probes.Ns-s.ran.Ns)+u.Handling)/n + s.host.Budget.Costs.Trap()
		if s.perHit == 0 {
			s.perHit = each
		}
		s.perHit += (each - s.perHit) / 4
		own := float64(u.Cost.Probes.Ns-s.ran.Ns)/n + s.host.Budget.Costs.Trap()
		if s.slowing == 0 {
			s.slowing = own
		}
		s.slowing = min(s.slowing+(own-s.slowing)/16, 2*own)
	}
	s.ran = u.Cost.Probes
	if s.mode != watching {
		return
	}
	if c := s.guard.wasCut(); c != nil { // there were none since
		if c.at > s.runsAt {
			s.hitRate = max(s.hitRate, float64(runs-s.runs)/(float64(c.at-s.runsAt)/1e9))
		}
		s.runs, s.runsAt = runs, c.at
		return
	}
	const enough = 2e6
	if u.Time-min(s.runsAt, u.Time) < enough {
		return
	}
	s.hitRate = average(s.hitRate, float64(runs-s.runs)/(float64(u.Time-s.runsAt)/1e9))
	s.runs, s.runsAt = runs, u.Time
}

// average is the mean of the average before and a new value; the value if there was none.
func average(before, now float64) float64 {
	if before == 0 {
		return now
	}
	return (before + now) / 2
}

// cost is what a hit is taken to cost, ns.
func (d *duty) cost() float64 {
	if d.perHit == 0 {
		return firstPerHit
	}
	return d.perHit
}

// rest takes the probes out.
func (s *stm) rest(now uint64) error {
	s.guard.end()
	s.closeAll(s.guard.cutOff())
	err := s.segment()
	s.mode = resting
	s.guard.resume()
	s.notBefore = now + minCycle + rand.Uint64N(minCycle)
	return err
}

// afterCut ends a watch that has been cut off.
func (s *stm) afterCut() error {
	if s.mode != watching || s.guard.wasCut() == nil {
		return nil
	}
	return s.rest(perf.Monotonic())
}

// next begins a window, or a watch, if there is enough for it.
func (s *stm) next(now uint64) error {
	if now < s.notBefore || len(s.images) == 0 {
		return nil
	}
	b := s.bucket
	share := s.hitRate * s.cost() / 1e9 // of a CPU, while probes are in place
	if share < maxWatchShare*b.Rate() && b.Level() > b.Depth()/2 {
		return s.watchAll(now)
	}
	spend := min(b.Level()/2, maxWindowShare*b.Depth())
	if spend <= 0 || spend < share*float64(minWindow) && b.Level() < maxWindowShare*b.Depth() {
		return nil
	}
	length := maxWindow
	if share > 0 {
		length = time.Duration(min(max(spend/share, float64(minWindow)), float64(maxWindow)))
	}
	if err := s.setThin(s.hitRate * length.Seconds() / samplesInWindow); err != nil {
		return err
	}
	s.probe(length, uint64(3*max(spend, share*float64(length))/s.cost())+1, uint64(maxWaitShare*b.Depth()/s.cost()))
	return nil
}

// watchAll puts the probes into all processes.
func (s *stm) watchAll(now uint64) error {
	if err := s.settle(s.progress()); err != nil {
		return err
	}
	for _, si := range s.images {
		if err := s.mark(si); err != nil {
			return err
		}
	}
	if len(s.putAll()) > 0 { // a process may just have ended
		for _, si := range s.images {
			s.remove(si)
		}
		s.notBefore = now + minCycle
		return nil
	}
	return s.begin()
}

// putAll puts the probes into all processes side by side, until further notice, while nothing is counted. It returns why the kernel
// puts none into some.
func (s *stm) putAll() map[*image]error {
	var puts sync.WaitGroup
	var mu sync.Mutex
	refused := map[*image]error{}
	for _, si := range s.images {
		puts.Go(func() {
			link, err := si.im.Put(s.program, s.multi, si.probes...)
			if err == nil {
				s.guard.keep(si, link) // as no watch has begun that could have been cut off
				return
			}
			mu.Lock()
			defer mu.Unlock()
			refused[si] = err
		})
	}
	puts.Wait()
	return refused
}

// mark has an image's counts from now on be those that are not in the log yet.
func (s *stm) mark(si *image) (err error) {
	si.base, err = s.host.Walker.Transactions(si.im.Incarnation)
	return err
}

// setThin sets one in how many attempts is sampled, and begins a round.
func (s *stm) setThin(want float64) error {
	s.thin = uint32(min(max(want, 1), mostThin))
	if s.mode != watching {
		return nil
	}
	return s.control(s.windows[len(s.windows)-1].open, true)
}

// probe puts the probes in for a window, at most for so many hits; and for at most so many more until the attempts have ended in
// which CPU time was sampled.
func (s *stm) probe(length time.Duration, most, mostWaiting uint64) {
	images := make([]*image, 0, len(s.images))
	for _, si := range s.images {
		images = append(images, si)
	}
	s.mode, s.result = probing, make(chan *window, 1)
	s.round++
	result, control := s.result, bpf.TransactionWindow{Thin: s.thin, Round: s.round}
	here, theirs := s.progress(), progressOf(images)
	w := &window{open: perf.Monotonic(), from: here, to: here}
	s.add(w)
	s.background.Go(func() {
		// The probes are put by this goroutine alone: its thread has real-time priority, which no other one has, and while it is late the
		// program pays. The kernel may take milliseconds for the first process, and then takes little for each.
		defer overhead.Hasten()()
		done := *w
		var links []*uprobe.Probes
		for _, si := range images {
			link, err := si.im.Put(s.program, s.multi, si.probes...)
			if done.err = err; err != nil {
				break
			}
			links = append(links, link)
		}
		if done.err == nil {
			done.err = s.count(&done, images, length, most, mostWaiting, control)
			done.from, done.to = here.plus(done.from.since(theirs)), here.plus(done.to.since(theirs))
		}
		result <- &done
		closeNow(links)
	})
}

// count counts attempts while the probes are in place.
func (s *stm) count(w *window, images []*image, length time.Duration, most, mostWaiting uint64, control bpf.TransactionWindow) error {
	read := func() (counts map[*image]bpf.TransactionAccount, hits, open uint64, err error) {
		counts = map[*image]bpf.TransactionAccount{}
		for _, si := range images {
			a, err := s.host.Walker.Transactions(si.im.Incarnation)
			if err != nil {
				return nil, 0, 0, err
			}
			counts[si] = a
			hits += sum(a.Ends[:])
			open += a.Begun - min(a.Ended, a.Begun)
		}
		return counts, hits, open, nil
	}
	before, first, stale, err := read()
	if err != nil {
		return err
	}
	w.open, w.from = perf.Monotonic(), progressOf(images)
	end := w.open + uint64(length)
	set := func(accepts uint32, most uint64) error {
		control.Since, control.Accepts, control.Most = w.open, accepts, most
		return s.guard.set(control)
	}
	if err := set(1, most); err != nil {
		return err
	}
	hits, open := first, uint64(0)
	after := before
	for err == nil && perf.Monotonic() < end && !s.stopped() {
		spent := s.guard.within(min(time.Duration(end-min(end, perf.Monotonic())), overhead.ShortSleep))
		if after, hits, open, err = read(); spent {
			break
		}
	}
	w.close, w.to = perf.Monotonic(), progressOf(images)
	w.hits = hits - first
	counted := after
	// Attempts that were sampled go on. The hit after so many is reported: 0 would be no bound.
	err = errors.Join(err, set(0, mostWaiting+1))
	for poll := 100 * time.Microsecond; err == nil && open > stale && !s.stopped(); poll = min(2*poll, overhead.ShortSleep) {
		if perf.Monotonic()-w.close > uint64(maxWait) || s.guard.within(poll) {
			break
		}
		_, _, open, err = read()
	}
	err = errors.Join(err, s.guard.set(bpf.TransactionWindow{}))
	if err != nil {
		return err
	}
	if after, _, _, err = read(); err != nil {
		return err
	}
	w.counts = map[*image]bpf.TransactionAccount{}
	for _, si := range images {
		a := since(after[si], before[si])
		for i, n := range counted[si].Ends {
			a.Ends[i] = n - before[si].Ends[i]
		}
		w.counts[si] = a
	}
	return nil
}

func sum(counts []uint64) (n uint64) {
	for _, c := range counts {
		n += c
	}
	return n
}

// since is what was counted between two readings.
func since(a, before bpf.TransactionAccount) bpf.TransactionAccount {
	for i := range a.Ends {
		a.Ends[i] -= before.Ends[i]
		a.Sampled[i] -= before.Sampled[i]
	}
	a.Noted -= before.Noted
	return a
}

// await waits for the window that is open.
func (s *stm) await() {
	if s.mode == probing {
		_ = s.probed(<-s.result) // what it could not write is not in the log
	}
}

// probed takes a window that has ended: it is held until the next one ends, and the one before is written.
func (s *stm) probed(w *window) error {
	s.mode, s.result = resting, nil
	s.notBefore = w.close + minCycle + rand.Uint64N(minCycle)
	place := s.windows[len(s.windows)-1]
	w.held = place.held
	if w.err != nil || w.to.cpu <= w.from.cpu {
		s.windows = s.windows[:len(s.windows)-1] // a process has ended, or is about to
		s.notBefore = perf.Monotonic() + minCycle
		return nil
	}
	s.windows = s.windows[:len(s.windows)-1]
	if err := s.settle(w.from); err != nil {
		return err
	}
	s.hitRate = average(s.hitRate, float64(w.hits)/(float64(w.close-w.open)/1e9))
	w.slowed = uint64(min(float64(w.hits)*s.slowing, float64(w.to.cpu-w.from.cpu)))
	s.add(w)
	return nil
}

// settle writes the window that is held, which stands for what was up to a moment; or what was counted of a watch.
func (s *stm) settle(until progress) error {
	if s.mode == watching {
		return s.segment()
	}
	if len(s.windows) == 0 {
		return nil
	}
	w := s.windows[len(s.windows)-1]
	if w.factor > 0 || w.close == 0 {
		return nil
	}
	e := record(w.to.since(w.from), latest(until, w.to).since(earliest(s.covered, w.from)))
	e.SlowedNs = w.slowed
	w.factor, w.cpuFactor = transactions.Factor(&e), transactions.CPUFactor(&e)
	s.covered = latest(until, w.to)
	if err := s.weigh(w, &e); err != nil {
		return err
	}
	for si, a := range w.counts {
		e := e
		if err := s.emit(si, w.close, &e, a); err != nil {
			return err
		}
	}
	return nil
}

// record is what is written of a window of some length that stands for more.
func record(length, stands progress) eventlog.TransactionWindow {
	return eventlog.TransactionWindow{LengthNs: length.cpu, StandsNs: stands.cpu, Begun: length.begun, BegunStands: stands.begun}
}

// gap writes for what CPU time nothing was counted, where nothing that was stands for that.
func (s *stm) gap() error {
	here := s.final(nil)
	if s.mode == watching || here.cpu <= s.covered.cpu || !s.begun {
		return nil
	}
	rest := here.since(s.covered)
	for _, si := range s.images {
		if err := s.emit(si, perf.Monotonic(), &eventlog.TransactionWindow{StandsNs: rest.cpu, BegunStands: rest.begun}, bpf.TransactionAccount{}); err != nil {
			return err
		}
	}
	s.covered = latest(here, s.covered)
	return nil
}

// segment writes what was counted since the watch began, or since the last time. A process that has just ended may have
// been read last before it ran the attempts that are counted.
func (s *stm) segment() error {
	if s.mode != watching {
		return nil
	}
	c := s.guard.wasCut()
	now, here, some := perf.Monotonic(), s.final(c), false
	if c != nil {
		now = c.at
	}
	counts := make(map[*image]bpf.TransactionAccount, len(s.images))
	for _, si := range s.images {
		before := si.base
		if err := s.mark(si); err != nil {
			return err
		}
		a := since(si.base, before)
		counts[si] = a
		some = some || sum(a.Ends[:])+sum(a.Sampled[:])+a.Noted > 0
	}
	if here.cpu <= s.sinceAt.cpu {
		if !some {
			return nil
		}
		here.cpu = s.sinceAt.cpu + 1 // it took some
	}
	for si, a := range counts {
		e := record(here.since(s.sinceAt), here.since(earliest(s.covered, s.sinceAt)))
		if err := s.emit(si, now, &e, a); err != nil {
			return err
		}
	}
	s.since, s.sinceAt, s.covered = now, here, here
	return nil
}

// emit writes what was counted in an image.
func (s *stm) emit(si *image, at uint64, e *eventlog.TransactionWindow, a bpf.TransactionAccount) error {
	e.PID, e.Noted = si.im.PID, a.Noted
	copy(e.Ends[:], a.Ends[:])
	copy(e.Sampled[:], a.Sampled[:])
	s.totals.Add(e)
	return si.im.Log.Emit(at, e)
}

// Intervals at which Throttle runs: startInterval during startPeriod, while it is not known how many transactions there are.
const (
	startPeriod   = 100 * time.Millisecond
	startInterval = 2 * time.Millisecond
	inPlace       = 50 * time.Millisecond
)

// Pace returns the time to the next Throttle.
func (s *stm) Pace(since time.Duration) time.Duration {
	switch {
	case s.bucket.Unlimited() || len(s.images) == 0:
		return source.Never
	case since < startPeriod:
		return startInterval
	case s.mode == resting:
		now := perf.Monotonic()
		return max(time.Duration(s.notBefore-min(now, s.notBefore)), inPlace/4)
	case s.mode == watching && s.hitRate*s.cost()/1e9 < s.bucket.Rate()/16:
		return source.Never
	}
	return inPlace
}
