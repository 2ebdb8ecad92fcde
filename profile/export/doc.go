// Package export writes selections of a log in other tools' formats.
//
//	pprof        google/pprof's profile.proto, gzipped
//	speedscope   speedscope's JSON, sampled profiles
//	folded       a stack a line, as flame graph tools read it
//	firefox      the Firefox Profiler's processed profile, JSON
//	perf-script  the text that perf script prints
//
// # What is conserved
//
// Every kept sample is in the output with its weight, in the event's own unit: the
// weights of the output sum to Selection.Total. What a format cannot represent (cause
// sets, threads, capabilities) is left out, and the sum is unchanged. A stack whose
// frames are all hidden is written as the frame "(hidden)".
//
// # Overlap
//
// pprof gets a frame's cause set as one location with a line for each cause, the
// nearest first, as for inlined functions. So pprof counts "flat" for the nearest
// cause, and its "cum" of an element is the element's inclusive share. Folded stacks
// have the leaf's causes as frames marked _[i], if Options.Causes is set. The other
// formats cannot represent overlap: their frames are bindings.
//
// # Sources
//
// pprof: proto/profile.proto in github.com/google/pprof. speedscope:
// src/lib/file-format-spec.ts in github.com/jlfwong/speedscope. Firefox:
// docs-developer/processed-profile-format.md and CHANGELOG-formats.md in
// github.com/firefox-devtools/profiler, version 48. perf script: what
// stackcollapse-perf.pl in github.com/brendangregg/FlameGraph reads.
package export
