// Package eventlog reads and writes GHC's eventlog format: the standard events
// of every GHC, and this project's own, which other readers skip.
//
// # Format
//
// All words are big-endian. A log is a header that declares event types (id,
// payload size or "variable", description), then events:
//
//	id u16, time u64 (ns since the log's begin), [length u16 if variable], payload
//
// and 0xffff as the end marker. A block marker (id 18) says that the bytes up
// to its size are events of one capability; such a block lies in the file where
// it was flushed, so a log is in the order of time only within the blocks of one
// capability. Ids, sizes and field orders are those of GHC's
// rts/include/rts/EventLogFormat.h and rts/gen_event_types.py. Events may grow
// at their end: a reader takes the fields it knows.
//
// # Our events
//
// Ids from 1000 up (capture.go, symbols.go), all of variable size and declared
// as "ccagent NAME (vN)": N is the event's version, and a reader that does not
// know it gives the event as Unknown. Payloads are LEB128 varints, strings and
// lists after their length, in the order of the struct's fields.
//
// # Lifetimes
//
// A Writer keeps nothing of an event it was given. A Reader decodes into
// structs of its own: a Record and all it refers to are valid until Next,
// except for strings.
//
// # Damage
//
// The input is not trusted. Bytes that are not what they should be are Malformed
// records in the stream, with offset and reason, and reading goes on at the next
// place that looks sound. Only a missing header and I/O errors are errors.
package eventlog
