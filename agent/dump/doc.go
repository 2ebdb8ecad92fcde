// Package dump reads what every Haskell thread of a process does, from outside.
//
// Threads that wait are read while the process runs: once, and a second time to see that they
// stood still and that no collection ran between. No collection runs while a capability runs
// Haskell code or is idle, since one needs them all. So where threads run Haskell code, their OS
// threads are stopped while the process is read: that gives their stacks, and keeps collections
// away. How long that took is in the Dump.
package dump
