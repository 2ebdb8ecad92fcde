package rtsprobes

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf/ringbuf"

	"ccagent/agent/process"
	"ccagent/agent/rtsites"
	"ccagent/agent/timeline"
	"ccagent/agent/uprobe"
	"ccagent/bpf"
	"ccagent/internal/ghc"
)

// Events that are no samples: what the run-time system does, from probes in its
// code, as the standard events of an eventlog.
const (
	GCEvent      = "gc"      // collections and the heap's size
	ThreadsEvent = "threads" // threads run and stop, with the reason
)

// groupNames are by group of probes.
var groupNames = [bpf.RTSGroups]string{bpf.RTSGroupGC: GCEvent, bpf.RTSGroupThreads: ThreadsEvent}

// Wanted says which groups of probes are asked for.
type Wanted [bpf.RTSGroups]bool

// Split divides the names of events into those that are sampled and the groups of
// probes.
func Split(names []string) (sampled []string, groups Wanted, err error) {
	for _, name := range names {
		g := slices.Index(groupNames[:], name)
		if g < 0 {
			sampled = append(sampled, name)
			continue
		}
		if groups[g] {
			return nil, groups, fmt.Errorf("event %s is named twice", name)
		}
		groups[g] = true
	}
	return sampled, groups, nil
}

// Config is what probes are to do.
type Config struct {
	Wanted Wanted
	// Waits asks for what samples of waits need of the threads.
	Waits bool
	// Budget is what each group may cost, as a part of the time that passes; 0 for no
	// limit.
	Budget float64
	Write  timeline.Write
	Warn   func(string)
}

// Probes draws the timeline of the first Haskell process of a capture. A nil one
// does nothing.
type Probes struct {
	wanted Wanted
	// quiet groups serve the walker and tell labels, but draw no timeline.
	quiet    Wanted
	budget   float64
	warn     func(string)
	program  *bpf.Timeline
	spent    *ringbuf.Reader // tells when a group has been hit as often as it may
	multi    bool            // a group is one link
	timeline *timeline.Timeline
	image    *process.Image // whose timeline it is
	bias     uint64
	sites    *rtsites.Sites
	problem  [bpf.RTSGroups]error
	told     bool // a problem was
	heapInfo bool // the heap's parameters have been written

	stop    chan struct{}
	look    chan struct{} // at what the probes have cost
	running sync.WaitGroup

	mu     sync.Mutex
	groups [bpf.RTSGroups]group
	gaps   []gap // not yet taken by the timeline
}

// New is nil unless a group is wanted, or waits are sampled.
func New(c Config, sampler *bpf.Sampler) (*Probes, error) {
	var quiet Wanted
	if c.Waits && !c.Wanted[bpf.RTSGroupThreads] {
		c.Wanted[bpf.RTSGroupThreads], quiet[bpf.RTSGroupThreads] = true, true
	}
	if c.Wanted == (Wanted{}) {
		return nil, nil
	}
	multi := uprobe.Multi()
	program, err := sampler.LoadTimeline(multi)
	if err != nil {
		return nil, err
	}
	spent, err := ringbuf.NewReader(program.Spent())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("map the timeline's ring buffer: %w", err), program.Close())
	}
	return &Probes{wanted: c.Wanted, quiet: quiet, budget: c.Budget, warn: c.Warn, program: program, spent: spent, multi: multi,
		timeline: timeline.New(c.Write), stop: make(chan struct{}), look: make(chan struct{}, 1)}, nil
}

// Prepare has nothing for the walker: the probes have a program of their own.
func (p *Probes) Prepare(*process.Image) {}

// Unwinds has nothing to wait for.
func (p *Probes) Unwindable(*process.Image) {}

// Attach puts the probes into an image's process, unless they are in another's.
func (p *Probes) Attach(im *process.Image) error {
	if p == nil || p.image != nil || im.RTS == nil || p.told {
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
	}
	p.tellProblems()
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
	group.sites, group.since = found.Sites, time.Now()
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
		p.warn(fmt.Sprintf("event %s tells nothing of %s: the program's symbol table does not have their place", groupNames[g], strings.Join(found.Lacks, ", ")))
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
		MblocksAllocated: at(s.MBlocks), N_allocBlocks: at(s.Blocks), Capabilities: at(s.Capabilities),
		N_capabilities: at(s.CapabilityCount), MainCapability: at(s.MainCapability), Stats: at(s.Stats),
	}
	if s.CapabilitiesInPlace {
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

// tellProblems warns of groups that are not available, at once where the reason is
// the same.
func (p *Probes) tellProblems() {
	groups := map[string][]string{} // by reason
	for g, err := range p.problem {
		if err == nil || p.quiet[g] {
			continue
		}
		p.told = true
		groups[err.Error()] = append(groups[err.Error()], groupNames[g])
	}
	for _, reason := range slices.Sorted(maps.Keys(groups)) {
		what, are := "event "+groups[reason][0], "is"
		if len(groups[reason]) > 1 {
			what, are = "events "+strings.Join(groups[reason], ", "), "are"
		}
		p.warn(fmt.Sprintf("%s %s not available: %s; the other events go on", what, are, reason))
	}
}

// OnlyProblem is the problem if no group is available.
func (p *Probes) OnlyProblem() error {
	if p == nil {
		return nil
	}
	var problem error
	for g, err := range p.problem {
		if p.wanted[g] && !p.quiet[g] && err == nil {
			return nil
		}
		if err != nil && !p.quiet[g] {
			problem = fmt.Errorf("event %s is not available: %w", groupNames[g], err)
		}
	}
	return problem
}

// Detach ends the timeline of an image that has ended.
func (p *Probes) Detach(im *process.Image, at uint64) error {
	if p == nil || p.image != im {
		return nil
	}
	if err := p.takeGaps(at); err != nil {
		return err
	}
	err := p.timeline.Close(at)
	return errors.Join(err, p.program.Forget(im.PID))
}

// Close takes all probes out.
func (p *Probes) Close() error {
	if p == nil {
		return nil
	}
	close(p.stop)
	err := p.spent.Close()
	p.running.Wait()
	var all group
	for g := range p.groups {
		all.links = append(all.links, p.groups[g].links...)
	}
	return errors.Join(err, all.take(), p.program.Close())
}
