package graph

// Result is what an analysis has found. Types and roots are referred to by their index.
type Result struct {
	Closures, Pointers uint64
	Bytes              uint64 // of all closures
	// Unreached closures are those that no root leads to.
	Unreached, UnreachedBytes uint64
	// Slop is bytes that closures have left behind, Unread those that are no closures.
	Slop, Unread uint64
	// Dangling pointers, of closures that are reached, lead into the heap, but to no closure. Outside counts references of code to
	// what is in no module, BadFrames stacks that could not be read to their end.
	Dangling, Outside, BadFrames uint64
	Cut                          bool // there are more roots than are kept
	// NumberOf roots of each kind, and RetainedBy each kind together with what several roots keep.
	Types []Type
	Roots []Root // those that are referred to
	Tree  []Branch
	Paths []Path
	// AllRoots counts the roots of each kind.
	AllRoots [rootKinds]uint64
	// Stuck are threads that nothing can wake, the first of them where there are many; StuckThreads is their number. It holds if all
	// pointers were read at one moment.
	Stuck        []Stuck
	StuckThreads uint64
}

// Type is closures with one info table.
type Type struct {
	Pointer  uint64 // info pointer; 0 where it is not known
	Kind     uint32 // ghc.ClosureType
	Count    uint64
	Bytes    uint64
	Retained uint64 // bytes that only closures of the type keep alive, they themselves included
	Largest  uint64 // that one of them keeps alive
}

// Branch is closures of one type, or a root, in the tree of dominators: they keep alive what is below.
// A closure that is dominated by one of its own type, with others between them or not, counts for
// the topmost of these. The first branch stands for all, and is its own parent.
type Branch struct {
	Parent   int
	Type     int // −1 of a root that is no closure
	Root     int // −1 for none
	Count    uint64
	Bytes    uint64
	Retained uint64
}

// Path is a shortest path from a root to one of the closures of a type, the one that retains most.
type Path struct {
	Type, Root int
	// Count and Bytes are those of the type's closures to which this root is the nearest.
	Count, Bytes uint64
	Retained     uint64 // by the closure at the end
	Steps        []Step
}

// Step is closures of one type on a path, one after another.
type Step struct {
	Type int
	// Times is how many there are.
	Times uint32
	// Frame is the info pointer of the stack frame that refers to the step, if the one before is a
	// stack.
	Frame uint64
	// Skipped is how many closures of the path are left out before the step.
	Skipped uint32
}
