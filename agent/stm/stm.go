package stm

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/cilium/ebpf"

	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/rtsites"
	"ccagent/agent/source"
	"ccagent/agent/uprobe"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// The events' names: attempts, and their CPU time.
const (
	name    = "stm"
	cpuName = "stm-cpu"
)

// Kind makes the source of transactions.
func Kind() source.Kind { return source.Kind{Grant: grant, New: open, Known: known} }

func grant(asked string, _ perf.Rate) (*source.Event, bool, error) {
	def := func(name, unit string) eventlog.EventDef {
		return eventlog.EventDef{Requested: name, Granted: name, Unit: unit, RateMode: eventlog.RatePeriod}
	}
	time := &source.Event{Samples: true, Nests: true, Def: def(cpuName, "ns")}
	return &source.Event{Samples: true, Nests: true, Def: def(name, "attempts"), With: []*source.Event{time}, OfCPUTime: true}, asked == name, nil
}

func known() []source.Known {
	return []source.Known{{Name: name, Unit: "attempts", About: "attempts to run STM transactions"}}
}

// stm is the source of transactions of all processes of a capture.
type stm struct {
	source.Base
	host       *source.Host
	event, cpu *source.Event
	program    *ebpf.Program
	multi      bool
	guard      *guard
	started    bool
	bucket     *overhead.Bucket
	images     map[uint32]*image // by process incarnation
	sites      map[*process.Module]*rtsites.Transactions
	failed     error // why there is nothing to measure in the first process
	warned     map[string]bool

	duty
	period uint64 // weight of the last sample of CPU time inside of a transaction
	// Sums of samples of CPU time: how many, and the weight of all and of those inside of transactions.
	cpuSamples, cpuTime, inside uint64
	traps                       overhead.Tally
	charged                     uint64 // ns
	target                      uint64 // CPU time of the target by when it was, ns
	ran                         bpf.RunStats

	// background counts windows, and removals of probes: the kernel takes a tenth of a second for each.
	background sync.WaitGroup
	stop       chan struct{} // closed when all windows are to end
}

// image is one process image.
type image struct {
	im     *process.Image
	probes []process.Probe
	base   bpf.TransactionAccount // its counts up to which they are in the log
	counts *rtsites.Transactions  // where the run-time system counts transactions that begin
	bias   uint64                 // of the run-time system; im's mappings are not to be read by other threads
	first  progress               // when it was attached to
	last   progress               // as it was read last
}

func open(h *source.Host, asked []*source.Event, _ source.Need) source.Source {
	if len(asked) < 2 {
		return nil
	}
	h.Budget.Costs.NeedTrap()
	h.Walker.NoteTransactions(func(event int) bool { return h.CPUTime != nil && event == int(h.CPUTime.Def.Index) })
	return &stm{
		host: h, event: asked[0], cpu: asked[1], bucket: h.Budget.STM(), images: map[uint32]*image{},
		sites: map[*process.Module]*rtsites.Transactions{}, warned: map[string]bool{}, stop: make(chan struct{}), duty: duty{thin: 1},
	}
}

// Load loads the probes' BPF program.
func (s *stm) Load() (err error) {
	s.multi = uprobe.Multi()
	if s.guard, err = openGuard(s.host.Walker); err != nil {
		return err
	}
	s.program, err = s.host.Walker.TransactionProgram(int(s.event.Def.Index), s.multi)
	return err
}

// find returns the sites in an image's run-time system, nil if they cannot be found.
func (s *stm) find(im *process.Image) *rtsites.Transactions {
	if im.RTS == nil {
		return nil
	}
	if t, known := s.sites[im.RTS]; known {
		return t
	}
	symbols, err := im.RTS.RTSSymbols()
	var t *rtsites.Transactions
	if err == nil {
		t, err = rtsites.FindTransactions(symbols)
	}
	s.sites[im.RTS] = t
	if err != nil {
		s.fail(err)
		return nil
	}
	if len(t.Lacks) > 0 {
		s.warn(fmt.Sprintf("event %s leaves out %s: the program's symbol table does not have their place", name, strings.Join(t.Lacks, ", ")))
	}
	return t
}

func (s *stm) warn(line string) {
	if !s.warned[line] {
		s.warned[line] = true
		s.host.Log.Warn(line)
	}
}

// fail warns that a process is not measured. A capture whose first process is not has no such events.
func (s *stm) fail(err error) {
	if len(s.images) == 0 {
		s.failed = err
		for _, e := range []*source.Event{s.event, s.cpu} {
			e.Def.Granted, e.Def.Fallback = "", err.Error()
		}
	}
	s.warn(fmt.Sprintf("event %s is not available: %v; events that are available go on", name, err))
}

// Unavailable is why the first process has no transactions to measure.
func (s *stm) Unavailable() error { return s.failed }

// Prepare gives the walker what it needs to mark samples that are taken inside of a transaction.
func (s *stm) Prepare(im *process.Image) {
	t := s.find(im)
	if t == nil || t.NoTRec == 0 {
		return
	}
	im.Layout.NoTrec = t.NoTRec + im.BiasOf(im.RTS)
	im.Layout.TsoRead = max(im.Layout.TsoRead, im.Layout.TsoTrec+8)
}

// Attach puts the probes into an image's process, once: before Start into none, since a capture may take a second until then, which a
// program that runs already would spend on probes.
func (s *stm) Attach(im *process.Image) error {
	t := s.find(im)
	if t == nil || s.images[im.Incarnation] != nil {
		return nil
	}
	si := &image{im: im, counts: t, bias: im.BiasOf(im.RTS)}
	si.first, _ = si.read()
	si.last = si.first
	for end, at := range t.Ends {
		if at.Addr != 0 {
			si.probes = append(si.probes, process.Probe{Addr: at.Addr, Cookie: bpf.TransactionCookie(im.Incarnation, bpf.TransactionEnd(end), at.By)})
		}
	}
	if err := s.host.Walker.OpenTransactions(im.Incarnation); err != nil {
		return err
	}
	if s.started && (s.mode == watching || len(s.images) == 0) {
		if err := s.watch(si); err != nil {
			return s.refused(im, err)
		}
	}
	s.images[im.Incarnation] = si
	return nil
}

// Start puts the probes into the processes that are there.
func (s *stm) Start() error {
	s.started = true
	for si, err := range s.putAll() {
		delete(s.images, si.im.Incarnation)
		if err := s.refused(si.im, err); err != nil {
			return err
		}
	}
	if len(s.images) == 0 {
		return nil
	}
	return s.begin()
}

// refused warns where the kernel puts no probes into an image's process.
func (s *stm) refused(im *process.Image, err error) error {
	if !errors.Is(err, process.ErrEnded) { // others may live longer
		s.fail(err)
	}
	return s.host.Walker.CloseTransactions(im.Incarnation)
}

// Detach ends what there is of an image that has ended.
func (s *stm) Detach(im *process.Image, _ uint64) error {
	si := s.images[im.Incarnation]
	if si == nil {
		return nil
	}
	s.await() // of what is being probed in it
	err := s.afterCut()
	err = errors.Join(err, s.settle(s.progress()))
	if len(s.images) == 1 {
		err = errors.Join(err, s.gap())
	}
	s.gone = s.gone.plus(si.last.since(si.first))
	delete(s.images, im.Incarnation)
	err = errors.Join(err, s.pay(si, perf.Monotonic()))
	s.remove(si)
	return errors.Join(err, s.host.Walker.CloseTransactions(im.Incarnation))
}

// closeAll removes probes, which the kernel takes its time for.
func (s *stm) closeAll(links []*uprobe.Probes) {
	for _, l := range links {
		s.background.Go(func() {
			defer overhead.Hasten()()
			l.Close() // fails only for what is gone already
		})
	}
}

// closeNow removes probes of several processes side by side and returns when they are out: those of the first by the calling thread, which has
// real-time priority.
func closeNow(links []*uprobe.Probes) {
	if len(links) == 0 {
		return
	}
	var others sync.WaitGroup
	for _, l := range links[1:] {
		others.Go(func() {
			defer overhead.Hasten()()
			l.Close() // fails only for what is gone already
		})
	}
	links[0].Close()
	others.Wait()
}

// remove takes an image's probes out.
func (s *stm) remove(si *image) {
	if l := s.guard.take(si); l != nil {
		s.closeAll([]*uprobe.Probes{l})
	}
}

// Annotate says of a sample whether it is inside of a transaction.
func (s *stm) Annotate(_ *process.Image, r *perf.Sample, e *eventlog.Sample) error {
	if s.host.CPUTime == nil || uint32(r.Event) != s.host.CPUTime.Def.Index {
		return nil
	}
	s.cpuSamples++
	s.cpuTime += r.Period
	if r.Flags&bpf.SampleInTransaction != 0 {
		s.period = r.Period
		s.inside += r.Period
		e.Flags &^= eventlog.SampleFlags(bpf.SampleNoted)
	}
	return nil
}

// Consume takes an attempt that has ended: a sample of attempts, of CPU time, or of both.
func (s *stm) Consume(r *perf.Sample) error {
	im, err := s.host.Image(r.Pid)
	if err != nil {
		return err
	}
	c := *r
	var variables *eventlog.TransactionVariables
	c.Frames, variables = variablesOf(r)
	c.Frames = attemptFrames(im, &c)
	c.Total, c.Large, c.Origin = 0, 0, 0
	w := s.windowOf(r.Time)
	if r.Period > 0 {
		if err := s.take(w, s.event, held{im, c, variables}, r.Period); err != nil {
			return err
		}
	}
	if r.Large > 0 {
		return s.take(w, s.cpu, held{im, c, nil}, r.Large*s.period)
	}
	return nil
}

// variablesOf takes the variables apart that stand behind an attempt's frames. Of an attempt that has committed and wrote
// none, and of ends other than that and failure, there is nothing to say.
func variablesOf(r *perf.Sample) (frames []uint64, v *eventlog.TransactionVariables) {
	n := len(r.Frames) - min(int(r.Origin), len(r.Frames))
	end := eventlog.TransactionEnd(r.Site)
	if end > eventlog.TransactionFailed || end == eventlog.TransactionCommitted && n == len(r.Frames) {
		return r.Frames[:n], nil
	}
	v = &eventlog.TransactionVariables{PID: r.Pid, End: end}
	for _, word := range r.Frames[n:] {
		v.Variables = append(v.Variables, eventlog.TransactionVariable{Address: word & bpf.FrameAddressMask, Place: uint8(word >> bpf.FrameKindShift)})
	}
	return r.Frames[:n], v
}

// attemptFrames are the frames of an attempt: how it has ended, the transaction's own code, and
// who runs it.
func attemptFrames(im *process.Image, r *perf.Sample) []uint64 {
	frames := []uint64{uint64(eventlog.FrameTransaction)<<bpf.FrameKindShift | uint64(r.Site)}
	if info := r.Total; info != 0 && info <= bpf.FrameAddressMask && ownCode(im, info) {
		frames = append(frames, uint64(eventlog.FrameReturn)<<bpf.FrameKindShift|info)
	}
	for i, f := range r.Frames {
		if i > 0 || eventlog.FrameKind(f>>bpf.FrameKindShift) != eventlog.FramePC {
			frames = append(frames, f)
		}
	}
	return frames
}

// take writes a sample of an attempt, or keeps it until the window's weight is known.
func (s *stm) take(w *window, e *source.Event, h held, weight uint64) error {
	h.r.Event, h.r.Period = uint16(e.Def.Index), weight
	if w == nil || w.factor > 0 {
		factor := 1.0
		if w != nil && e == s.cpu {
			factor = w.cpuFactor
		} else if w != nil {
			factor = w.factor
		}
		return s.write(h, factor)
	}
	w.held = append(w.held, h)
	return nil
}

func (s *stm) write(h held, factor float64) error {
	h.r.Site = 0
	h.r.Period = uint64(float64(h.r.Period)*factor + 0.5)
	e, err := s.host.Write(h.im, &h.r)
	if err != nil || h.variables == nil {
		return err
	}
	h.variables.Attempts, h.variables.Node = h.r.Period, e.Node
	return h.im.Log.Emit(h.r.Time, h.variables)
}

// Cost returns what the probes have cost.
func (s *stm) Cost() (c source.Cost, err error) {
	if s.program == nil {
		return c, nil
	}
	c.Probes, err = bpf.RunStatsOf(s.program)
	c.ProbeNs = s.traps.Count(c.Probes.Runs, s.host.Budget.Costs.Trap())
	c.Handled = s.taken
	return c, err
}

// Account writes what was lost, and what was counted while probes are in place all the time.
func (s *stm) Account() error {
	return errors.Join(s.segment(), s.host.Lost(s.event))
}

// Stop ends the windows.
func (s *stm) Stop() error {
	if !s.stopped() {
		close(s.stop)
	}
	s.await()
	if s.mode == watching {
		s.guard.end()
		s.closeAll(s.guard.cutOff())
	}
	return nil
}

func (s *stm) stopped() bool {
	select {
	case <-s.stop:
		return true
	default:
		return false
	}
}

// Finish writes what is left.
func (s *stm) Finish(at uint64) error {
	s.await()
	err := errors.Join(s.settle(s.progress()), s.gap())
	for _, si := range s.images {
		err = errors.Join(err, s.pay(si, at))
		s.remove(si)
	}
	return err
}

// Report says why there may be no sample.
func (s *stm) Report(sum *source.Summary) {
	for _, e := range []*source.Event{s.event, s.cpu} {
		sum.Events[e.Def.Index].WhyNone = "no transaction was seen to end"
	}
	sum.Transactions = &s.totals
	if s.cpuTime > 0 {
		sum.InTransactions, sum.CPUSamples = float64(s.inside)/float64(s.cpuTime), s.cpuSamples
	}
}

// Close removes all probes.
func (s *stm) Close() error {
	if s.guard == nil {
		return nil
	}
	err := s.Stop()
	s.guard.end()
	for _, si := range s.images {
		s.remove(si)
	}
	s.background.Wait()
	return errors.Join(err, s.guard.close())
}
