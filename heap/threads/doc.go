// Package threads reads Haskell threads out of a process's memory: their states, what they wait
// for, and their stacks.
//
// A Reader reads by run-time addresses and knows nothing of processes. Read gives a Reading: every
// thread of the generations' lists, and the Objects that threads wait for. The process may run
// meanwhile. A Reading is to be believed where Check finds it unchanged: a thread stood still if
// its TSO and the top of its stack are as they were, and nothing that a Reading has means anything
// once a collection has begun, since that moves threads and stacks.
//
// Rules: rts/include/rts/storage/TSO.h and Closures.h; stack_frame_sizeW of ClosureMacros.h for the
// sizes of frames; rts/Messages.c for black holes. Facts about releases come from internal/ghc.
//
// The memory is a program's own and may hold anything. Every list is bounded by what was seen
// before, every length by the object that it is in, and each Reading by Limits. No payload leaves
// the package but threads' labels: only addresses, types and sizes do.
package threads
