// Package rewrite makes eventlogs of eventlogs: it cuts them, merges them, and
// adds the standard events that other tools look for.
//
// # Cutting
//
// A cut log keeps its times, so that a range means the same in it as in the log
// it was cut from. It keeps every definition, the stack nodes that its samples
// use (renumbered), and what happened within the range. Where a thread ran or a
// collection was under way when the range begins, the events that tell so are
// repeated at its beginning.
//
// # Merging
//
// Logs are put on one time axis by their wall clocks: the RTS's WALL_CLOCK_TIME,
// or the start of a capture. The earliest log's begin is time 0. Equal events,
// modules, files, bindings, spans and blocks become one; all ids are given anew.
// At most one of the logs may be an RTS's, and if there is one the standard
// events are its alone: what ours has of them tells the same run. Its process
// must be one that ours profiled.
//
// # Memory
//
// Logs are read twice and streamed. What is held is 8 bytes a stack node, and
// of merged logs their symbol tables.
package rewrite
