// Package imports reads other profilers' files into the events of a log, so that
// what is made for logs serves for them too: pprof's profile.proto, gzipped or
// not, and the text of perf script.
//
// # What becomes of what
//
// A sample type of pprof, an event of perf, is an event. A function is a binding
// whose name is taken as it stands; a location with inlined functions is a block
// whose causes are these, innermost first, so the overlapping causes of our own
// pprof export come back as they were. Frames of the kernel, and those that are
// named as one of our categories, are of that category.
//
// A pprof profile has no times: all its samples are at 0.
//
// # Trust
//
// The input is not trusted: an import has a budget of memory and time, which is charged
// before it is spent (budget.go); a compressed file may grow to 100 times its size; every
// number is checked, and what a text has of no sense is passed over and counted.
package imports
