// Package rts has probes in the run-time system of a capture's first Haskell
// process, and has package timeline make a log's standard events of what they tell:
// collections and the heap, threads that run and stop. It takes the probes out while
// they have cost more than they may.
package rts
