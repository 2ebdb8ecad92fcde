// Package sink owns the log that a capture writes: its file, what later logs of a rotated
// capture must repeat (definitions), stacks as a prefix tree, labels of threads, warnings,
// and losses. All other packages write through it.
//
// A Sink is used by one goroutine. Times are CLOCK_MONOTONIC in ns; the log's own begin at 0
// when it is created. Memory is bounded: stack prefixes, labels and mappings have limits.
package sink
