// Package columns holds the contents of one log as immutable columns.
//
// # Lifetimes
//
// [Load] and [Open] read a whole log into a [Log]. A Log never changes afterwards and may
// be used by any number of goroutines; readers of its columns must not write to them. A
// [Follower] reads a log while it grows and returns a Log of the part read so far. [Open]
// also reads the profiles of other profilers, which package imports converts to logs.
//
// # Columns
//
// A sample refers to a [Context] (its thread, CPU and event) and to a [Site]: a stack
// node together with the reason why the stack ends and whether the kernel was running. A
// node is a frame on top of its parent; a frame's address is a [Place]. The symbol tables
// at the end of the log resolve places to a [Location]: a block with its cause set, a
// binding, or only a category. A program has few contexts, sites and places compared to
// its samples, so queries examine each of these once, not each sample.
//
// Times are nanoseconds since the capture began. A sample's weight is in its event's unit
// (ns, cycles, bytes, …): the amount that elapsed since the sample before it.
//
// # Trust
//
// A log may be damaged or hostile. References to undefined ids are counted in
// [Accounting] and otherwise treated as absent; no id or length in a log makes the loader
// allocate more than a small multiple of the bytes read.
package columns
