// Package perf opens sampled events on a target's threads, runs the stack walker at their
// overflows, and decodes what arrives: samples from the BPF ring buffer, and process events
// (mmap, exec, fork, exit) from perf's side band.
//
// Times from both sources are CLOCK_MONOTONIC nanoseconds, so that they can be merged.
// Events are opened only on the target's threads, with inheritance: no other process is
// interrupted for them.
package perf
