// Package process follows what the profiled processes run: each program image from exec
// to exec or exit, the files that it maps, and their call frame information. It
// reports them to the log, the walker, and every [Watcher].
//
// A file is opened when it is mapped and held open, so that what is symbolised is what
// ran, whatever its path names by then. Its call frame information is compiled beside the
// capture, in a child without privileges.
package process
