// Package census counts what is in the heap of a running program, by closure.
//
// A Reader reads the descriptors of a heap's generations and blocks out of the process's memory,
// and the blocks that are in use. A census at the end of a major collection (AtCollection) is of
// what is live: the thread that collects is held where the run-time system takes its own census
// (+RTS -hT), at resurrectThreads, and with it the whole program, which waits for it. It stands
// until all small objects are copied, or if that would take longer than is allowed, only until the
// descriptors are read: the oldest generation, which nothing moves before the next major
// collection, is then copied while the program runs. Where there is no time for all descriptors either, megablocks are
// read in random order, and what was read by the next major collection is a sample: see drawing and estimate.
//
// What was read must be what the generations say of themselves, or the census is dropped. Nothing of
// what closures hold is kept: info pointers, numbers and sizes alone.
package census
