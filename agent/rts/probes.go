package rts

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf/ringbuf"
	"golang.org/x/sync/errgroup"

	"ccagent/agent/process"
	"ccagent/agent/rtsevents"
	"ccagent/agent/rtsites"
	"ccagent/agent/source"
	"ccagent/agent/uprobe"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/internal/ghc"
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

// Probes is the source of what the run-time system of the first Haskell process does.
type Probes struct {
	source.Base
	host   *source.Host
	wanted [bpf.RTSGroups]bool
	// quiet groups serve the walker and report labels, but write no events.
	quiet      [bpf.RTSGroups]bool
	program    *bpf.RTSProgram
	spent      *ringbuf.Reader // has a record when a group has reached its limit of hits
	multi      bool            // a group is one link
	translator *rtsevents.Translator
	image      *process.Image // whose run-time system it is
	bias       uint64
	sites      *rtsites.Sites
	problem    [bpf.RTSGroups]error
	reported   bool // a problem was reported
	heapInfo   bool // the heap's parameters have been written
	written    []eventlog.RTSProbes

	stop    chan struct{}
	look    chan struct{} // at what the probes have cost
	running sync.WaitGroup

	mu     sync.Mutex
	groups [bpf.RTSGroups]group
	gaps   []rtsevents.Gap // not yet taken by the translator
}

// open makes the source of the groups that were asked for. The probes of threads also report
// labels.
func open(h *source.Host, asked []*source.Event, needs source.Need) source.Source {
	p := &Probes{host: h, stop: make(chan struct{}), look: make(chan struct{}, 1)}
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
	p.translator = rtsevents.New(func(time uint64, capability int, e eventlog.Event) error {
		return p.image.Log.EmitOn(time, capability, e)
	})
	return p
}

// Load loads the probes' BPF programs.
func (p *Probes) Load() (err error) {
	p.multi = uprobe.Multi()
	if p.program, err = p.host.Walker.LoadRTSProgram(p.multi); err != nil {
		return err
	}
	if p.spent, err = ringbuf.NewReader(p.program.Spent()); err != nil {
		return fmt.Errorf("map the ring buffer of the run-time system's probes: %w", err)
	}
	return nil
}

// Attach puts the probes into an image's process, unless they are in another's.
func (p *Probes) Attach(im *process.Image) error {
	if p.image != nil || im.RTS == nil || p.reported {
		return nil
	}
	sites, err := findSites(im.RTS)
	if err == nil {
		p.image, p.sites, p.bias = im, sites, im.BiasOf(im.RTS)
		err = p.program.SetGlobals(im.PID, p.globals(im))
	}
	for g := range p.groups {
		if !p.wanted[g] {
			continue
		}
		if p.problem[g] = err; err == nil {
			p.problem[g] = p.place(g)
		}
		if errors.Is(p.problem[g], process.ErrEnded) { // another may live longer
			p.image = nil
			clear(p.problem[:])
			return p.program.Forget(im.PID)
		}
		if p.problem[g] == nil && !p.quiet[g] {
			p.mu.Lock()
			p.gaps = append(p.gaps, rtsevents.Gap{Time: perf.Monotonic(), Group: g})
			p.mu.Unlock()
		}
	}
	p.warnUnavailable()
	if p.image != nil {
		p.control()
	}
	return nil
}

// place puts a group's probes in for the first time.
func (p *Probes) place(g int) error {
	found := [...]rtsites.Group{bpf.RTSGroupGC: p.sites.GC, bpf.RTSGroupThreads: p.sites.Threads}[g]
	if found.Err != nil {
		return found.Err
	}
	group := &p.groups[g]
	group.sites, group.bucket, group.at = found.Sites, p.host.Budget.RTS(), p.host.Budget.Clock()
	if p.quiet[g] {
		group.sites = slices.DeleteFunc(slices.Clone(group.sites), func(s rtsites.Site) bool {
			return s.Probe != bpf.RTSSuspend && s.Probe != bpf.RTSLabelArray && s.Probe != bpf.RTSLabelCString
		})
	}
	if len(group.sites) == 0 {
		return &rtsites.MissingError{What: "sites"}
	}
	if err := errors.Join(p.setLimit(g), p.put(group)); err != nil {
		return err
	}
	if len(found.Lacks) > 0 && !p.quiet[g] {
		p.host.Log.Warn(fmt.Sprintf("event %s leaves out %s: the program's symbol table does not have their place", rtsevents.Groups[g], strings.Join(found.Lacks, ", ")))
	}
	return nil
}

func findSites(mod *process.Module) (*rtsites.Sites, error) {
	symbols, err := mod.RTSSymbols()
	if err != nil {
		return nil, err
	}
	return rtsites.Find(symbols)
}

// globals are the run-time addresses of the RTS's variables.
func (p *Probes) globals(im *process.Image) bpf.RTSGlobals {
	at := func(addr uint64) uint64 {
		if addr == 0 {
			return 0
		}
		return addr + p.bias
	}
	s := p.sites
	g := bpf.RTSGlobals{
		MblocksAllocated: at(s.MBlocks), N_allocBlocks: at(s.Blocks), Capabilities: at(s.Array),
		N_capabilities: at(s.Count), MainCapability: at(s.Main), Stats: at(s.Stats),
	}
	g.GcTimes = s.GCTimes
	p.translator.Synced = s.Threaded && s.GCTimes != 0
	if s.InPlace {
		g.CapabilitiesInPlace = 1
	}
	b := &im.RTS.Binary
	layout, _ := ghc.LayoutOf(b.GHCVersion, b.Profiled(), b.Threaded())
	g.WhyBlocked = layout.WhyBlocked
	if layout.WhyBlockedWide {
		g.WhyBlockedWide = 1
	}
	return g
}

// warnUnavailable warns of groups that are not available, in one line for each reason.
func (p *Probes) warnUnavailable() {
	groups := map[string][]string{} // by reason
	for g, err := range p.problem {
		if err == nil || p.quiet[g] {
			continue
		}
		p.reported = true
		groups[err.Error()] = append(groups[err.Error()], rtsevents.Groups[g])
	}
	for _, reason := range slices.Sorted(maps.Keys(groups)) {
		what, are := "event "+groups[reason][0], "is"
		if len(groups[reason]) > 1 {
			what, are = "events "+strings.Join(groups[reason], ", "), "are"
		}
		p.host.Log.Warn(fmt.Sprintf("%s %s not available: %s; the other events go on", what, are, reason))
	}
}

// Unavailable is the problem if no group is available.
func (p *Probes) Unavailable() error {
	var problem error
	for g, err := range p.problem {
		if p.wanted[g] && !p.quiet[g] && err == nil {
			return nil
		}
		if err != nil && !p.quiet[g] {
			problem = fmt.Errorf("event %s is not available: %w", rtsevents.Groups[g], err)
		}
	}
	return problem
}

// Detach ends what is under way in an image that has ended.
func (p *Probes) Detach(im *process.Image, at uint64) error {
	if p.image != im {
		return nil
	}
	if err := p.takeGaps(at); err != nil {
		return err
	}
	err := errors.Join(p.closeWatches(at), p.translator.Close(at))
	return errors.Join(err, p.program.Forget(im.PID))
}

// Close removes all probes.
func (p *Probes) Close() error {
	if p.program == nil {
		return nil
	}
	close(p.stop)
	var err error
	if p.spent != nil {
		err = p.spent.Close()
	}
	p.running.Wait()
	var all errgroup.Group // each takes the kernel a tenth of a second
	for g := range p.groups {
		all.Go(p.groups[g].take)
	}
	err = errors.Join(err, all.Wait(), p.program.Close())
	p.program = nil
	return err
}
