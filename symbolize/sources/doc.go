// Package sources finds and reads the source files that debug information names, writes
// them into the log, and tells which binding a position in them belongs to.
package sources
