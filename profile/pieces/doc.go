// Package pieces reads the logs that a daemon leaves in a folder: many pieces of many processes, as
// one log.
//
// A piece is the log of one process for a stretch of time, whole in itself. [Scan] lists the pieces
// below a folder; of each it reads only the beginning and the markers of its blocks. A [Choice]
// takes some of them, by service, host, program, build and wall clock, and [Open] merges those into
// one profile: only their bytes are read. Package rewrite says how logs are merged.
//
// # Damage
//
// A file that is no log is a [Problem], and a piece that was cut off or that has damaged stretches
// says so in its [Piece.State]. Neither keeps the others from being read.
package pieces
