package series

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"ccagent/agent/closures"
	"ccagent/agent/process"
	"ccagent/agent/procfs"
	"ccagent/agent/source"
	"ccagent/eventlog"
	"ccagent/perf"
)

// hostSeries is the source of censuses of the processes of a host. It counts one process at a time: that whose turn it has been for longest,
// as soon as its budget and that of all have something. For so long as waitsFor it waits for a major collection that the process makes anyway, and has probes in
// it only then: a process that collects all the time pays for them in a small part of it.
type hostSeries struct {
	series
	images   map[uint32]*image // by incarnation
	problems map[uint32]error
	turn     *image // that is being counted
}

// waitsFor is how long a major collection of a process is waited for in its turn.
const waitsFor = 30 * time.Second

// leastPeriod is the shortest time between two censuses of a process of a host.
const leastPeriod = time.Second

// HostKind makes the source of censuses of the processes of a host.
func HostKind() source.Kind {
	return source.Kind{Grant: grant, New: openHost, Known: known, Once: true}
}

func openHost(h *source.Host, asked []*source.Event, _ source.Need) source.Source {
	if len(asked) == 0 {
		return nil
	}
	h.Budget.Costs.NeedTrap()
	period := max(asked[0].Detail.(time.Duration), leastPeriod)
	return &hostSeries{series: series{host: h, period: period, bucket: h.Budget.Censuses()}, images: map[uint32]*image{}, problems: map[uint32]error{}}
}

// Attach has the heap of a process counted from now on.
func (s *hostSeries) Attach(im *process.Image) error {
	if im.RTS == nil || s.images[im.Incarnation] != nil {
		return nil
	}
	if err := s.host.Excluded(im, name); err != nil {
		return nil
	}
	i, err := s.prepare(im)
	if err != nil {
		s.problems[im.Incarnation] = err
		return nil
	}
	delete(s.problems, im.Incarnation)
	i.closures, i.budget = closures.NewRegistry(), s.host.BudgetOf(im).Censuses()
	i.used, i.next = s.host.BudgetOf(im).Clock(), perf.Monotonic()
	s.images[im.Incarnation] = i
	return nil
}

// Missing is why the heap of a process is not counted, nil if it is.
func (s *hostSeries) Missing(im *process.Image, event string) error {
	if event != name || s.images[im.Incarnation] != nil {
		return nil
	}
	if err := s.host.Excluded(im, name); err != nil {
		return err
	}
	if err := s.problems[im.Incarnation]; err != nil {
		return err
	}
	return source.ErrNoRTS
}

// Unavailable is nil: there may be other processes.
func (s *hostSeries) Unavailable() error { return nil }

// Throttle takes what was counted, and has the next process counted.
func (s *hostSeries) Throttle(u source.Use) error {
	s.bucket.Pass(float64(u.Target-min(s.target, u.Target)), 0)
	s.target = max(s.target, u.Target)
	if s.turn != nil {
		return s.Glance(u.Time)
	}
	if !s.bucket.Unlimited() && s.bucket.Level() < 0 {
		return nil
	}
	var due []*image
	for _, i := range s.images {
		if !i.im.Exited && u.Time >= i.next {
			due = append(due, i)
		}
	}
	slices.SortFunc(due, func(a, b *image) int { return cmp.Compare(a.next, b.next) })
	for _, i := range due {
		used := s.host.BudgetOf(i.im).Clock()
		i.budget.Pass(float64(used-min(i.used, used)), 0)
		i.used = max(i.used, used)
		if !i.budget.Unlimited() && i.budget.Level() < 0 {
			continue
		}
		if err := s.begin(i, moment{u.Time, used}); err != nil || s.turn != nil {
			return err
		}
	}
	return nil
}

// Glance takes what was counted of the process whose turn it is, and removes its probes.
func (s *hostSeries) Glance(now uint64) error {
	i := s.turn
	if i == nil {
		return nil
	}
	select {
	case t := <-i.work.done:
		return s.taken(i, t)
	default:
		if now >= i.giveUp {
			i.work.stop()
		}
		return nil
	}
}

// begin has a process counted, unless it is only starting.
func (s *hostSeries) begin(i *image, now moment) error {
	i.next = now.time + uint64(s.period)
	if !i.follows && !s.follow(i) {
		i.next = now.time + uint64(time.Second)
		return nil
	}
	if procfs.Frozen(int(i.im.PID)) { // it makes no collection
		i.account.Missed[eventlog.HeapMissStopped]++
		i.changed = true
		return nil
	}
	if err := s.put(i); err != nil {
		i.account.Detail, i.changed = err.Error(), true
		return nil
	}
	i.look()
	if i.before == (moment{}) {
		i.before = now
	}
	i.giveUp = now.time + uint64(waitsFor)
	i.work, s.turn = s.start(i), i
	return nil
}

// taken ends a process's turn.
func (s *hostSeries) taken(i *image, t taken) error {
	i.work, s.turn = nil, nil
	s.remove(i)
	due := i.next
	err := s.take(i, t, moment{perf.Monotonic(), s.host.BudgetOf(i.im).Clock()})
	if i.atRest && i.next == 0 { // it is asked once more, in another way
		return err
	}
	i.next = max(i.next, due)
	return err
}

// Leave writes the account into the log that is left, and Enter begins anew in the next one.
func (s *hostSeries) Leave(im *process.Image) error {
	if i := s.images[im.Incarnation]; i != nil && i.account.Taken > 0 {
		return s.accountOf(i)
	}
	return nil
}

func (s *hostSeries) Enter(im *process.Image, _ uint64) error {
	if i := s.images[im.Incarnation]; i != nil {
		i.begun, i.closures = false, closures.NewRegistry()
	}
	return nil
}

// Declare has nothing to do: each process has a log of its own.
func (s *hostSeries) Declare(uint64) error { return nil }

// Account writes what was taken of each process, and what not, if that has changed.
func (s *hostSeries) Account() error {
	for _, i := range s.images {
		if err := s.accountOf(i); err != nil {
			return err
		}
	}
	return nil
}

// end stops the census of a process that is under way, and takes what it gives.
func (s *hostSeries) end(i *image) error {
	if s.turn != i {
		return nil
	}
	i.work.stop()
	return s.taken(i, <-i.work.done)
}

// Detach ends the series of a process that has ended.
func (s *hostSeries) Detach(im *process.Image, _ uint64) error {
	delete(s.problems, im.Incarnation)
	i := s.images[im.Incarnation]
	if i == nil {
		return nil
	}
	delete(s.images, im.Incarnation)
	err := errors.Join(s.end(i), s.accountOf(i))
	s.ended += i.account.CostNs
	return errors.Join(err, s.programs.Forget(im.PID))
}

// Stop has no further collection waited for.
func (s *hostSeries) Stop() error {
	if s.turn != nil {
		s.turn.work.stop()
	}
	return nil
}

// Finish writes the census that is under way.
func (s *hostSeries) Finish(uint64) error {
	if s.turn != nil {
		if err := s.end(s.turn); err != nil {
			return err
		}
	}
	return s.Account()
}

// CostOf is for how long a process stood for it, on all CPUs that it used, ns.
func (s *hostSeries) CostOf(im *process.Image) uint64 {
	if i := s.images[im.Incarnation]; i != nil {
		return i.account.CostNs
	}
	return 0
}

// Cost returns for how long processes stood, and what the probes have cost.
func (s *hostSeries) Cost() (source.Cost, error) {
	c, err := s.series.Cost()
	for _, i := range s.images {
		c.StoodNs += i.account.CostNs
	}
	return c, err
}

// Report adds nothing: each log has its own account.
func (s *hostSeries) Report(*source.Summary) {}

// Close removes the probes.
func (s *hostSeries) Close() error {
	if i := s.turn; i != nil {
		i.work.stop()
		<-i.work.done
		s.turn = nil
		s.remove(i)
	}
	if err := s.series.Close(); err != nil {
		return fmt.Errorf("close the series of censuses: %w", err)
	}
	return nil
}
