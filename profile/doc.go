// Package profile answers queries on one log: which elements of the source its samples
// are attributed to.
//
// # Lifetimes
//
// A [Profile] is a log's immutable columns (package columns) with the indexes that
// queries build over them, and may be used by any number of goroutines.
// [Profile.Select] applies a [Filter] and returns a [Selection], which is immutable too.
// Every query is made on a selection, so all views of one filter agree.
//
// Shares are fractions (0..1) of the selection's total weight.
//
// # From sample to element
//
// Levels turn the place that a sample hit into the elements of its cause set: spans,
// source bindings, files, modules or packages.
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
// that asked for memory, not the allocator that it called. Frames that only structure
// the stack (update, catch, underflow and stop frames) have no causes. Frames
// rootwards of a context mark are the thread's context, not callers: no cost is
// attributed to them.
//
// # Names
//
// At binding level a worker, specialisation or local binding counts for the
// source binding at the end of its chain of parents, and is named
// "Module.binding". Haskell code with a symbol but without source notes is attributed by
// its symbol at binding, module and package level, and to (STG) at span and file level,
// because its spans and file are unknown. Where only the symbols around the code are
// known, a binding is named after the nearest one, "Module (local code before that)" or
// "Module (near that)", and rows of modules and packages state how much of their weight
// is such a guess (Row.NearWeight). The run-time system's C code is
// (GC) or (RTS), and (GC waiting) as well as (GC) where threads of the collector wait for each
// other; what it allocates for itself is (stack chunks) or (thread stacks). Cmm code is (STG). Other C code is (foreign) at every level, and
// Selection.CategoryFunctions and call trees name its functions.
//
// Of a program that the Curry compiler KiCS2 made, names are Curry's, and the code of its own
// run-time system is (search) at all levels but span (package curry).
package profile
