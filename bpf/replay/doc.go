// Package replay runs the stack walker of bpf/c in user space, over recorded memory (package
// snapshot) or the memory of a stopped process, for tests. No command links it; it needs
// cgo.
//
// walker.inc includes bpf/c/walk.h itself, for each of the two register maps, and gives it
// what the kernel gives the BPF program: reads of the target's memory, loops and map
// entries.
//
// The tests check the walker in three ways: against golden stacks of recorded snapshots
// (testdata, made by scripts/snapshots); against an independent implementation (package
// oracle) on live processes; and with corrupted snapshots, for which every walk must end
// with a stop reason.
package replay
