// Package closures reads the info tables of a process's closures, and defines in the log those that
// were found.
//
// Tables looks a word of the heap up: whether it is an info pointer, of what kind of closure, and
// in which module. Registry gives each info table the id by which events refer to it. Sources that
// find closures share the Registry of their capture.
package closures
