package rts

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"ccagent/agent/overhead"
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

// image is the probes in one process image's run-time system.
type image struct {
	p          *Probes
	im         *process.Image
	slot       int // of its counts; −1 if it has no probes
	bias       uint64
	sites      *rtsites.Sites
	translator *rtsevents.Translator
	problem    [bpf.RTSGroups]error // why a group that is wanted is not measured
	heapInfo   bool                 // the heap's parameters have been written
	budget     *overhead.Budget

	look  chan struct{} // at what the probes have cost
	stop  chan struct{} // ends control
	once  sync.Once     // closes stop
	ended chan struct{} // closed when control has ended

	mu     sync.Mutex
	groups [bpf.RTSGroups]group
	gaps   []rtsevents.Gap // not yet taken by the translator
}

// group is the state of a group's probes.
type group struct {
	sites  []rtsites.Site
	probes *uprobe.Probes   // nil while they are out
	bucket *overhead.Bucket // nil where the group is not measured
	at     uint64           // until when it was filled, by the process's CPU time, ns
	out    uint64           // for how long the probes have been out, ns
	outAt  uint64           // since when they are, 0 while they are in place
	cost   float64          // of all hits, ns
	hit    float64          // of one, ns
	counts bpf.RTSCounts
	failed error         // they could not be put back
	wait   time.Duration // before the look before, while they are out
}

func newImage(p *Probes, im *process.Image) *image {
	i := &image{p: p, im: im, slot: -1, budget: p.host.BudgetOf(im),
		look: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{})}
	i.translator = rtsevents.New(func(time uint64, capability int, e eventlog.Event) error {
		return im.Log.EmitOn(time, capability, e)
	})
	i.translator.Collected = func(c rtsevents.Collection) {
		if p.host.Collected != nil {
			p.host.Collected(im, c.PauseNs, c.Major)
		}
	}
	return i
}

// attach puts the wanted groups in for the first time. What stands in the way of one is its
// problem; the error is ErrEnded, or one that ends measuring.
func (i *image) attach() error {
	f := i.p.find(i.im.RTS)
	err := f.err
	if err == nil && i.excluded() == len(i.groups) {
		err = source.ErrExcluded
	}
	if err == nil && !i.p.take(i) {
		err = errFull
	}
	if err == nil {
		if err := i.p.load(); err != nil {
			return err
		}
		i.sites, i.bias = f.Sites, i.im.BiasOf(i.im.RTS)
		if err := errors.Join(i.p.program.Clear(i.slot), i.p.program.SetGlobals(i.im.PID, i.globals())); err != nil {
			return err
		}
	}
	for g := range i.groups {
		if !i.p.wanted[g] {
			continue
		}
		if i.problem[g] == nil {
			i.problem[g] = err
		}
		if i.problem[g] == nil {
			i.problem[g] = i.place(g)
		}
		if errors.Is(i.problem[g], process.ErrEnded) {
			close(i.ended)
			return i.problem[g]
		}
		if i.problem[g] == nil && !i.p.quiet[g] {
			i.gaps = append(i.gaps, rtsevents.Gap{Time: perf.Monotonic(), Group: g})
		}
	}
	return nil
}

// excluded notes the groups that are not wanted in the process, and returns how many groups are not
// measured in it.
func (i *image) excluded() (n int) {
	for g := range i.groups {
		if !i.p.wanted[g] {
			n++
		} else if i.problem[g] = i.p.host.Excluded(i.im, rtsevents.Groups[g]); i.problem[g] != nil {
			n++
		}
	}
	return n
}

// place puts a group's probes in for the first time.
func (i *image) place(g int) error {
	found := [...]rtsites.Group{bpf.RTSGroupGC: i.sites.GC, bpf.RTSGroupThreads: i.sites.Threads}[g]
	if found.Err != nil {
		return found.Err
	}
	group := &i.groups[g]
	group.sites = found.Sites
	if i.p.quiet[g] {
		group.sites = slices.DeleteFunc(slices.Clone(group.sites), func(s rtsites.Site) bool {
			return s.Probe != bpf.RTSSuspend && s.Probe != bpf.RTSLabelArray && s.Probe != bpf.RTSLabelCString
		})
	}
	if len(group.sites) == 0 {
		return &rtsites.MissingError{What: "sites"}
	}
	group.bucket, group.at = i.budget.RTS(), i.p.used(i.im)
	group.hit = i.hitCost()
	if err := errors.Join(i.setLimit(g), i.put(group)); err != nil {
		group.bucket = nil
		return err
	}
	if len(found.Lacks) > 0 && !i.p.quiet[g] {
		i.p.host.WarnOf(i.im, fmt.Sprintf("event %s leaves out %s: the program's symbol table does not have their place", rtsevents.Groups[g], strings.Join(found.Lacks, ", ")))
	}
	return nil
}

// globals are the run-time addresses of the RTS's variables.
func (i *image) globals() bpf.RTSGlobals {
	at := func(addr uint64) uint64 {
		if addr == 0 {
			return 0
		}
		return addr + i.bias
	}
	s := i.sites
	g := bpf.RTSGlobals{
		MblocksAllocated: at(s.MBlocks), N_allocBlocks: at(s.Blocks), Capabilities: at(s.Array),
		N_capabilities: at(s.Count), MainCapability: at(s.Main), Stats: at(s.Stats),
	}
	g.GcTimes = s.GCTimes
	i.translator.Synced = s.Threaded && s.GCTimes != 0
	if s.InPlace {
		g.CapabilitiesInPlace = 1
	}
	b := &i.im.RTS.Binary
	layout, _ := ghc.LayoutOf(b.GHCVersion, b.Profiled(), b.Threaded())
	g.WhyBlocked = layout.WhyBlocked
	g.Sparks = layout.SparkStats
	if layout.WhyBlockedWide {
		g.WhyBlockedWide = 1
	}
	return g
}

// put places a group's probes.
func (i *image) put(g *group) (err error) {
	at := make([]process.Probe, len(g.sites))
	for n, s := range g.sites {
		at[n] = process.Probe{Addr: s.Addr, Cookie: bpf.RTSCookie(s.Probe, s.AtCall, i.slot)}
	}
	g.probes, err = i.im.Put(i.p.program.Program(), i.p.multi, at...)
	return err
}

// take removes a group's probes.
func (g *group) take() error {
	if g.probes == nil {
		return nil
	}
	err := g.probes.Close()
	g.probes = nil
	return err
}

// removeAll removes all probes, when control has ended.
func (i *image) removeAll() error {
	var all errgroup.Group // each takes the kernel a tenth of a second
	for g := range i.groups {
		all.Go(i.groups[g].take)
	}
	return all.Wait()
}

// end ends control.
func (i *image) end() { i.once.Do(func() { close(i.stop) }) }

// problems are lines on the groups that are not available, one for each reason.
func (i *image) problems() (lines []string) {
	groups := map[string][]string{} // by reason
	for g, err := range i.problem {
		if err != nil && !i.p.quiet[g] && !errors.Is(err, source.ErrExcluded) {
			groups[err.Error()] = append(groups[err.Error()], rtsevents.Groups[g])
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(groups)) {
		what, are := "event "+groups[reason][0], "is"
		if len(groups[reason]) > 1 {
			what, are = "events "+strings.Join(groups[reason], ", "), "are"
		}
		lines = append(lines, fmt.Sprintf("%s %s not available: %s; events that are available go on", what, are, reason))
	}
	return lines
}

// cost is what the probes have cost the process so far, ns.
func (i *image) cost() (ns uint64) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for g := range i.groups {
		if i.groups[g].bucket != nil && i.measure(g) == nil {
			ns += uint64(max(i.groups[g].cost, 0))
		}
	}
	return ns
}
