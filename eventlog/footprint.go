package eventlog

// This file holds the events of a footprint: where the memory of a process is that it has, as the
// kernel counts it (resident set size).

// Footprint begins the footprint of one moment, which is that of the census before it. The events
// that follow, of the same process, are its own: parts, pins, stacks.
type Footprint struct {
	PID      uint32
	Resident uint64 // bytes in memory, of all mappings
	Swapped  uint64 // bytes in swap, which are in no part
	// Beside is set if pages were counted while the process ran on, when the descriptors of its heap
	// had been read.
	Beside bool
	// Slop is bytes in live blocks that belong to no closure any more, StackBytes those of threads'
	// stacks there: both are in FootprintLive, too.
	Slop, StackBytes uint64
	// Threads is how many threads there were, of which the largest stacks follow.
	Threads uint64
	// Megablocks is how many the heap had, Partly how many of them were in use and had free blocks.
	Megablocks, Partly uint64
	Notes              []string
}

// FootprintKind is what memory is for.
type FootprintKind uint8

// Kinds of parts.
const (
	FootprintUnknown    FootprintKind = iota
	FootprintLive                     // blocks of small objects, by generation
	FootprintLarge                    // large objects, by closure type
	FootprintStacks                   // stacks of threads that are large objects
	FootprintPinned                   // blocks of small byte arrays that are not moved
	FootprintCompact                  // compact regions
	FootprintNonmoving                // segments of the non-moving collector
	FootprintNursery                  // blocks in which the program allocates
	FootprintBlockEnds                // what is not used of blocks in use
	FootprintFreeBlocks               // free blocks of megablocks in use
	FootprintFree                     // megablocks that are free
	FootprintGivenBack                // given back to the kernel, which has not taken it yet
	FootprintRTS                      // blocks and descriptors of the run-time system itself
	FootprintHeapOther                // memory of the heap that no descriptor describes
	FootprintMalloc                   // C's malloc: the kernel's [heap]
	FootprintAnonymous                // memory without a file outside the heap
	FootprintOSStacks                 // stacks of OS threads
	FootprintFiles                    // mapped files
	FootprintKernel                   // what the kernel maps itself
	footprintKinds
)

var footprintNames = [footprintKinds]string{
	"unknown", "live", "large", "stacks", "pinned", "compact", "nonmoving", "nursery", "block ends", "free blocks", "free megablocks", "given back",
	"rts", "heap other", "malloc", "anonymous", "os stacks", "files", "kernel",
}

// String gives the name used in JSON.
func (k FootprintKind) String() string {
	if k < footprintKinds {
		return footprintNames[k]
	}
	return footprintNames[FootprintUnknown]
}

// FootprintPart is memory for one purpose.
type FootprintPart struct {
	Kind       FootprintKind
	Generation uint32 // of FootprintLive
	Name       string // a closure type, or a file
	Bytes      uint64 // in memory
	Mapped     uint64 // with those that are not in memory
	Count      uint64 // of groups of blocks, or mappings
}

// FootprintPin is what keeps megablocks from being given back that have free blocks: in each the kind
// of part that has most of its blocks and that no collection moves, or where there is none, the one
// that has most.
type FootprintPin struct {
	Kind       FootprintKind
	Name       string // a closure type
	Moved      bool   // a collection moves it
	Megablocks uint64
	Free       uint64 // bytes in memory of their free blocks
	Held       uint64 // bytes in memory of what holds them
	Count      uint64 // groups of blocks that do
}

// FootprintStack is the stack of a Haskell thread.
type FootprintStack struct {
	TSO   uint64
	Label string
	Bytes uint64 // of all its chunks
	// Node is the leaf of its frames, in which repetitions are folded, a moment later; 0 if they were not read.
	Node uint32
}

func (*Footprint) EventID() uint16      { return IDFootprint }
func (*FootprintPart) EventID() uint16  { return IDFootprintPart }
func (*FootprintPin) EventID() uint16   { return IDFootprintPin }
func (*FootprintStack) EventID() uint16 { return IDFootprintStack }

func (e *Footprint) layout(c *codec) {
	c.v32(&e.PID)
	c.v64(&e.Resident)
	c.v64(&e.Swapped)
	c.flag(&e.Beside)
	c.v64(&e.Slop)
	c.v64(&e.StackBytes)
	c.v64(&e.Threads)
	c.v64(&e.Megablocks)
	c.v64(&e.Partly)
	list(c, &e.Notes, 1)
	for i := range e.Notes {
		c.str(&e.Notes[i])
	}
	c.done()
}

func (e *FootprintPart) layout(c *codec) {
	enum(c, &e.Kind)
	c.v32(&e.Generation)
	c.str(&e.Name)
	c.v64(&e.Bytes)
	c.v64(&e.Mapped)
	c.v64(&e.Count)
}

func (e *FootprintPin) layout(c *codec) {
	enum(c, &e.Kind)
	c.str(&e.Name)
	c.flag(&e.Moved)
	c.v64(&e.Megablocks)
	c.v64(&e.Free)
	c.v64(&e.Held)
	c.v64(&e.Count)
}

func (e *FootprintStack) layout(c *codec) {
	c.v64(&e.TSO)
	c.str(&e.Label)
	c.v64(&e.Bytes)
	c.v32(&e.Node)
}
