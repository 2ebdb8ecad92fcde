// Package perf opens sampled events on a target's threads, runs the stack
// walker at their overflows, and decodes what arrives: samples from the BPF
// ring buffer, process life (mmap, exec, fork, exit) from perf's side band.
//
// Times are CLOCK_MONOTONIC nanoseconds throughout, from both sources, so that
// they can be merged. What this package opens is on the target's threads only,
// with inheritance: no other process takes an interrupt for it.
package perf
