// Package profile holds one log as immutable columns and answers queries on it.
//
// # Lifetimes
//
// [Load] and [Open] read a whole log into a [Profile], which never changes
// afterwards and may be used by any number of goroutines. [Profile.Select]
// applies a [Filter] and gives a [Selection], immutable as well; every query is
// a method of the selection, so all views of one filter agree.
//
// # Units
//
// Times are nanoseconds since the capture began. A sample's weight is in its
// event's unit (ns, cycles, bytes, …): what elapsed since the sample before it.
// Shares are fractions (0..1) of the selection's total weight.
//
// # From sample to element
//
// A sample refers to a site: a stack node together with why the stack ends and
// whether the kernel ran. A node is a frame on its parent; a frame's address is
// a place. The symbol tables at the log's end resolve places: to a block with
// its cause set, to a binding, or to a category alone. Levels turn a place into
// the elements of its cause set: spans, source bindings, files, modules or
// packages.
//
// The definitions of share, only and inclusive follow the static lexical scope
// of Wortmann & Duke, "Causality of Optimized Haskell" (2013), §4.4:
//
//   - share(e): the weight of samples whose leaf has e in its cause set. Shares
//     overlap, so their sum may exceed the total.
//   - only(e): the part of share(e) that no other element of the level shares.
//   - inclusive(e): the weight of samples that have e in the cause set of any
//     frame, each sample counted once however often e recurs.
//
// Three rules complete them. In events that count bytes the leaf is the frame
// that asked for memory, not the allocator under it. Frames that only structure
// the stack (update, catch, underflow and stop frames) have no causes. Frames
// rootwards of a context mark are the thread's context, not callers: they count
// for nothing.
//
// # Names
//
// At binding level a worker, specialisation or local binding counts for the
// source binding at the end of its chain of parents, and is named
// "Module.binding". Haskell code with a symbol but no notes goes by its symbol
// at binding, module and package level, and to (STG) at span and file level,
// which it has none of. Where only the symbols around the code are known, a
// binding is named by its place, "Module (local code before that)" or "Module
// (near that)", and module and package rows keep count of how much of them is
// such a guess (Row.NearWeight). The run-time system's C code is
// (GC) or (STG); other C code is (foreign) at every level, and
// Selection.CategoryFunctions and call trees name its functions.
//
// # Core
//
// Where the log holds GHC's Core, [Selection.Core] gives the bindings of it that
// an element's code is in. A sample belongs to one: the innermost of its block's
// procedure and those that enclose it which has Core, or the one that the
// procedure was lifted out of. In its text the sample is at the notes that are
// its block's nearest causes there.
//
// # Cost centres
//
// [Selection.CostCentres] partitions what shares let overlap: each sample belongs
// to one of the centres that [Profile.Centres] found for a [CentreSet], by the
// rules of Sansom & Peyton Jones (1997) or Morgan & Jarvis (1998) as far as a
// sampler can follow them. The weight for which it cannot, since a thunk does not
// tell who built it, is reported as forced. Package semantics specifies the rules.
//
// # Trust
//
// A log may be damaged or hostile. References to what was never defined are
// counted in [Accounting] and otherwise treated as absent; no id or length in a
// log makes the loader allocate more than a small multiple of the bytes read.
package profile
