// Package series takes censuses of a program's heap while it is measured: at major collections that
// happen anyway, no more often than a period and the budget allow.
//
// When the next census is due, a probe is put where a collection begins. It tells the agent which thread
// leads the collection. The agent traces only that thread until it is held at the collection's end (hold.Thread),
// reads what package census needs, and lets the thread go. All other threads wait for the collection anyway. A
// collection that is over before its leader is traced is left, and the next one tried; after some
// of these, all threads are traced ahead of the next collection, for a while (hold.Gated).
//
// Censuses are taken and counted on an OS thread of their own, one at a time, so that samples are
// drained meanwhile. Nothing is left in the program, and nothing of it stopped, when the agent is
// killed: see package hold.
//
// What a census costs the program is the time for which it stood, on as many CPUs as it used; the
// agent's CPU time of copying and counting is charged to the budget like that of handling samples.
package series
