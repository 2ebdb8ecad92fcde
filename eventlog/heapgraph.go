package eventlog

// This file holds the events of a census of the heap with its pointers: who keeps what alive. Of
// what closures hold nothing is in the log.

// HeapGraph begins what was found of the pointers of one census. The events that follow, of the same
// process, are its own: bands, roots, branches, paths.
type HeapGraph struct {
	PID               uint32
	Closures          uint64
	Pointers          uint64
	Bytes             uint64 // of all closures, with the headers of the profiling way
	Unreached         uint64 // closures that none of the known roots leads to
	UnreachedBytes    uint64
	Dangling          uint64 // pointers that lead to no closure
	PauseNs, TookNs   uint64 // for how long the process stood at the longest; how long the analysis took
	Beside            bool   // the process ran while its oldest generation was copied
	CAFs, Threads     uint64 // roots
	StablePtrs, Weaks uint64
	Notes             []string
	// AtRest is set if the process was stopped between collections: garbage was counted too.
	AtRest bool
	// Complete is set if all roots are known. The roots of a thread that ran when its process was stopped between
	// collections are read from its registers, which is not always possible. If it was not, Complete is false, and closures that only such
	// a thread holds count as unreached.
	Complete bool
	// Stuck is how many threads nothing can wake, if StuckKnown is set: the pointers of a program that ran meanwhile do not say.
	Stuck      uint64
	StuckKnown bool
}

// HeapStuck is a thread that waits for what neither a root nor a thread that can run leads to.
type HeapStuck struct {
	TSO   uint64
	Label string
	Kind  BlockerKind
	// Held is set if something alive has the thread's ThreadId, so that the run-time system does not throw it an exception.
	Held bool
}

// HeapBand is the closures of one info table.
type HeapBand struct {
	Closure uint32 // Closure.ID; 0 if it is not known
	Count   uint64
	Bytes   uint64
	// Retained is the bytes that only closures of the band keep alive, they themselves included,
	// Largest that of the one that keeps most.
	Retained, Largest uint64
}

// HeapRootKind is why a closure is alive whatever else refers to it.
type HeapRootKind uint8

// Kinds of roots.
const (
	HeapRootUnknown HeapRootKind = iota
	HeapRootCAF                  // a top-level value that code refers to which may still run
	HeapRootThread
	HeapRootStable // a stable pointer, held by foreign code
	HeapRootWeak   // a weak pointer, with its finalizers
)

// HeapRoot is a root that branches and paths refer to.
type HeapRoot struct {
	ID       uint32 // from 1, within a graph
	Kind     HeapRootKind
	Closure  uint32 // the code of a CAF
	TSO      uint64 // a thread's id
	Label    string // a thread's label
	Number   uint64 // which stable pointer it is
	Retained uint64 // bytes that nothing else keeps alive
}

// HeapBranch is a root, or closures of one type, in the tree of dominators: without them all below
// would be freed. What is dominated by a closure of its own type counts for the topmost branch of
// that type. Branches are numbered from 0 in the order of the log; the first stands for all.
type HeapBranch struct {
	Parent   uint32
	Closure  uint32 // 0 if it is a root that is no closure, or all
	Root     uint32 // HeapRoot.ID; 0 for none
	Count    uint64
	Bytes    uint64
	Retained uint64
}

// HeapPath is a shortest path from a root to one of the closures of a band, the one that retains most.
type HeapPath struct {
	Closure  uint32
	Root     uint32
	Count    uint64 // closures of the band to which this root is the nearest
	Bytes    uint64 // of these
	Retained uint64 // by the closure at the end
	Steps    []HeapStep
}

// HeapStep is closures of one band on a path, one after another.
type HeapStep struct {
	Closure uint32
	Times   uint32
	Frame   uint32 // Closure.ID of the frame that refers to the step, if the one before is a stack
	Skipped uint32 // closures that are left out before the step
}

func (*HeapGraph) EventID() uint16  { return IDHeapGraph }
func (*HeapBand) EventID() uint16   { return IDHeapBand }
func (*HeapRoot) EventID() uint16   { return IDHeapRoot }
func (*HeapBranch) EventID() uint16 { return IDHeapBranch }
func (*HeapPath) EventID() uint16   { return IDHeapPath }
func (*HeapStuck) EventID() uint16  { return IDHeapStuck }

func (e *HeapGraph) layout(c *codec) {
	c.v32(&e.PID)
	c.v64(&e.Closures)
	c.v64(&e.Pointers)
	c.v64(&e.Bytes)
	c.v64(&e.Unreached)
	c.v64(&e.UnreachedBytes)
	c.v64(&e.Dangling)
	c.v64(&e.PauseNs)
	c.v64(&e.TookNs)
	c.flag(&e.Beside)
	c.v64(&e.CAFs)
	c.v64(&e.Threads)
	c.v64(&e.StablePtrs)
	c.v64(&e.Weaks)
	list(c, &e.Notes, 1)
	for i := range e.Notes {
		c.str(&e.Notes[i])
	}
	c.done()
	c.flag(&e.AtRest)
	c.flag(&e.Complete)
	c.v64(&e.Stuck)
	c.flag(&e.StuckKnown)
}

func (e *HeapStuck) layout(c *codec) {
	c.v64(&e.TSO)
	c.str(&e.Label)
	enum(c, &e.Kind)
	c.flag(&e.Held)
}

func (e *HeapBand) layout(c *codec) {
	c.v32(&e.Closure)
	c.v64(&e.Count)
	c.v64(&e.Bytes)
	c.v64(&e.Retained)
	c.v64(&e.Largest)
}

func (e *HeapRoot) layout(c *codec) {
	c.v32(&e.ID)
	enum(c, &e.Kind)
	c.v32(&e.Closure)
	c.v64(&e.TSO)
	c.str(&e.Label)
	c.v64(&e.Number)
	c.v64(&e.Retained)
}

func (e *HeapBranch) layout(c *codec) {
	c.v32(&e.Parent)
	c.v32(&e.Closure)
	c.v32(&e.Root)
	c.v64(&e.Count)
	c.v64(&e.Bytes)
	c.v64(&e.Retained)
}

func (e *HeapPath) layout(c *codec) {
	c.v32(&e.Closure)
	c.v32(&e.Root)
	c.v64(&e.Count)
	c.v64(&e.Bytes)
	c.v64(&e.Retained)
	list(c, &e.Steps, 4)
	for i := range e.Steps {
		c.v32(&e.Steps[i].Closure)
		c.v32(&e.Steps[i].Times)
		c.v32(&e.Steps[i].Frame)
		c.v32(&e.Steps[i].Skipped)
	}
	c.done()
}
