package profile

import (
	"ccagent/eventlog"
)

// chunkSize is how many samples a chunk holds. Columns grow by whole chunks, so
// loading neither copies nor over-allocates them.
const chunkSize = 1 << 14

// chunk is a piece of the sample columns: 34 bytes a sample.
type chunk struct {
	n      int
	time   [chunkSize]uint64
	weight [chunkSize]uint64
	site   [chunkSize]uint32
	thread [chunkSize]uint32
	cpu    [chunkSize]uint16
	cap    [chunkSize]uint16
	flags  [chunkSize]uint16
	event  [chunkSize]uint8
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
	Event      int    // position in Profile.Events
	Weight     uint64
	CPU        uint32
	Thread     ThreadKey
	Capability uint32 // or eventlog.NoCapability
	Site       Site
	Flags      eventlog.SampleFlags
}

// Samples is the number of samples in the log.
func (p *Profile) Samples() int { return p.nsamples }

// Sample gives the i-th sample in the order of the log, which is that of time
// only within a CPU.
func (p *Profile) Sample(i int) Sample {
	c, j := p.chunks[i/chunkSize], i%chunkSize
	return Sample{
		Time: c.time[j], Event: int(c.event[j]), Weight: c.weight[j], CPU: uint32(c.cpu[j]),
		Thread: p.Threads[c.thread[j]].ThreadKey, Capability: uint32(c.cap[j]),
		Site: p.sites[c.site[j]], Flags: eventlog.SampleFlags(c.flags[j]),
	}
}

// siteTable interns sites while loading. Most nodes are the leaf of samples of
// one kind only, so the last site of a node is tried before the map.
type siteTable struct {
	sites []Site
	last  []uint32 // by node: 1 + its latest site
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

func (t *siteTable) intern(s Site, nodes int) uint32 {
	if len(t.last) < nodes {
		t.last = append(t.last, make([]uint32, nodes-len(t.last))...)
	}
	if l := t.last[s.Node]; l != 0 && t.sites[l-1] == s {
		return l - 1
	}
	id, ok := t.index[s]
	if !ok {
		id = uint32(len(t.sites))
		t.sites = append(t.sites, s)
		t.index[s] = id
	}
	t.last[s.Node] = id + 1
	return id
}
