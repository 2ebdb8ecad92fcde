// Package columns holds what is in one log as immutable columns.
//
// # Lifetimes
//
// [Load] and [Open] read a whole log into a [Log], which never changes afterwards and
// may be used by any number of goroutines; readers of its columns must not write to
// them. A [Follower] reads a log while it grows, and gives a Log of what there is.
// [Open] reads other profilers' profiles, too, as package imports makes logs of them.
//
// # Columns
//
// A sample is of a [Context] (its thread, CPU and event) and of a [Site]: a stack node
// together with why the stack ends and whether the kernel ran. A node is a frame on its
// parent; a frame's address is a [Place]. The symbol tables at the log's end resolve
// places ([Location]): to a block with its cause set, to a binding, or to a category
// alone. Programs have few contexts, sites and places for their samples, so that
// queries decide for each of these once.
//
// Times are nanoseconds since the capture began. A sample's weight is in its event's
// unit (ns, cycles, bytes, …): what elapsed since the sample before it.
//
// # Trust
//
// A log may be damaged or hostile. References to what was never defined are counted in
// [Accounting] and otherwise treated as absent; no id or length in a log makes the
// loader allocate more than a small multiple of the bytes read.
package columns
