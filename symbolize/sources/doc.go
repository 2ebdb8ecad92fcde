// Package sources finds and reads the source files that debug information names, writes
// them into the log, and finds the binding that a position in them belongs to.
package sources
