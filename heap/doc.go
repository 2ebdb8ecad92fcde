// Package heap reads closures of GHC's heap out of memory that was copied from a process.
//
// A closure begins with its info pointer, which leads to an info table: the closure's type and,
// for most types, how many pointers and other words it has. Tables reads and remembers info
// tables, Layout.Size computes how long a closure is, and Walk goes from closure to closure
// through a block. The rules are those of closure_sizeW_
// (rts/include/rts/storage/ClosureMacros.h); facts about releases come from internal/ghc.
//
// The memory is a program's own and may hold anything: every length is checked against the
// words that there are, and what is no closure is reported, not guessed. No payload leaves the
// package; only info pointers, types and sizes do.
package heap
