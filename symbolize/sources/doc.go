// Package sources finds and reads the source files that debug information names.
package sources
