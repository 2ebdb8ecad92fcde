package columns

import (
	"math"

	"ccagent/eventlog"
)

// ChunkSize is the number of samples in a full chunk. Columns grow by whole chunks, so
// that loading neither copies nor over-allocates them.
const ChunkSize = 1 << 14

// Chunk is a part of the sample columns. It takes 20 bytes a sample, or 28 if it contains
// a weight of more than 32 bits.
type Chunk struct {
	N       int
	Time    [ChunkSize]uint64
	weight  [ChunkSize]uint32 // unused if wide is set
	Site    [ChunkSize]uint32
	Context [ChunkSize]uint32
	wide    *[ChunkSize]uint64 // the weights, if one of the chunk does not fit 32 bits
}

// Weight returns the weight of the i-th sample of the chunk.
func (c *Chunk) Weight(i int) uint64 {
	if c.wide != nil {
		return c.wide[i]
	}
	return uint64(c.weight[i])
}

func (c *Chunk) setWeight(i int, w uint64) {
	if c.wide == nil {
		if w <= math.MaxUint32 {
			c.weight[i] = uint32(w)
			return
		}
		c.wide = new([ChunkSize]uint64)
		for j := range i {
			c.wide[j] = uint64(c.weight[j])
		}
	}
	c.wide[i] = w
}

// Context is the combination of thread, CPU, capability and event of a sample. A program
// has few contexts, so filters on these decide once for each context.
type Context struct {
	Thread uint32 // index in Log.Threads
	CPU    uint16
	Cap    uint16
	Flags  eventlog.SampleFlags
	Event  uint8
}

// contextKey identifies a context while loading, by the log's ids.
type contextKey struct {
	eventlog.Origin
	flags eventlog.SampleFlags
}

// contextTable interns contexts while loading.
type contextTable struct {
	list  []Context
	index map[contextKey]uint32
	// recent is a cache of contexts whose events are defined, by a hash of their key.
	recent *[1 << 10]recentContext
}

type recentContext struct {
	key contextKey
	id  uint32 // 1 + the context's index
}

func newContextTable() contextTable {
	return contextTable{index: make(map[contextKey]uint32), recent: new([1 << 10]recentContext)}
}

func (k *contextKey) hash() uint64 {
	const odd = 0x9e3779b97f4a7c15 // 2^64 by the golden ratio: spreads ids that are close to each other
	h := (uint64(k.TID)<<32 | uint64(k.CPU)<<16 | uint64(k.Capability)) * odd
	h = (h ^ k.TSO ^ uint64(k.flags)<<48 ^ uint64(k.Event)<<56) * odd
	return h >> 32
}

// maxEvents bounds the number of events of a log; the event column is one byte.
const maxEvents = 255

// Site is a stack site: a stack node with everything else that queries on stacks need to
// know of a sample. Samples that agree in it share one site.
type Site struct {
	Node   uint32 // leaf; 0 = no frame at all
	Stop   eventlog.StopReason
	Kernel bool // the kernel was running for the thread
	// Centres is the node of the cost-centre stack that was running, in logs whose
	// samples have one; 0 if it is unknown.
	Centres uint32
}

// ThreadKey identifies an OS thread and, if it ran Haskell code, the Haskell thread.
type ThreadKey struct {
	PID, TID uint32
	TSO      uint64 // 0 = none
}

// Thread is a ThreadKey with the thread's names from the log.
type Thread struct {
	ThreadKey
	Label string // label of the Haskell thread; may be empty
}

// Sample is one sample with all its fields. Queries use the columns instead.
type Sample struct {
	Time       uint64 // ns
	Event      int    // position in Log.Events
	Weight     uint64
	CPU        uint32
	Thread     ThreadKey
	Capability uint32 // or eventlog.NoCapability
	Site       Site
	Flags      eventlog.SampleFlags
}

// Samples returns the number of samples in the log.
func (p *Log) Samples() int { return p.nsamples }

// Sample returns the i-th sample in the order of the log. Only samples of the same CPU
// are in the order of time.
func (p *Log) Sample(i int) Sample {
	c, j := p.Chunks[i/ChunkSize], i%ChunkSize
	x := &p.Contexts[c.Context[j]]
	return Sample{
		Time: c.Time[j], Event: int(x.Event), Weight: c.Weight(j), CPU: uint32(x.CPU),
		Thread: p.Threads[x.Thread].ThreadKey, Capability: uint32(x.Cap),
		Site: p.Sites[c.Site[j]], Flags: x.Flags,
	}
}

// siteTable interns sites while loading. Most nodes are the leaf of only one kind of
// sample, so it tries the last site of a node before the map.
type siteTable struct {
	sites []Site
	last  []lastSite // by node
	index map[Site]uint32
	// words has the least and the most words of stack left out in samples of a site,
	// for sites where words were left out.
	words map[uint32][2]uint64
	// folded is of sites whose recursion was folded.
	folded map[uint32]Folded
}

// Folded is how many frames were left out of a site's samples, as repetitions of those beside them.
type Folded struct{ Samples, Frames, Most uint64 }

func newSiteTable() siteTable {
	return siteTable{index: make(map[Site]uint32), words: make(map[uint32][2]uint64), folded: make(map[uint32]Folded)}
}

func (t *siteTable) skipped(site uint32, words uint64) {
	if words == 0 {
		return
	}
	w, ok := t.words[site]
	if !ok {
		w = [2]uint64{words, words}
	}
	t.words[site] = [2]uint64{min(w[0], words), max(w[1], words)}
}

func (t *siteTable) fold(site, frames uint32) {
	f := t.folded[site]
	t.folded[site] = Folded{f.Samples + 1, SatAdd(f.Frames, uint64(frames)), max(f.Most, uint64(frames))}
}

// lastSite is the latest site of a node: its id, and whether it is a sample's, which the site itself need
// not be read for unless it has cost centres. It is small, so that those of many nodes stay in a CPU's cache.
type lastSite uint64

const (
	lastKnown lastSite = 1 << (8 + iota) // the lower bits are the stop reason
	lastKernel
	lastCentres
)

// kind is a site without its node and id.
func (s *Site) kind() lastSite {
	k := lastKnown | lastSite(s.Stop)
	if s.Kernel {
		k |= lastKernel
	}
	if s.Centres != 0 {
		k |= lastCentres
	}
	return k
}

// hold extends the table to the given number of nodes.
func (t *siteTable) hold(nodes int) {
	if len(t.last) < nodes {
		t.last = append(t.last, make([]lastSite, nodes-len(t.last))...)
	}
}

// intern returns the id of a site. hold must have been called for its node, and last is what last had of it.
func (t *siteTable) intern(s Site, last lastSite) uint32 {
	kind := s.kind()
	if id := uint32(last >> 32); lastSite(uint32(last)) == kind && (kind&lastCentres == 0 || t.sites[id].Centres == s.Centres) {
		return id
	}
	id, ok := t.index[s]
	if !ok {
		id = uint32(len(t.sites))
		t.sites = append(t.sites, s)
		t.index[s] = id
	}
	t.last[s.Node] = lastSite(id)<<32 | kind
	return id
}

// SiteID numbers the sites of a log, from 0. Samples with the same SiteID have the same
// stack.
type SiteID uint32

// SiteCategory returns the category of a site's leaf.
func (p *Log) SiteCategory(id SiteID) eventlog.Category { return p.LeafCategory(p.Sites[id]) }

// Place returns a place's address: of a module, or absolute with module 0. It returns
// false if the place is not an address.
func (p *Log) Place(id PlaceID) (module uint32, addr uint64, ok bool) {
	pl := p.Places[id]
	return pl.Module, pl.Addr, pl.Class.Code()
}

// LeafPending reports whether a site's leaf is unresolved because the log is still being
// written and its symbols may come later.
func (p *Log) LeafPending(s Site) bool {
	if s.Kernel || !p.Accounting.Growing {
		return false
	}
	for n := s.Node; n != 0; n = p.Nodes.Parent[n] {
		switch k := p.Nodes.Kind[n]; {
		case k == eventlog.FrameContext, k == eventlog.FrameSkipped:
			return false
		case !Structural(k):
			return !p.Locations[p.Nodes.Place[n]].found
		}
	}
	return false
}

// LeafCategory returns the category of a site's leaf.
func (p *Log) LeafCategory(s Site) eventlog.Category {
	if s.Kernel {
		return eventlog.CategoryKernel
	}
	for n := s.Node; n != 0; n = p.Nodes.Parent[n] {
		switch k := p.Nodes.Kind[n]; {
		case k == eventlog.FrameContext, k == eventlog.FrameSkipped:
			return eventlog.CategoryUnresolved
		case !Structural(k):
			return p.Locations[p.Nodes.Place[n]].Category
		}
	}
	return eventlog.CategoryUnresolved
}
