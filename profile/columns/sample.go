package columns

import (
	"math"

	"ccagent/eventlog"
)

// ChunkSize is how many samples a chunk holds. Columns grow by whole chunks, so
// loading neither copies nor over-allocates them.
const ChunkSize = 1 << 14

// Chunk is a piece of the sample columns: 20 bytes a sample, 28 where weights
// are large.
type Chunk struct {
	N       int
	Time    [ChunkSize]uint64
	weight  [ChunkSize]uint32 // unless wide
	Site    [ChunkSize]uint32
	Context [ChunkSize]uint32
	wide    *[ChunkSize]uint64 // weights, of a chunk where one does not fit 32 bits
}

// Weight is that of the i-th sample of the chunk.
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

// Context is what samples have in common besides their stacks. A program's
// samples are of few contexts, so filters on these are decided once each.
type Context struct {
	Thread uint32 // index in Log.Threads
	CPU    uint16
	Cap    uint16
	Flags  eventlog.SampleFlags
	Event  uint8
}

// contextKey tells contexts apart while loading, by the log's numbers.
type contextKey struct {
	tso                        uint64
	event, cpu, pid, tid, caps uint32
	flags                      eventlog.SampleFlags
}

// contextTable interns contexts while loading.
type contextTable struct {
	list  []Context
	index map[contextKey]uint32
	// recent are contexts of events that are defined, by a hash of their key.
	recent *[1 << 10]recentContext
	// byKey are contexts, plus 1, by the number that a reader beside the builder
	// gave their keys.
	byKey []uint32
}

type recentContext struct {
	key contextKey
	id  uint32 // plus 1
}

func newContextTable() contextTable {
	return contextTable{index: make(map[contextKey]uint32), recent: new([1 << 10]recentContext)}
}

func keyOf(s *eventlog.Sample) contextKey {
	return contextKey{tso: s.TSO, event: s.Event, cpu: s.CPU, pid: s.PID, tid: s.TID, caps: s.Capability, flags: s.Flags}
}

func (k *contextKey) hash() uint64 {
	h := uint64(k.tid)*131 + k.tso*7 + uint64(k.cpu)*31 + uint64(k.caps)*17 + uint64(k.flags)*61 + uint64(k.event)*5
	return h ^ h>>10
}

// ofKey gives the context that a reader's number stands for, if that is known.
func (t *contextTable) ofKey(number uint32) (uint32, bool) {
	if int(number) >= len(t.byKey) || t.byKey[number] == 0 {
		return 0, false
	}
	return t.byKey[number] - 1, true
}

func (t *contextTable) setKey(number, context uint32) {
	if n := int(number) + 1; n > len(t.byKey) {
		t.byKey = append(t.byKey, make([]uint32, n-len(t.byKey))...)
	}
	t.byKey[number] = context + 1
}

// maxEvents bounds the events of one log; the event column is a byte.
const maxEvents = 255

// Site is where and how samples hit: all that a query on stacks needs of a
// sample. Samples that agree in it share one site.
type Site struct {
	Node   uint32 // leaf; 0 = no frame at all
	Stop   eventlog.StopReason
	Kernel bool // the kernel ran for the thread
	// Centres is the node of the cost-centre stack that was running, in logs
	// whose samples carry such; 0 if none is known.
	Centres uint32
}

// ThreadKey names a thread of execution: an OS thread and, where Haskell ran
// on it, the Haskell thread.
type ThreadKey struct {
	PID, TID uint32
	TSO      uint64 // 0 = none
}

// Thread is a ThreadKey with what the log says of it.
type Thread struct {
	ThreadKey
	Label string // of the Haskell thread; may be empty
}

// Sample is one sample, for those who want to see each: queries are on columns.
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

// Samples is the number of samples in the log.
func (p *Log) Samples() int { return p.nsamples }

// Sample gives the i-th sample in the order of the log, which is that of time
// only within a CPU.
func (p *Log) Sample(i int) Sample {
	c, j := p.Chunks[i/ChunkSize], i%ChunkSize
	x := &p.Contexts[c.Context[j]]
	return Sample{
		Time: c.Time[j], Event: int(x.Event), Weight: c.Weight(j), CPU: uint32(x.CPU),
		Thread: p.Threads[x.Thread].ThreadKey, Capability: uint32(x.Cap),
		Site: p.Sites[c.Site[j]], Flags: x.Flags,
	}
}

// siteTable interns sites while loading. Most nodes are the leaf of samples of
// one kind only, so the last site of a node is tried before the map.
type siteTable struct {
	sites []Site
	last  []lastSite // by node
	index map[Site]uint32
	// words are the fewest and most words of stack left out in samples of a
	// site, for those that have such.
	words map[uint32][2]uint64
}

func newSiteTable() siteTable {
	return siteTable{index: make(map[Site]uint32), words: make(map[uint32][2]uint64)}
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

// lastSite is the latest site of a node, whole: a look at it is all that most
// samples need.
type lastSite struct {
	id      uint32 // plus 1
	centres uint32
	stop    eventlog.StopReason
	kernel  bool
}

func (l *lastSite) is(s *Site) bool {
	return l.id != 0 && l.stop == s.Stop && l.kernel == s.Kernel && l.centres == s.Centres
}

// hold makes room for the sites of so many nodes.
func (t *siteTable) hold(nodes int) {
	if len(t.last) < nodes {
		t.last = append(t.last, make([]lastSite, nodes-len(t.last))...)
	}
}

// intern gives the site's number. Its node must be held.
func (t *siteTable) intern(s Site) uint32 {
	l := &t.last[s.Node]
	if l.is(&s) {
		return l.id - 1
	}
	id, ok := t.index[s]
	if !ok {
		id = uint32(len(t.sites))
		t.sites = append(t.sites, s)
		t.index[s] = id
	}
	*l = lastSite{id + 1, s.Centres, s.Stop, s.Kernel}
	return id
}

// SiteID numbers the sites of a profile, from 0. Samples of one SiteID have the
// same stack.
type SiteID uint32

// SiteCategory is the category of a site's leaf.
func (p *Log) SiteCategory(id SiteID) eventlog.Category { return p.LeafCategory(p.Sites[id]) }

// Place gives the code that a place is: a module address, or an absolute one of
// module 0; false if the place is no address.
func (p *Log) Place(id PlaceID) (module uint32, addr uint64, ok bool) {
	pl := p.Places[id]
	return pl.Module, pl.Addr, pl.Class == PlaceUser || pl.Class == PlaceKernel
}

// LeafPending reports whether a site's leaf has not been looked up as far as the log
// goes: it is unresolved, and more names may come.
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

// LeafCategory is the category of a site's leaf.
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
