package agent

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"

	"ccagent/agent/process"
	"ccagent/agent/uprobe"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// AllocEvent is the sampling of allocation, in bytes, by probes in the run-time
// system: where a heap check finds the nursery full, where it goes on to the
// nursery's next block, and where a large object is allocated. The ledger makes
// weights of their samples.
const AllocEvent = "alloc"

// allocProbes samples the allocation of every profiled Haskell process. A nil one
// does nothing.
type allocProbes struct {
	event    *grantedEvent
	programs [bpf.AllocSites]*ebpf.Program
	sampler  *bpf.Sampler
	warn     func(string)
	emit     func(*eventlog.Sample) error
	images   map[uint32]*allocImage // by generation
	sites    map[*process.Module]*allocSites
	// failed is why the event is not sampled; it is told once.
	failed error

	// Taking a probe out waits for the kernel's readers, a tenth of a second; so
	// that and the windows have goroutines of their own.
	background sync.WaitGroup
	stop       chan struct{} // closed to end all windows

	ended [bpf.AllocSites]uint64 // for how long probes were in place in processes that have ended

	perHit [bpf.AllocSites]float64 // ns, what a hit costs the target
	cost   [bpf.AllocSites]bpf.RunStats

	busy busy
	// startHits is how many hits each probe may have when it is placed for the first time.
	startHits float64
}

// allocImage is what is sampled of one process image.
type allocImage struct {
	im     *process.Image
	sites  *allocSites
	exe    *link.Executable
	memory *os.File // /proc/PID/mem; nil where it cannot be read
	ledger *ledger
	probes [bpf.AllocSites]*probe // nil where there is no place for one
	// Of the image, which may change where windows are open.
	bias, totalAllocated uint64

	words  uint64  // allocated, as last read
	readAt uint64  // when, ns
	rate   float64 // bytes a second
	large  float64 // of these, of large objects while their probe is in place; 0 if not known
	polls  int     // that told something
	// final is what the process has said, at its end, to have allocated.
	final uint64
}

func newAllocProbes(event *grantedEvent, programs [bpf.AllocSites]*ebpf.Program, s *bpf.Sampler, b *bucket, warn func(string)) *allocProbes {
	return &allocProbes{event: event, programs: programs, sampler: s, warn: warn, stop: make(chan struct{}),
		images: map[uint32]*allocImage{}, sites: map[*process.Module]*allocSites{},
		perHit: [...]float64{defaultHitCost, defaultHitCost, defaultHitCost, defaultHitCost}, busy: busy{cpus: 1},
		startHits: b.level / 6 / defaultHitCost}
}

// find looks for the places in the image's run-time system, which its layout has
// to tell the walker. Nil if they cannot be found.
func (a *allocProbes) find(im *process.Image) *allocSites {
	if a == nil || im.RTS == nil || a.failed != nil {
		return nil
	}
	if s, known := a.sites[im.RTS]; known {
		return s
	}
	s, err := findAllocSites(im.RTS)
	a.sites[im.RTS] = s
	if err != nil {
		a.fail(err)
	} else if len(s.lacks) > 0 {
		a.warn(fmt.Sprintf("event %s tells nothing of %s: the program's symbol table does not have their place", AllocEvent, strings.Join(s.lacks, ", ")))
	}
	return s
}

func (a *allocProbes) fail(err error) {
	a.failed = err
	a.warn(fmt.Sprintf("event %s is not available: %v; the other events go on", AllocEvent, err))
}

// Prepare tells the walker of the places in an image's run-time system.
func (a *allocProbes) Prepare(im *process.Image) {
	s := a.find(im)
	if s == nil {
		return
	}
	l, bias := &im.Layout, im.BiasOf(im.RTS)
	if l.Thin[bpf.SiteLarge] == 0 {
		// Until it is known how many large objects there are, not all are sampled.
		l.Thin[bpf.SiteLarge] = firstLargeThin
	}
	l.EnterInfo = s.enter + bias
	l.CannedLo, l.CannedHi = s.cannedLo+bias, s.cannedHigh+bias
	if s.nCapabilities == 0 {
		return
	}
	l.N_capabilities = s.nCapabilities + bias
	if s.mainCapability != 0 {
		l.MainCapability = s.mainCapability + bias
	}
	if s.capabilities != 0 {
		l.Capabilities = s.capabilities + bias
		if s.capabilitiesInPlace {
			l.CapabilitiesInPlace = 1
		}
	}
}

// Attach puts the probes into an image's process, once.
func (a *allocProbes) Attach(im *process.Image) error {
	s := a.find(im)
	if s == nil || a.images[im.Incarnation] != nil {
		return nil
	}
	if err := a.sampler.OpenAccount(im.Incarnation); err != nil {
		return err
	}
	// By the file that is held open: whatever the path names by now.
	exe, err := link.OpenExecutable(fmt.Sprintf("/proc/self/fd/%d", im.RTS.File.Fd()))
	if err != nil {
		a.fail(&uprobe.Error{Err: err})
		return nil
	}
	ai := &allocImage{im: im, sites: s, exe: exe, bias: im.BiasOf(im.RTS), totalAllocated: uint64(im.Layout.TotalAllocated)}
	ai.memory, _ = os.Open(fmt.Sprintf("/proc/%d/mem", im.PID))
	var atStart map[uint16]uint64
	if !im.FromStart {
		atStart, _ = ai.readWords()
	}
	ai.ledger = newLedger(im.FromStart, atStart)
	a.images[im.Incarnation] = ai
	for site := range ai.probes {
		offset, ok := im.RTS.FileOffset(s.probes[site])
		if s.probes[site] == 0 || !ok {
			continue
		}
		ai.probes[site] = &probe{site: bpf.AllocSite(site), attach: func() (link.Link, error) {
			if uprobe.Multi() {
				return exe.UprobeMulti(nil, a.programs[site], &link.UprobeMultiOptions{Addresses: []uint64{offset}, PID: im.PID})
			}
			return exe.Uprobe("", a.programs[site], &link.UprobeOptions{Address: offset, PID: int(im.PID)})
		}}
	}
	if err := a.placeFirst(ai); err != nil {
		a.fail(&uprobe.Error{Err: err})
		return a.Detach(im, 0)
	}
	return nil
}

// placeFirst places the probes that are to be there from the beginning. That of
// blocks waits until it is known how often it would be hit, and that of large objects,
// which is in C, until that can be unwound.
func (a *allocProbes) placeFirst(ai *allocImage) error {
	var errs [bpf.AllocSites]error
	var wait sync.WaitGroup // each takes the kernel some milliseconds
	if p := ai.probes[bpf.SiteLarge]; p != nil && !ai.im.RTS.Unwinds() {
		p.waits = true
	}
	for site, p := range ai.probes {
		if p != nil && p.site != bpf.SiteBlock && !p.waits {
			wait.Go(func() {
				if p.site == bpf.SiteEnd {
					errs[site] = p.place(0)
				} else {
					errs[site] = p.start(a, ai, a.startHits)
				}
			})
		}
	}
	wait.Wait()
	for site, err := range errs {
		if err != nil && site != int(bpf.SiteNursery) {
			ai.probes[site] = nil
		}
	}
	return errs[bpf.SiteNursery]
}

// Unwinds is told that the run-time system of an image can be unwound, or never will.
func (a *allocProbes) Unwindable(im *process.Image) {
	if a.images[im.Incarnation] == nil {
		return
	}
	ai := a.images[im.Incarnation]
	if p := ai.probes[bpf.SiteLarge]; p != nil && p.waits {
		p.waits = false
		if p.start(a, ai, a.startHits) != nil {
			ai.probes[bpf.SiteLarge] = nil
		}
	}
}

// weigh gives a sample's weight; 0 for one that is not to be recorded.
func (a *allocProbes) weigh(im *process.Image, s *perf.Sample) uint64 {
	ai := a.images[im.Incarnation]
	if ai == nil || ai.probes[s.Site] == nil {
		return 0
	}
	h := hit{site: bpf.AllocSite(s.Site), capability: s.Capability, time: s.Time, words: s.Total, large: s.Large, primitive: s.Period == 0,
		thin: im.Layout.Thin[s.Site]}
	return ai.ledger.weigh(&h, ai.probes[s.Site].at(s.Time), ai.probes[bpf.SiteLarge].at(s.Time))
}

// remember keeps a sample that was written.
func (a *allocProbes) remember(im *process.Image, s *eventlog.Sample, of stratum) {
	if ai := a.images[im.Incarnation]; ai != nil {
		ai.ledger.remember(s, of)
	}
}

// ending takes in what a process says, at its end, to have allocated.
func (a *allocProbes) ending(im *process.Image, words uint64) {
	if a == nil {
		return
	}
	if ai := a.images[im.Incarnation]; ai != nil {
		ai.final = max(ai.final, words)
	}
}

// Detach removes the probes of an image that has ended, and accounts for its last
// bytes.
func (a *allocProbes) Detach(im *process.Image, _ uint64) error {
	if a == nil || a.images[im.Incarnation] == nil {
		return nil
	}
	ai := a.images[im.Incarnation]
	delete(a.images, im.Incarnation)
	err := a.settle(ai)
	now := monotonic()
	for site, p := range ai.probes {
		a.ended[site] = max(a.ended[site], p.timeInPlace(now))
	}
	for _, p := range ai.probes {
		if p != nil {
			p.remove(&a.background) // the kernel removed it with the process
			a.background.Go(p.discard)
		}
	}
	if ai.memory != nil {
		ai.memory.Close()
	}
	return errors.Join(err, a.sampler.CloseAccount(im.Incarnation))
}

// settle gives what an image has allocated and no sample was given to its last
// samples.
func (a *allocProbes) settle(ai *allocImage) error {
	words := ai.final
	if words == 0 {
		if r, err := a.read(ai); err == nil {
			ai.poll(&r)
		}
		words = ai.words
	}
	for _, s := range ai.ledger.settle(words) {
		s.PID = ai.im.PID
		s.Event = a.event.def.Index
		if err := a.emit(&s); err != nil {
			return err
		}
	}
	return nil
}

// settleAll does so for every image that is still sampled, at a capture's end.
func (a *allocProbes) settleAll() error {
	if a == nil {
		return nil
	}
	var err error
	for _, ai := range a.images {
		err = errors.Join(err, a.settle(ai))
	}
	return err
}

// forgetRecent is called when a new log begins.
func (a *allocProbes) forgetRecent() {
	if a == nil {
		return
	}
	for _, ai := range a.images {
		ai.ledger.forgetRecent()
	}
}

// Close takes all probes out, and waits for that.
func (a *allocProbes) Close() error {
	if a == nil {
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
		if ai.memory != nil {
			ai.memory.Close()
		}
	}
	a.images = nil
	return nil
}

// grantAlloc grants allocation sampling for now; whether the program allows it
// is seen when its run-time system is.
func grantAlloc() grantedEvent {
	return grantedEvent{def: eventlog.EventDef{
		Requested: AllocEvent, Granted: AllocEvent, Unit: "bytes", RateMode: eventlog.RatePeriod,
	}}
}
