// Package alloc samples allocation, in bytes, by probes in the run-time system: where a heap
// check finds the nursery full, where it goes on to the nursery's next block, and where a
// large object is allocated. The ledger makes weights of their samples; probes that would
// cost too much are in place for a part of the time alone (control).
package alloc
