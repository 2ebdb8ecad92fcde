// Package rtsevents turns what probes saw of a run-time system (package bpf's
// RecordRTS) into the events that GHC's own eventlog has for it, in the blocks of
// their capabilities: GC_START to GC_END with GC_STATS and the heap's figures,
// RUN_THREAD and STOP_THREAD with the reason, and what readers' state machines want
// in between (CREATE_THREAD, MIGRATE_THREAD, THREAD_WAKEUP).
//
// Probes may be out for a while when they would cost too much. What happened then
// is a gap: nothing runs on into it, and runs within it are those that samples
// show, so their ends are as coarse as the samples.
package rtsevents
