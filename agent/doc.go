// Package agent runs one capture: it starts or finds the target, has an engine measure it and
// what it executes and forks, writes the log's head and end, and has the log symbolised when
// the target has ended.
//
// A capture owns everything that is live: the target's handle, the engine and the log. Close
// order is the reverse. Memory is bounded: stack prefixes and modules have fixed limits, samples
// go straight from the ring buffer to the log.
//
// The target is hostile: what is read from its files and memory is checked, it
// runs as the invoking user, and the log is created so that a planted link is
// never followed.
package agent
