// Package rewrite makes new eventlogs from eventlogs: it cuts them, merges them, and adds
// the standard events that other tools look for.
//
// # Cutting
//
// A cut log keeps its times, so that a time range means the same in it as in the original
// log. It keeps every definition, the stack nodes that its samples use (renumbered), and
// the events within the range. If a thread is running or a collection is in progress at
// the start of the range, the events that started it are repeated there.
//
// # Merging
//
// Logs are aligned by their wall clocks: the RTS's WALL_CLOCK_TIME, or the start of a
// capture. Time 0 is the start of the earliest log. Equal events, modules, files,
// bindings, spans and blocks become one, and all ids are assigned anew. At most one of
// the logs may be written by an RTS. If there is one, the standard events are taken only
// from it, because ours describe the same run. Its process must be one that our logs
// profiled.
//
// # Memory
//
// Logs are read twice and streamed. Memory holds 8 bytes for each stack node, and when
// merging also the symbol tables.
package rewrite
