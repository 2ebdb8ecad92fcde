package agent

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"ccagent/agent/images"
	"ccagent/agent/rtsites"
	"ccagent/agent/timeline"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/perf"
)

// Events that are no samples: what the run-time system does, from probes in its
// code, as the standard events of an eventlog.
const (
	GCEvent      = "gc"      // collections and the heap's size
	ThreadsEvent = "threads" // threads run and stop, with the reason
)

// rtsGroupNames are by group of probes.
var rtsGroupNames = [bpf.RTSGroups]string{bpf.RTSGroupGC: GCEvent, bpf.RTSGroupThreads: ThreadsEvent}

const (
	// rtsBurst is what a group's probes may cost at once beyond their budget, so
	// that a short burst is seen whole.
	rtsBurst = 4 * time.Millisecond
	// rtsTrap is what a hit of an emulated instruction costs beside the BPF
	// program; measured on a virtual machine, Linux 6.18.
	rtsTrap = 500 * time.Nanosecond
	// rtsTick is how often the cost is looked at, rtsRest how often while there is
	// hardly any: every look wakes a CPU.
	rtsTick = 10 * time.Millisecond
	rtsRest = 2 * rtsTick
)

// rtsProbes draws the timeline of the first Haskell process of a capture. A nil one
// does nothing.
type rtsProbes struct {
	wanted [bpf.RTSGroups]bool
	// quiet groups serve the walker and tell labels, but draw no timeline.
	quiet    [bpf.RTSGroups]bool
	budget   float64 // of a group: part of the time; 0 for no limit
	warn     func(string)
	program  *bpf.Timeline
	multi    bool // a group is one link
	timeline *timeline.Timeline
	image    *images.Image // whose timeline it is
	bias     uint64
	sites    *rtsites.Sites
	problem  [bpf.RTSGroups]error
	told     bool // a problem was
	heapInfo bool // the heap's parameters have been written

	stop chan struct{}
	done sync.WaitGroup

	mu     sync.Mutex
	groups [bpf.RTSGroups]rtsGroup
	gaps   []rtsGap // not yet taken by the timeline
}

// rtsGroup is the state of a group's probes.
type rtsGroup struct {
	sites  []rtsites.Site
	links  []link.Link
	since  time.Time // when the budget began
	out    time.Duration
	outAt  time.Time // not zero while the probes are out
	cost   time.Duration
	counts bpf.RTSCounts
	failed error // they could not be put back
}

// rtsGap is where a gap begins or ends.
type rtsGap struct {
	time   uint64
	group  int
	begins bool
}

// splitTimeline divides the names of events into those that are sampled and the
// groups of probes.
func splitTimeline(names []string) (sampled []string, groups [bpf.RTSGroups]bool, err error) {
	for _, name := range names {
		g := slices.Index(rtsGroupNames[:], name)
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

// newRTSProbes is nil unless a group is wanted, or waits are sampled.
func newRTSProbes(wanted [bpf.RTSGroups]bool, waits bool, budget float64, sampler *bpf.Sampler, write timeline.Write, warn func(string)) (*rtsProbes, error) {
	var quiet [bpf.RTSGroups]bool
	if waits && !wanted[bpf.RTSGroupThreads] {
		wanted[bpf.RTSGroupThreads], quiet[bpf.RTSGroupThreads] = true, true
	}
	if wanted == [bpf.RTSGroups]bool{} {
		return nil, nil
	}
	multi := multiProbes()
	program, err := sampler.LoadTimeline(multi)
	if err != nil {
		return nil, err
	}
	return &rtsProbes{wanted: wanted, quiet: quiet, budget: budget, warn: warn, program: program, multi: multi, timeline: timeline.New(write), stop: make(chan struct{})}, nil
}

// multiProbes reports whether the kernel puts many probes into all threads of one
// process with one link. The kernels before "bpf: fix multi-uprobe PID filtering
// logic" (6.10, and stable ones) did so for one thread only; since then a process id
// that is negative for the kernel is an invalid argument, not an unknown process.
var multiProbes = sync.OnceValue(func() bool {
	exe, err := link.OpenExecutable("/proc/self/exe")
	if err != nil {
		return false
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti, License: "Dual BSD/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return false
	}
	defer program.Close()
	l, err := exe.UprobeMulti(nil, program, &link.UprobeMultiOptions{Addresses: []uint64{1}, PID: math.MaxUint32})
	if err == nil {
		l.Close()
	}
	return errors.Is(err, unix.EINVAL)
})

// Complete has nothing for the walker: the probes have a program of their own.
func (p *rtsProbes) Complete(*images.Image) {}

// Unwinds has nothing to wait for.
func (p *rtsProbes) Unwinds(*images.Image) {}

// Attach puts the probes into an image's process, unless they are in another's.
func (p *rtsProbes) Attach(im *images.Image) error {
	if p == nil || p.image != nil || im.RTS == nil || p.told {
		return nil
	}
	sites, err := findRTSites(im.RTS)
	p.sites = sites
	if err == nil {
		p.image, p.bias = im, im.BiasOf(im.RTS)
		err = p.program.SetGlobals(im.PID, p.globals(im))
	}
	for g := range p.groups {
		if !p.wanted[g] {
			continue
		}
		group := &p.groups[g]
		if sites != nil {
			group.sites = [][]rtsites.Site{bpf.RTSGroupGC: sites.GC, bpf.RTSGroupThreads: sites.Threads}[g]
		}
		switch {
		case len(group.sites) > 0:
			if p.quiet[g] {
				group.sites = slices.DeleteFunc(slices.Clone(group.sites), func(s rtsites.Site) bool {
					return s.Probe != bpf.RTSSuspend && s.Probe != bpf.RTSLabelArray && s.Probe != bpf.RTSLabelCString
				})
			}
			p.problem[g] = p.put(group)
		case err != nil:
			p.problem[g] = err
		default:
			p.problem[g] = &rtsites.MissingError{What: "sites"}
		}
		group.since = time.Now()
	}
	p.tellProblems()
	if p.image != nil {
		p.done.Add(1)
		go p.control()
	}
	return nil
}

// tellProblems warns of groups that are not available, at once where the reason is
// the same.
func (p *rtsProbes) tellProblems() {
	groups := map[string][]string{} // by reason
	for g, err := range p.problem {
		if err == nil || p.quiet[g] {
			continue
		}
		p.told = true
		groups[err.Error()] = append(groups[err.Error()], rtsGroupNames[g])
	}
	for _, reason := range slices.Sorted(maps.Keys(groups)) {
		what, are := "event "+groups[reason][0], "is"
		if len(groups[reason]) > 1 {
			what, are = "events "+strings.Join(groups[reason], ", "), "are"
		}
		p.warn(fmt.Sprintf("%s %s not available: %s; the other events go on", what, are, reason))
	}
}

func findRTSites(mod *images.Module) (*rtsites.Sites, error) {
	f, err := mod.ELF()
	if err != nil {
		return nil, err
	}
	return rtsites.Find(f)
}

// globals are the run-time addresses of the RTS's variables.
func (p *rtsProbes) globals(im *images.Image) bpf.RTSGlobals {
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
	var wide bool
	g.WhyBlocked, wide = bpf.WhyBlocked(b.GHCVersion, b.Profiled())
	if wide {
		g.WhyBlockedWide = 1
	}
	return g
}

// put puts a group's probes in.
func (p *rtsProbes) put(g *rtsGroup) error {
	// By the file that is held open: whatever the path names by now.
	exe, err := link.OpenExecutable(fmt.Sprintf("/proc/self/fd/%d", p.image.RTS.File.Fd()))
	if err != nil {
		return &ProbeError{err}
	}
	many := &link.UprobeMultiOptions{PID: p.image.PID}
	for _, s := range g.sites {
		offset, ok := p.image.RTS.FileOffset(s.Addr)
		if !ok {
			return &rtsites.MissingError{What: "code"}
		}
		many.Addresses = append(many.Addresses, offset)
		many.Cookies = append(many.Cookies, bpf.RTSCookie(s.Probe, s.AtCall))
	}
	put := func(l link.Link, err error) error {
		if err == nil {
			g.links = append(g.links, l)
		}
		return err
	}
	if p.multi {
		err = put(exe.UprobeMulti(nil, p.program.Program(), many))
	} else {
		for i := 0; i < len(many.Addresses) && err == nil; i++ {
			err = put(exe.Uprobe("", p.program.Program(), &link.UprobeOptions{
				Address: many.Addresses[i], PID: int(many.PID), Cookie: many.Cookies[i]}))
		}
	}
	if err != nil {
		return errors.Join(&ProbeError{err}, g.take())
	}
	return nil
}

// take takes a group's probes out. The kernel takes a tenth of a second for a link,
// in which it waits for whoever may be in the program; the code is as it was before.
func (g *rtsGroup) take() error {
	errs := make([]error, len(g.links))
	var all sync.WaitGroup
	for i, l := range g.links {
		all.Go(func() { errs[i] = l.Close() })
	}
	all.Wait()
	g.links = nil
	return errors.Join(errs...)
}

// control holds each group to its budget.
func (p *rtsProbes) control() {
	defer p.done.Done()
	tick := time.NewTimer(rtsTick)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case <-tick.C:
		}
		wait := rtsRest
		for g := range p.groups {
			if p.wanted[g] && p.problem[g] == nil && p.balance(g) > rtsBurst/100 {
				wait = rtsTick
			}
		}
		tick.Reset(wait)
	}
}

// balance takes a group's probes out when they have cost too much, and puts them
// back when time has paid for it. It gives what they have cost since the last time.
func (p *rtsProbes) balance(g int) (took time.Duration) {
	p.mu.Lock()
	group := &p.groups[g]
	before := group.cost
	err := p.measure(g)
	took = group.cost - before
	allowed := rtsBurst + time.Duration(p.budget*float64(time.Since(group.since)))
	in := group.outAt.IsZero()
	failed := group.failed
	cost := group.cost
	p.mu.Unlock()
	switch {
	case err != nil || failed != nil:
	case in && cost > allowed && p.budget > 0:
		err = group.take()
		p.mu.Lock()
		group.outAt, group.failed = time.Now(), err
		p.gaps = append(p.gaps, rtsGap{monotonic(), g, true})
		p.mu.Unlock()
	case !in && cost+rtsBurst/2 <= allowed:
		at := monotonic()
		err = p.put(group)
		p.mu.Lock()
		group.failed = err // the process may just have ended
		if err == nil {
			group.out += time.Since(group.outAt)
			group.outAt = time.Time{}
			p.gaps = append(p.gaps, rtsGap{at, g, false})
		}
		p.mu.Unlock()
	}
	return took
}

// measure reads a group's counts, and estimates what the hits have cost.
func (p *rtsProbes) measure(g int) error {
	group := &p.groups[g]
	counts, err := p.program.Counts(g)
	if err != nil {
		return err
	}
	hit := rtsTrap
	if runs, ns, err := p.program.RunStats(); err == nil && runs > 0 {
		hit += time.Duration(ns / runs)
	}
	group.cost += time.Duration(counts.Hits-group.counts.Hits) * hit
	group.counts = counts
	return nil
}

// take takes a record of a probe.
func (p *rtsProbes) take(s *perf.Sample) error {
	if p == nil || p.image == nil || s.Pid != p.image.PID {
		return nil
	}
	if err := p.takeGaps(s.Time); err != nil {
		return err
	}
	if g := groupOf(bpf.RTSProbe(s.Event)); p.quiet[g] {
		return nil
	}
	if !p.heapInfo {
		p.heapInfo = true
		if err := p.writeHeapInfo(s.Time); err != nil {
			return err
		}
	}
	return p.timeline.Take(timeline.Record{
		Time: s.Time, Probe: bpf.RTSProbe(s.Event), Cap: int(s.Capability), Thread: s.Tso, Reason: s.Period, Words: s.Frames,
	})
}

func groupOf(probe bpf.RTSProbe) int {
	if probe >= bpf.RTSRun {
		return int(bpf.RTSGroupThreads)
	}
	return int(bpf.RTSGroupGC)
}

// sampled tells the timeline what a sample showed.
func (p *rtsProbes) sampled(s *perf.Sample) error {
	if p == nil || p.image == nil || s.Pid != p.image.PID || s.Capability == eventlog.NoCapability ||
		!p.wanted[bpf.RTSGroupThreads] || p.quiet[bpf.RTSGroupThreads] {
		return nil
	}
	if err := p.takeGaps(s.Time); err != nil {
		return err
	}
	return p.timeline.Sampled(s.Time, int(s.Capability), s.Tso)
}

// takeGaps hands the timeline the gaps up to a time.
func (p *rtsProbes) takeGaps(until uint64) error {
	p.mu.Lock()
	n := 0
	for n < len(p.gaps) && p.gaps[n].time <= until {
		n++
	}
	due := p.gaps[:n:n]
	p.gaps = p.gaps[n:]
	p.mu.Unlock()
	for _, g := range due {
		if err := p.timeline.Gap(g.time, g.group, g.begins); err != nil {
			return err
		}
	}
	return nil
}

// Offsets in RtsFlags.GcFlags that are the same from 8.10 to 9.14.
const (
	gcFlagsMaxHeap   = 28 // u32, blocks
	gcFlagsAllocArea = 32 // u32, blocks
)

// writeHeapInfo reads the heap's parameters, which are settled before the first
// collection or thread.
func (p *rtsProbes) writeHeapInfo(at uint64) error {
	const block, mblock = 4 << 10, 1 << 20
	s := p.sites
	var flags [gcFlagsAllocArea + 4]byte
	var oldest [8]byte
	var number [4]byte
	if s.OldestGeneration == 0 || s.Flags == 0 || !p.peek(s.Flags+p.bias, flags[:]) || !p.peek(s.OldestGeneration+p.bias, oldest[:]) ||
		!p.peek(binary.NativeEndian.Uint64(oldest[:]), number[:]) {
		return nil
	}
	generation := binary.NativeEndian.Uint32(number[:])
	if generation > 64 {
		return nil // not what it was taken for
	}
	p.timeline.MajorGeneration = int(generation)
	return p.timeline.Write(at, eventlog.NoCap, &eventlog.HeapInfo{
		Generations: uint16(generation + 1),
		MaxHeap:     uint64(binary.NativeEndian.Uint32(flags[gcFlagsMaxHeap:])) * block,
		AllocArea:   uint64(binary.NativeEndian.Uint32(flags[gcFlagsAllocArea:])) * block,
		MBlock:      mblock,
		Block:       block,
	})
}

// peek reads the process's memory; false if it cannot be read.
func (p *rtsProbes) peek(addr uint64, into []byte) bool {
	n, err := unix.ProcessVMReadv(int(p.image.PID), []unix.Iovec{{Base: &into[0], Len: uint64(len(into))}},
		[]unix.RemoteIovec{{Base: uintptr(addr), Len: len(into)}}, 0)
	return err == nil && n == len(into)
}

// onlyProblem is the problem if no group is available.
func (p *rtsProbes) onlyProblem() error {
	if p == nil {
		return nil
	}
	var problem error
	for g, err := range p.problem {
		if p.wanted[g] && !p.quiet[g] && err == nil {
			return nil
		}
		if err != nil && !p.quiet[g] {
			problem = fmt.Errorf("event %s is not available: %w", rtsGroupNames[g], err)
		}
	}
	return problem
}

// finish ends what is under way when the capture ends.
func (p *rtsProbes) finish(at uint64) error {
	if p == nil || p.image == nil {
		return nil
	}
	return errors.Join(p.takeGaps(at), p.timeline.Close(at))
}

// declare makes a new log readable alone.
func (p *rtsProbes) declare(at uint64) error {
	if p == nil || p.image == nil {
		return nil
	}
	p.heapInfo = false
	return p.timeline.Declare(at)
}

// account gives the state of each wanted group.
func (p *rtsProbes) account() ([]*eventlog.RTSProbes, error) {
	if p == nil {
		return nil, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var out []*eventlog.RTSProbes
	for g := range p.groups {
		if !p.wanted[g] || p.quiet[g] {
			continue
		}
		if err := p.measure(g); err != nil {
			return nil, err
		}
		group := &p.groups[g]
		e := &eventlog.RTSProbes{
			Group: rtsGroupNames[g], Sites: uint32(len(group.sites)), Hits: group.counts.Hits, Records: group.counts.Records,
			Dropped: group.counts.Dropped, CostNs: uint64(group.cost), OutNs: uint64(group.out),
		}
		if !group.outAt.IsZero() {
			e.OutNs += uint64(time.Since(group.outAt))
		}
		switch {
		case p.problem[g] != nil:
			e.Problem = p.problem[g].Error()
		case p.image == nil:
			e.Problem = "no Haskell run-time system was seen"
		}
		if totals := p.timeline.Totals(); g == int(bpf.RTSGroupGC) && totals.Last > totals.First+totals.Collections {
			e.Missed = totals.Last - totals.First - totals.Collections
		}
		out = append(out, e)
	}
	return out, nil
}

// Drop ends the timeline of an image that has ended.
func (p *rtsProbes) Drop(im *images.Image, at uint64) error {
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
func (p *rtsProbes) Close() error {
	if p == nil {
		return nil
	}
	close(p.stop)
	p.done.Wait()
	var all rtsGroup
	for g := range p.groups {
		all.links = append(all.links, p.groups[g].links...)
	}
	return errors.Join(all.take(), p.program.Close())
}
