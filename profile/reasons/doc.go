// Package reasons says in words where a selection's weight is, and opens what has no source: what
// an element such as (GC) consists of, whose code causes it, and what usually makes it less.
//
// What the collector costs is caused by what allocates, so its causes are parts of an event that
// counts allocated bytes, in the same stretch of time. All other causes are by stacks: the nearest
// function that has source, or else the nearest Haskell function, also across the frame below which
// a Haskell thread waits for C code that it called.
//
// The functions of the run-time system are those of rts/, rts/sm/ and rts/posix/ of GHC 8.10 to
// 9.14; one that is not listed counts to a part of its own.
package reasons
