// Package replay runs the stack walker of bpf/c in user space, over recorded
// memory (package snapshot) or that of a stopped process, for tests. No command
// links it; it needs cgo.
//
// walker.inc includes bpf/c/walk.h itself, under both register maps, and gives
// it what the kernel gives the BPF program: reads of the target's memory, loops
// and map entries.
//
// Its tests hold the walker against the truth three ways: golden stacks of
// recorded snapshots (testdata, made by scripts/snapshots), live processes
// walked side by side with an independent implementation (package oracle), and
// corrupted snapshots, which must always end in a stop reason.
package replay
