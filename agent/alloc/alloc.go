package alloc

import (
	"errors"
	"fmt"
	"io"
	"math"
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

// name is the event's.
const name = "alloc"

// Kind makes the source of allocation.
func Kind() source.Kind {
	return source.Kind{Grant: grant, New: open, Known: known, Needs: source.Closures}
}

// grant grants the event for now; whether the program allows it is seen when its run-time
// system is.
func grant(asked string, _ perf.Rate) (*source.Event, bool, error) {
	return &source.Event{Samples: true, Def: eventlog.EventDef{
		Requested: name, Granted: name, Unit: "bytes", RateMode: eventlog.RatePeriod,
	}, Nests: true}, asked == name, nil
}

func known() []source.Known {
	reason, help := process.WhyNoProbes()
	return []source.Known{{Name: name, Unit: "bytes", About: "what allocates", Reason: reason, Help: help}}
}

// allocation is the source of the allocation of every profiled Haskell process.
type allocation struct {
	source.Base
	host     *source.Host
	event    *source.Event
	programs [bpf.AllocSites]*ebpf.Program
	bucket   *bucket
	images   map[uint32]*image // by process incarnation
	sites    map[*process.Module]found
	// failed is why the event is not sampled in a capture.
	failed error
	// Where processes have logs of their own: their buckets, and why some are not sampled.
	buckets  map[uint32]*bucket // by process incarnation
	problems map[uint32]error   // likewise
	traps    overhead.Tally
	runs     uint64  // of probes' programs at the last turn
	handling float64 // ns, what handling takes the agent in the target's place, a hit

	// background counts the goroutines of windows, and of removals of probes, each of which
	// waits a tenth of a second for the kernel (RCU).
	background sync.WaitGroup
	stop       chan struct{} // closed to end all windows

	ended [bpf.AllocSites]uint64 // for how long probes were in place in processes that have ended

	perHit [bpf.AllocSites]float64 // ns, what a hit costs the target
	cost   [bpf.AllocSites]bpf.RunStats
	// charged is what was charged to the bucket so far, ns, and target the target's CPU time
	// by then.
	charged, target uint64

	parallelism parallelism
	// startHits is how many hits each probe may have in start.
	startHits float64
}

// bucket is that from which probes are paid.
type bucket struct {
	*overhead.Bucket
	part      uint32 // times what a sample took pass until the next, by the wall clock
	allowance uint32 // for how long, ns, samples may be taken in a process ahead of that
}

func newBucket(of *overhead.Budget) *bucket {
	b := of.Alloc()
	return &bucket{b, uint32(min(samplingParts/b.Rate(), math.MaxUint32)), uint32(min(max(b.Level()/2, 0), math.MaxUint32))}
}

// found is what is known of the sites in a build's run-time system.
type found struct {
	*rtsites.Allocation
	err error
}

// image holds the allocation probes and the ledger of one process image.
type image struct {
	im     *process.Image
	sites  *rtsites.Allocation
	ledger *ledger
	probes [bpf.AllocSites]*probe // nil where there is no place for one
	// bias and totalAllocated are copies: im may change while windows are open.
	bias, totalAllocated uint64

	words             uint64  // allocated, at the last poll
	readAt            uint64  // time of the last poll, ns
	capabilitiesInAll int     // as the process says; 0 while it is not known
	byteRate          float64 // bytes allocated a second
	largeRate         float64 // bytes of large objects a second; 0 while unknown
	polls             int     // readings of more than 0 bytes
	bucket            *bucket // from which the probes are paid
	// Where it is the image's own: what was charged to it so far, CPU time, hits and ns; when the
	// probes were placed first, and when they are looked at next, ns.
	used, hits, took uint64
	spent            float64 // what was charged to its bucket, ns
	begun, next      uint64
	share            float64 // of a CPU that the process uses; 1 until that is known
	at, pacedAt      uint64  // when it was paced last, and its CPU time then, ns
	// final is what the process reported at its end to have allocated, in words.
	final uint64
}

func open(h *source.Host, asked []*source.Event, _ source.Need) source.Source {
	if len(asked) == 0 {
		return nil
	}
	h.Budget.Costs.NeedTrap()
	b := newBucket(h.Budget)
	return &allocation{host: h, event: asked[0], bucket: b, stop: make(chan struct{}),
		images: map[uint32]*image{}, sites: map[*process.Module]found{},
		buckets: map[uint32]*bucket{}, problems: map[uint32]error{},
		perHit: [...]float64{overhead.DefaultHit, overhead.DefaultHit, overhead.DefaultHit, overhead.DefaultHit}, parallelism: parallelism{cpus: 1},
		startHits: b.Level() / 12 / countedHit}
}

// Load loads what the probes run.
func (a *allocation) Load() (err error) {
	a.programs, err = a.host.Walker.AllocationPrograms(int(a.event.Def.Index), uprobe.Multi())
	return err
}

// Start begins to charge for what probes cost. They have been in a running target for a
// while by then, whose time is not counted.
func (a *allocation) Start() error {
	c, err := a.Cost()
	a.charged, a.target = c.Probes.Ns+c.ProbeNs, a.host.TargetCPU()
	return err
}

// find returns the sites and variables of allocation in the image's run-time system, nil if
// they cannot be found.
func (a *allocation) find(im *process.Image) *rtsites.Allocation {
	if im.RTS == nil || a.failed != nil {
		return nil
	}
	f, known := a.sites[im.RTS]
	if known {
		return f.Allocation
	}
	f.Allocation, f.err = find(im.RTS)
	a.sites[im.RTS] = f
	return f.Allocation
}

func find(mod *process.Module) (*rtsites.Allocation, error) {
	symbols, err := mod.RTSSymbols()
	if err != nil {
		return nil, err
	}
	return rtsites.FindAllocation(symbols)
}

// fail warns that a process is not sampled. A capture whose first process is not has no such event.
func (a *allocation) fail(im *process.Image, err error) {
	if !a.host.OwnLogs && len(a.images) == 0 {
		a.failed = err
		a.event.Def.Granted, a.event.Def.Fallback = "", err.Error()
	}
	a.host.WarnOf(im, fmt.Sprintf("event %s is not available: %v; events that are available go on", name, err))
}

// Prepare adds the addresses of an image's run-time system to the walker's layout.
func (a *allocation) Prepare(im *process.Image) {
	s := a.find(im)
	if f := a.sites[im.RTS]; f.err != nil && a.failed == nil {
		a.fail(im, f.err)
	} else if s != nil && len(s.Lacks) > 0 {
		a.host.WarnOf(im, fmt.Sprintf("event %s leaves out %s: the program's symbol table does not have their place", name, strings.Join(s.Lacks, ", ")))
	}
	if s == nil {
		return
	}
	l, bias := &im.Layout, im.BiasOf(im.RTS)
	if l.Thin[bpf.SiteLarge] == 0 {
		// The rate of large objects is unknown yet, so they are thinned.
		l.Thin[bpf.SiteLarge] = firstLargeThin
	}
	if b := a.bucketOf(im); !b.Unlimited() {
		l.Part, l.Allowance = b.part, b.allowance
	}
	l.EnterInfo = s.Enter + bias
	l.CannedLo, l.CannedHi = s.CannedLow+bias, s.CannedHigh+bias
	at := func(addr uint64) uint64 {
		if addr == 0 {
			return 0
		}
		return addr + bias
	}
	l.Stats, l.Generations = at(s.Stats), at(s.Generations)
	l.CmmLo, l.CmmHi, l.PrimLo, l.PrimHi = at(s.CmmLow), at(s.CmmHigh), at(s.PrimLow), at(s.PrimHigh)
	l.PrimN_lo, l.PrimN_hi = at(s.PrimNLow), at(s.PrimNHigh)
	l.Fork, l.ForkOn = at(s.Fork), at(s.ForkOn)
	if s.Count == 0 {
		return
	}
	l.N_capabilities = s.Count + bias
	if s.Main != 0 {
		l.MainCapability = s.Main + bias
	}
	if s.Array != 0 {
		l.Capabilities = s.Array + bias
		if s.InPlace {
			l.CapabilitiesInPlace = 1
		}
	}
}

// Attach puts the probes into an image's process, once.
func (a *allocation) Attach(im *process.Image) error {
	s := a.find(im)
	if s == nil || a.images[im.Incarnation] != nil || a.problems[im.Incarnation] != nil || a.host.Excluded(im, name) != nil {
		return nil
	}
	if err := a.host.Walker.OpenAccount(im.Incarnation); err != nil {
		return err
	}
	ai := &image{im: im, sites: s, share: 1, bias: im.BiasOf(im.RTS), totalAllocated: uint64(im.Layout.TotalAllocated),
		bucket: a.bucketOf(im), begun: perf.Monotonic()}
	var atStart map[uint16]uint64
	var before uint64
	if !im.FromStart {
		var err error
		if atStart, err = ai.readWords(); err != nil {
			before, _ = ai.readCollected()
		}
	}
	ai.ledger = newLedger(im.FromStart, atStart, 8*before)
	if a.host.OwnLogs {
		ai.ledger.keeps, ai.used = ownKeeps, a.host.BudgetOf(im).Clock()
	}
	a.images[im.Incarnation] = ai
	multi := uprobe.Multi()
	for site, addr := range s.Probes {
		if _, ok := im.RTS.FileOffset(addr); addr == 0 || !ok {
			continue
		}
		if a.host.OwnLogs && site != int(bpf.SiteNursery) && site != int(bpf.SiteEnd) {
			continue
		}
		ai.probes[site] = &probe{site: bpf.AllocSite(site), attach: func() (io.Closer, error) {
			return im.Put(a.programs[site], multi, process.Probe{Addr: addr})
		}}
	}
	err := a.placeFirst(ai)
	if err == nil {
		return nil
	}
	ended := a.end(im)
	if !errors.Is(err, process.ErrEnded) { // others may live longer
		a.fail(im, err)
		a.problems[im.Incarnation] = err
	}
	return ended
}

// placeFirst places the probes that are in place from the beginning. The probe of blocks waits
// until its hit rate can be estimated, and that of large objects, which is in C code, until
// the walker can unwind that code.
func (a *allocation) placeFirst(ai *image) error {
	var errs [bpf.AllocSites]error
	var wait sync.WaitGroup // each takes the kernel some milliseconds
	if p := ai.probes[bpf.SiteLarge]; p != nil && !ai.im.RTS.Unwinds() {
		p.awaitsUnwind = true
	}
	for site, p := range ai.probes {
		if p != nil && p.site != bpf.SiteBlock && !p.awaitsUnwind {
			wait.Go(func() {
				if p.site == bpf.SiteEnd || a.host.OwnLogs {
					errs[site] = p.place(0)
				} else {
					errs[site] = p.start(a, ai, a.startHits)
				}
			})
		}
	}
	wait.Wait()
	if a.host.OwnLogs && ai.probes[bpf.SiteNursery] == nil {
		return &rtsites.MissingError{What: "full nurseries"}
	}
	for site, err := range errs {
		if err != nil && site != int(bpf.SiteNursery) {
			ai.probes[site] = nil
		}
	}
	return errs[bpf.SiteNursery]
}

// Unwindable places the probe of large objects when the walker can unwind the run-time system,
// or never will.
func (a *allocation) Unwindable(im *process.Image) {
	if a.images[im.Incarnation] == nil {
		return
	}
	ai := a.images[im.Incarnation]
	if p := ai.probes[bpf.SiteLarge]; p != nil && p.awaitsUnwind {
		p.awaitsUnwind = false
		if p.start(a, ai, a.startHits) != nil {
			ai.probes[bpf.SiteLarge] = nil
		}
	}
}

// Unavailable returns why allocation is not sampled.
func (a *allocation) Unavailable() error {
	if a.failed == nil {
		return nil
	}
	return fmt.Errorf("event %s is not available: %w", name, a.failed)
}

// Receives returns the type of the record with which a process reports its allocation at its end.
func (a *allocation) Receives() []uint8 { return []uint8{bpf.RecordAllocated} }

// Consume writes a sample with its weight, or keeps what a process has reported at its end.
func (a *allocation) Consume(r *perf.Sample) error {
	im, err := a.host.Image(r.Pid)
	if err != nil {
		return err
	}
	if r.Record == bpf.RecordAllocated {
		a.ending(im, r.Total)
		return nil
	}
	weight, of := a.weigh(im, r)
	if weight == 0 {
		return nil
	}
	r.Period = weight
	e, err := a.host.Write(im, r)
	if err == nil {
		a.remember(im, r.Time, e, of)
	}
	return err
}

// weigh returns a sample's weight, 0 for one that is not to be recorded, and its stratum.
func (a *allocation) weigh(im *process.Image, s *perf.Sample) (uint64, stratum) {
	ai := a.images[im.Incarnation]
	if ai == nil || ai.probes[s.Site] == nil {
		return 0, noStratum
	}
	h := hit{site: bpf.AllocSite(s.Site), capability: s.Capability, time: s.Time, words: s.Total, large: s.Large,
		origin: bpf.AllocOrigin(s.Origin), object: s.Period, thin: im.Layout.Thin[s.Site]}
	if h.site != bpf.SiteLarge {
		h.hits = s.Large
	}
	h.chunk = h.site == bpf.SiteLarge && ai.growsStack(s)
	return ai.ledger.weigh(&h, ai.probes[s.Site].at(s.Time)), h.stratum()
}

// growsStack reports whether a large object is a chunk of a stack.
func (ai *image) growsStack(s *perf.Sample) bool {
	const deep = 4 // allocateMightFail, allocate
	if ai.sites.StackOverflow == 0 {
		// The only C code that makes so large objects without being called from Haskell.
		return eventlog.StopReason(s.Stop) == eventlog.StopNoHaskell
	}
	for _, f := range s.Frames[:min(len(s.Frames), deep)] {
		addr := f & bpf.FrameAddressMask
		if from := ai.sites.StackOverflow + ai.bias; addr > from && addr <= ai.sites.StackOverflowEnd+ai.bias {
			return true
		}
	}
	return false
}

// remember keeps a sample that was written.
func (a *allocation) remember(im *process.Image, time uint64, s *eventlog.Sample, of stratum) {
	if ai := a.images[im.Incarnation]; ai != nil {
		ai.ledger.remember(time, s, of)
	}
}

// ending keeps what a process reports at its end to have allocated, in words.
func (a *allocation) ending(im *process.Image, words uint64) {
	if ai := a.images[im.Incarnation]; ai != nil {
		ai.final = max(ai.final, words)
	}
}

// Detach removes the probes of an image that has ended, and accounts for its last
// bytes.
func (a *allocation) Detach(im *process.Image, _ uint64) error {
	err := a.end(im)
	if b := a.buckets[im.Incarnation]; b != nil {
		b.End()
	}
	delete(a.buckets, im.Incarnation)
	delete(a.problems, im.Incarnation)
	return err
}

func (a *allocation) end(im *process.Image) error {
	if a.images[im.Incarnation] == nil {
		return nil
	}
	ai := a.images[im.Incarnation]
	delete(a.images, im.Incarnation)
	err := a.settle(ai)
	now := perf.Monotonic()
	for site, p := range ai.probes {
		a.ended[site] = max(a.ended[site], p.timeInPlace(now))
	}
	for _, p := range ai.probes {
		if p != nil {
			p.remove(&a.background) // the kernel removed it with the process
			a.background.Go(p.discard)
		}
	}
	return errors.Join(err, a.host.Walker.CloseAccount(im.Incarnation))
}

// settle writes the bytes of an image that no sample has as samples with the stacks of earlier
// ones.
func (a *allocation) settle(ai *image) error {
	r, err := a.read(ai)
	if err == nil {
		ai.poll(&r)
	}
	words := ai.final
	if words == 0 {
		words = ai.words
	}
	all, seen := ai.unlisted(&r.account)
	if words == 0 && ai.sites.Array == 0 { // no program allocates nothing: the last look was too early
		seen = 0
	}
	if seen < all {
		a.host.WarnOf(ai.im, fmt.Sprintf("event %s leaves out what was allocated on %d of %d capabilities: the run-time system's library has no symbol table to find them by, and no probe or sample came across them", name, all-seen, all))
	}
	c := r.counts()
	samples, unnamed := ai.ledger.settle(words, &c)
	for _, s := range samples {
		s.PID = ai.im.PID
		s.Event = a.event.Def.Index
		if err := a.host.WriteKnown(ai.im, s.time, &s.Sample); err != nil {
			return err
		}
	}
	for of, weight := range unnamed {
		if weight == 0 {
			continue
		}
		if err := a.writeUnnamed(ai, stratum(of), weight); err != nil {
			return err
		}
	}
	return nil
}

// writeUnnamed writes bytes of a stratum that has no samples. They are the run-time system's
// function that allocates them, if only one does.
func (a *allocation) writeUnnamed(ai *image, of stratum, weight uint64) error {
	var function uint64
	switch of {
	case chunkStratum:
		function = ai.sites.StackOverflow
	case threadStratum:
		function = ai.sites.CreateThread
	}
	s := perf.Sample{}
	s.Time, s.Pid, s.Tid, s.Event, s.Capability = perf.Monotonic(), ai.im.PID, ai.im.PID, uint16(a.event.Def.Index), eventlog.NoCapability
	s.Period, s.Stop = weight, uint8(eventlog.StopNoHaskell)
	if function != 0 {
		s.Frames = []uint64{function + ai.bias}
	}
	_, err := a.host.Write(ai.im, &s)
	return err
}

// Finish settles every image that is still sampled.
func (a *allocation) Finish(uint64) error {
	var err error
	for _, ai := range a.images {
		err = errors.Join(err, a.settle(ai))
	}
	return err
}

// Declare forgets the remembered samples: their stacks are not in a new log.
func (a *allocation) Declare(uint64) error {
	for _, ai := range a.images {
		ai.ledger.forgetRecent()
	}
	return nil
}

// Account writes what was lost.
func (a *allocation) Account() error { return a.host.Lost(a.event) }

// Close removes all probes, and waits for that.
func (a *allocation) Close() error {
	if a.images == nil {
		return nil
	}
	close(a.stop)
	for _, ai := range a.images {
		for _, p := range ai.probes {
			if p != nil {
				p.remove(&a.background)
			}
		}
	}
	a.background.Wait()
	for _, ai := range a.images {
		for _, p := range ai.probes {
			p.discard()
		}
	}
	a.images = nil
	return nil
}
