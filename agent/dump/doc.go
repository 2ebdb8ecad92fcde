// Package dump reads what every Haskell thread of a process does, from outside.
//
// Threads that wait are read while the process runs: once, and a second time to see that they
// stood still and that no collection ran between. No collection runs while a capability runs
// Haskell code or is idle, since one needs them all. So where threads run Haskell code, their OS
// threads are stopped, which gives their stacks and keeps collections away. They stand for a few milliseconds, however
// much there is to be read: the memory that a reading before has used is copied meanwhile (moment), and
// read when they run again. What there was no time to copy is read from the process then. It
// is believed only where it is the same a second time, and of a generation that was not collected since. How long
// they stood is in the Dump.
package dump
