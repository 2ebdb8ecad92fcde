package nursery

import (
	"fmt"
	"io"
	"sync"

	"ccagent/agent/overhead"
	"ccagent/agent/process"
	"ccagent/agent/rtsites"
	"ccagent/agent/source"
	"ccagent/agent/uprobe"
	"ccagent/bpf"
	"ccagent/eventlog"
	"ccagent/heap"
	"ccagent/perf"
)

// Kind makes the source of blocks of nurseries, which other sources ask for by their needs.
func Kind() source.Kind { return source.Kind{New: open} }

// nursery is the source of blocks of the nurseries of every profiled Haskell process.
type nursery struct {
	source.Base
	host    *source.Host
	program *bpf.NurseryProgram
	multi   bool
	bucket  *overhead.Bucket
	images  map[uint32]*image // by process incarnation
	sites   map[*process.Module]*rtsites.Collection
	failed  bool // the user was warned

	// background counts the removals of probes: the kernel takes a tenth of a second for each.
	background sync.WaitGroup

	chance          float64 // that a collection has a block copied, while the probes are in place
	counted         bpf.NurseryCounts
	ran             bpf.RunStats
	perBlock        float64 // ns, what copying and walking a block costs
	charged, target uint64
	traps           overhead.Tally
}

// image is one process image.
type image struct {
	im     *process.Image
	site   *rtsites.Collection
	walker walker
	layout bpf.NurseryLayout
	probe  io.Closer // nil while it is out
	looked bool      // at whether nurseries are in chunks
}

func open(h *source.Host, _ []*source.Event, needs source.Need) source.Source {
	if needs&source.Closures == 0 {
		return nil
	}
	h.Budget.Costs.NeedTrap()
	return &nursery{host: h, bucket: h.Budget.Nursery(), images: map[uint32]*image{}, sites: map[*process.Module]*rtsites.Collection{}, chance: 1, perBlock: firstPerBlock}
}

// Load loads the probes' BPF program.
func (n *nursery) Load() error {
	n.multi = uprobe.Multi()
	if n.host.LoadLate {
		return nil
	}
	return n.load()
}

// load loads the program, once.
func (n *nursery) load() (err error) {
	if n.program != nil {
		return nil
	}
	n.program, err = n.host.Walker.LoadNurseryProgram(n.multi)
	return err
}

// find returns the site of collections in a run-time system, nil if it is not found.
func (n *nursery) find(mod *process.Module) *rtsites.Collection {
	if s, known := n.sites[mod]; known {
		return s
	}
	s, err := find(mod)
	n.sites[mod] = s
	n.fail(err)
	return s
}

func find(mod *process.Module) (*rtsites.Collection, error) {
	symbols, err := mod.RTSSymbols()
	if err != nil {
		return nil, err
	}
	return rtsites.FindCollection(symbols)
}

// fail warns once of what keeps closures from being sampled.
func (n *nursery) fail(err error) {
	if err == nil || n.failed {
		return
	}
	n.failed = true
	n.host.Log.Warn(fmt.Sprintf("allocation by closure is not available: %v; events that are available go on", err))
}

// Attach puts the probe into an image's process, once.
func (n *nursery) Attach(im *process.Image) error {
	if im.RTS == nil || n.images[im.Incarnation] != nil {
		return nil
	}
	site := n.find(im.RTS)
	if site == nil {
		return nil
	}
	if err := n.load(); err != nil {
		return err
	}
	b := &im.RTS.Binary
	layout, _ := heap.LayoutOf(b.GHCVersion, b.Profiled(), b.Threaded())
	bias := im.BiasOf(im.RTS)
	ni := &image{im: im, site: site, walker: newWalker(im, layout, n.host.Closures)}
	ni.layout = bpf.NurseryLayout{N_capabilities: site.Count + bias, Incarnation: im.Incarnation, TotalAllocated: im.Layout.TotalAllocated}
	if site.Array != 0 {
		ni.layout.Capabilities = site.Array + bias
	}
	if site.Main != 0 {
		ni.layout.MainCapability = site.Main + bias
	}
	if site.InPlace {
		ni.layout.CapabilitiesInPlace = 1
	}
	n.images[im.Incarnation] = ni
	err := n.setChance(ni)
	if err == nil {
		err = n.place(ni)
	}
	n.fail(err)
	return nil
}

func (n *nursery) place(ni *image) error {
	link, err := ni.im.Put(n.program.Program(), n.multi, process.Probe{Addr: ni.site.Addr})
	if err == nil {
		ni.probe = link
	}
	return err
}

// remove takes the probe out, which the kernel takes its time for.
func (n *nursery) remove(ni *image) {
	if l := ni.probe; l != nil {
		ni.probe = nil
		n.background.Go(func() { l.Close() }) // fails only for what is gone already
	}
}

// Receives returns the type of the records that have a block.
func (n *nursery) Receives() []uint8 { return []uint8{bpf.RecordBlock} }

// Consume walks a block and writes what it holds.
func (n *nursery) Consume(r *perf.Sample) error {
	im, err := n.host.Image(r.Pid)
	if err != nil {
		return err
	}
	ni := n.images[im.Incarnation]
	if ni == nil || len(r.Block) != bpf.BlockFirst+bpf.BlockWords {
		return nil
	}
	n.warnOfChunks(ni, r.Block[bpf.BlockCapabilities])
	places, ok := multiply(r.Block[bpf.BlockNursery], r.Block[bpf.BlockCapabilities], 1/n.chance)
	used := r.Block[bpf.BlockUsed]
	if !ok || used == 0 || used > maxUsed || used%8 != 0 {
		return nil
	}
	e := &eventlog.NurseryBlock{PID: r.Pid, Capability: uint32(r.Capability), Places: places, Total: 8 * r.Total, Used: used}
	words := r.Block[bpf.BlockFirst:]
	words = words[:min(used/8, uint64(len(words)))]
	e.Read = 8 * uint64(len(words))
	emit := func(def eventlog.Event) error { return im.Log.Emit(r.Time, def) }
	if e.Closures, err = ni.walker.count(words, emit, im.Log.Seen.AddCode); err != nil {
		return err
	}
	return emit(e)
}

// warnOfChunks warns once of a process whose nurseries are in chunks: of these only the last one of
// each capability is sampled.
func (n *nursery) warnOfChunks(ni *image, capabilities uint64) {
	if ni.looked || ni.site.Nurseries == 0 {
		return
	}
	ni.looked = true
	nurseries, err := ni.im.Memory.Word(ni.site.Nurseries + ni.im.BiasOf(ni.im.RTS))
	if err == nil && uint64(uint32(nurseries)) > capabilities {
		n.host.Log.Warn("the program's nurseries are in chunks (+RTS -n, or -A16m and more with -N): allocation by closure is that of each capability's last chunk before a collection")
	}
}

// maxUsed bounds what one group of blocks can hold, in bytes, and maxPlaces the places of all
// nurseries.
const (
	maxUsed   = 1 << 30
	maxPlaces = 1 << 40
)

// multiply multiplies figures of the process's own; false if they cannot be.
func multiply(blocks, capabilities uint64, by float64) (uint64, bool) {
	p := float64(blocks) * float64(capabilities) * by
	return uint64(p), p >= 1 && p <= maxPlaces
}

// Detach ends what there is of an image that has ended.
func (n *nursery) Detach(im *process.Image, _ uint64) error {
	ni := n.images[im.Incarnation]
	if ni == nil {
		return nil
	}
	delete(n.images, im.Incarnation)
	n.remove(ni)
	return n.program.Forget(im.PID)
}

// Close removes all probes.
func (n *nursery) Close() error {
	if n.program == nil {
		return nil
	}
	for _, ni := range n.images {
		n.remove(ni)
	}
	n.background.Wait()
	err := n.program.Close()
	n.program, n.images = nil, nil
	return err
}

// Cost returns what the probes have cost.
func (n *nursery) Cost() (c source.Cost, err error) {
	if n.program == nil {
		return c, nil
	}
	var counts bpf.NurseryCounts
	c.Probes, err = n.program.RunStats()
	if err == nil {
		counts, err = n.program.Counts()
	}
	c.ProbeNs = n.traps.Count(counts.Hits, n.host.Budget.Costs.Trap())
	c.Handled = blockRecords * counts.Chosen
	return c, err
}

// blockRecords is how many records of other kinds take the agent as long as one of a block.
const blockRecords = 4

// Finish says what was lost.
func (n *nursery) Finish(uint64) error {
	if n.program == nil {
		return nil
	}
	counts, err := n.program.Counts()
	if err != nil {
		return err
	}
	if counts.Dropped > 0 {
		n.host.Log.Warn(fmt.Sprintf("%d of %d blocks of the nursery were lost: the ring buffer was full; allocation by closure rests on the others", counts.Dropped, counts.Chosen))
	}
	if counts.Failed > 0 {
		n.host.Log.Warn(fmt.Sprintf("%d of %d blocks of the nursery could not be read; allocation by closure rests on the others", counts.Failed, counts.Chosen))
	}
	return nil
}
