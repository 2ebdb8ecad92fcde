package rts

import (
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cilium/ebpf/ringbuf"

	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/rtsevents"
	"ccagent/agent/rtsites"
	"ccagent/agent/source"
	"ccagent/agent/uprobe"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// Kind makes the source of what the run-time system does.
func Kind() source.Kind { return source.Kind{Grant: grant, New: open, Known: known} }

// grant returns the events, which have no samples: they are standard events of an eventlog.
func grant(name string, _ perf.Rate) (*source.Event, bool, error) {
	g := slices.Index(rtsevents.Groups[:], name)
	return &source.Event{Detail: g}, g >= 0, nil
}

func known() []source.Known {
	reason, help := process.WhyNoProbes()
	return []source.Known{
		{Name: rtsevents.Groups[bpf.RTSGroupGC], About: "collections over time, the heap's size", Reason: reason, Help: help},
		{Name: rtsevents.Groups[bpf.RTSGroupThreads], About: "threads over time, why they stop", Reason: reason, Help: help},
	}
}

// Probes is the source of what run-time systems do: that of the first Haskell process of a
// capture, whose log can have one, or those of all processes that have logs of their own.
type Probes struct {
	source.Base
	host   *source.Host
	used   func(*process.Image) uint64 // CPU time of a process, ns; asked with the lock of its image held
	wanted [bpf.RTSGroups]bool
	// quiet groups serve the walker and report labels, but write no events.
	quiet   [bpf.RTSGroups]bool
	program *bpf.RTSProgram
	spent   *ringbuf.Reader // has a record when a group of a process has reached its limit of hits
	multi   bool            // a group is one link
	running sync.WaitGroup
	stop    chan struct{}
	stopped atomic.Uint64 // when sampling ended, by the budget's clock; 0 before

	images  map[uint32]*image // by process
	sites   map[*process.Module]found
	traps   overhead.Tally
	ended   uint64 // what the probes of processes that have ended have cost, ns
	written []eventlog.RTSProbes

	mu    sync.Mutex
	slots []*image // nil where free
}

// open makes the source of the groups that were asked for. The probes of threads also report
// labels.
func open(h *source.Host, asked []*source.Event, needs source.Need) source.Source {
	p := &Probes{host: h, used: cpuTime, stop: make(chan struct{}), images: map[uint32]*image{}, sites: map[*process.Module]found{}}
	for _, e := range asked {
		p.wanted[e.Detail.(int)] = true
	}
	if t := bpf.RTSGroupThreads; needs&source.Labels != 0 && !p.wanted[t] {
		p.wanted[t], p.quiet[t] = true, true
	}
	if p.wanted == [bpf.RTSGroups]bool{} {
		return nil
	}
	h.Budget.Costs.NeedTrap()
	return p
}

// maxProcesses bounds the processes whose run-time systems have probes at a time. Those of one that has ended are removed a moment
// later, so there may be none left for a new one.
const maxProcesses = bpf.MaxProcesses

// Load loads the probes' BPF programs, unless that is to be left until a process has their sites.
func (p *Probes) Load() error {
	p.multi = uprobe.Multi()
	slots := 1
	if p.host.OwnLogs {
		slots = maxProcesses
	}
	p.slots = make([]*image, slots)
	if p.host.LoadLate {
		return nil
	}
	return p.load()
}

// load loads the programs, once.
func (p *Probes) load() (err error) {
	if p.program != nil {
		return nil
	}
	if p.program, err = p.host.Walker.LoadRTSProgram(p.multi, len(p.slots)); err != nil {
		return err
	}
	if p.spent, err = ringbuf.NewReader(p.program.Spent()); err != nil {
		return fmt.Errorf("map the ring buffer of the run-time system's probes: %w", err)
	}
	p.running.Go(p.notify)
	return nil
}

// notify wakes the control of processes whose groups the kernel reports to have reached their
// limit of hits.
func (p *Probes) notify() {
	defer overhead.Hasten()() // until the probes are out the program pays for each hit
	var record ringbuf.Record
	for p.spent.ReadInto(&record) == nil { // until it is closed
		slot, ok := bpf.RTSSlotOf(record.RawSample)
		p.mu.Lock()
		if ok && slot < len(p.slots) && p.slots[slot] != nil {
			p.slots[slot].lookAt()
		}
		p.mu.Unlock()
	}
}

// errFull is the problem of processes beyond maxProcesses.
var errFull = fmt.Errorf("probes are in %d other processes already, which is the most", maxProcesses)

// Attach puts the probes into an image's process, unless they are in another's whose log it has.
func (p *Probes) Attach(im *process.Image) error {
	if im.RTS == nil || p.images[im.PID] != nil && p.images[im.PID].im == im {
		return nil
	}
	if !p.host.OwnLogs && len(p.attached()) > 0 {
		return nil
	}
	i := newImage(p, im)
	err := i.attach()
	if errors.Is(err, process.ErrEnded) { // another may live longer
		return p.release(i)
	}
	if err != nil {
		return err
	}
	p.images[im.PID] = i
	p.warn(i)
	if i.slot >= 0 {
		p.running.Go(i.control)
	}
	return nil
}

// found is what is known of the sites in a build's run-time system.
type found struct {
	*rtsites.Sites
	err error
}

// find finds the sites in a module, once.
func (p *Probes) find(mod *process.Module) found {
	f, known := p.sites[mod]
	if known {
		return f
	}
	symbols, err := mod.RTSSymbols()
	if err == nil {
		f.Sites, err = rtsites.Find(symbols)
	}
	f.err = err
	p.sites[mod] = f
	return f
}

// attached lists the images that have, or had, probes.
func (p *Probes) attached() (all []*image) {
	for _, i := range p.images {
		if i.slot >= 0 {
			all = append(all, i)
		}
	}
	return all
}

// take gives an image a slot of counts; false if there is none.
func (p *Probes) take(i *image) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for n, of := range p.slots {
		if of == nil {
			p.slots[n], i.slot = i, n
			return true
		}
	}
	return false
}

// release removes an image's probes, beside what follows: the kernel takes a tenth of a second.
func (p *Probes) release(i *image) error {
	i.end()
	if i.slot < 0 {
		return nil
	}
	err := p.program.Forget(i.im.PID)
	p.running.Go(func() {
		<-i.ended
		_ = i.removeAll() // fails only for what is gone with the process
		i.mu.Lock()
		for g := range i.groups {
			if b := i.groups[g].bucket; b != nil {
				b.End()
			}
		}
		i.mu.Unlock()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.slots[i.slot] = nil
	})
	return err
}

// warn warns of groups that are not available, in one line for each reason, once.
func (p *Probes) warn(i *image) {
	for _, line := range i.problems() {
		p.host.WarnOf(i.im, line)
	}
}

// Unavailable is the problem if no group is available.
func (p *Probes) Unavailable() error {
	var problem error
	for _, i := range p.images {
		for g, err := range i.problem {
			switch {
			case !p.wanted[g] || p.quiet[g]:
			case err == nil:
				return nil
			default:
				problem = fmt.Errorf("event %s is not available: %w", rtsevents.Groups[g], err)
			}
		}
	}
	return problem
}

// Missing returns why an event is not measured in a process, nil if it is.
func (p *Probes) Missing(im *process.Image, event string) error {
	g := slices.Index(rtsevents.Groups[:], event)
	if g < 0 {
		return nil
	}
	if i := p.images[im.PID]; i != nil && i.im == im {
		return i.problem[g]
	}
	return source.ErrNoRTS
}

// CostOf is what the probes of a process have cost it so far, ns.
func (p *Probes) CostOf(im *process.Image) uint64 {
	if i := p.images[im.PID]; i != nil && i.im == im && i.slot >= 0 {
		return i.cost()
	}
	return 0
}

// Threads is how many Haskell threads of a process were seen that have not ended; false where they are
// not watched now.
func (p *Probes) Threads(im *process.Image) (n int, ok bool) {
	if i := p.images[im.PID]; i != nil && i.im == im && i.slot >= 0 && !p.quiet[bpf.RTSGroupThreads] {
		return i.translator.Threads()
	}
	return 0, false
}

// Detach ends what is under way in an image that has ended. That of a capture's log stays known, for
// the account.
func (p *Probes) Detach(im *process.Image, at uint64) error {
	i := p.images[im.PID]
	if i == nil || i.im != im {
		return nil
	}
	err := i.finish(at)
	if !p.host.OwnLogs {
		if p.program != nil {
			err = errors.Join(err, p.program.Forget(im.PID))
		}
		return err
	}
	err = errors.Join(err, i.account())
	p.ended += i.cost()
	delete(p.images, im.PID)
	return errors.Join(err, p.release(i))
}

// Close removes all probes.
func (p *Probes) Close() error {
	if p.program == nil {
		return nil
	}
	var err error
	if p.spent != nil {
		err = p.spent.Close()
	}
	for _, i := range p.images {
		err = errors.Join(err, p.release(i))
	}
	p.running.Wait()
	err = errors.Join(err, p.program.Close())
	p.program, p.images = nil, nil
	return err
}
