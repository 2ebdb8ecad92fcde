// Package imports converts other profilers' files to logs, so that the viewer can show
// them: pprof's profile.proto, gzipped or not, and the text of perf script.
//
// # Conversion
//
// Each sample type of pprof and each event of perf becomes an event. A function becomes
// a binding with an unchanged name. A location with inlined functions becomes a block
// whose causes are these functions, innermost first; so an import of our own pprof
// export restores the overlapping causes. Frames of the kernel, and frames named after
// one of our categories, are of that category.
//
// A pprof profile has no times: all its samples are at 0.
//
// # Trust
//
// The input is not trusted: an import has a budget of memory and time, which is charged
// before it is spent (budget.go); a compressed file may grow to 100 times its size; every
// number is checked. Lines of text that cannot be parsed are skipped and counted.
package imports
