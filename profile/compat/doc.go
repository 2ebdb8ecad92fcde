// Package compat derives from a log of ours the standard events that other
// readers of eventlogs look for. They are derived when a log is exported, not
// while a program is profiled: most need names, which are known only after the
// capture, and none of their cost should fall on the program.
//
//	hs-speedscope       PROF_BEGIN, cost-centre definitions, PROF_SAMPLE
//	ghc-stack-profiler  its binary messages (USER_BINARY_MSG): whole stacks by thread
//	threadscope         capabilities, tasks, RUN/STOP and GC derived from samples
//	eventlog2html       allocation by binding, as heap samples
//
// The log's own events stand beside them, so that ccview shows the result as it
// shows the original.
//
// # What each reader wants
//
// hs-speedscope (mpickering/hs-speedscope, src/HsSpeedscope.hs) drops the first
// seven definitions, as the RTS's own centres, reads the rest as frames in
// descending order of their ids, and takes id n of a sample for frame n−1; a
// sample of one frame whose id is the highest is dropped. Every sample weighs
// PROF_BEGIN's interval.
//
// ghc-stack-profiler (well-typed/ghc-stack-profiler, GHC.Stack.Profiler.Core)
// has messages 0xFFCA (stack), 0xFFCB (part of one that goes on), 0xFFCC
// (string) and 0xFFCD (source location), big-endian, stacks root first; its
// viewer shows the first 1000 frames.
//
// threadscope draws rows only for capabilities that events belong to, bars
// between RUN and STOP and between GC_START and GC_END on one of them.
//
// eventlog2html does not sort: definitions stand before samples. Its bands are
// residencies; ours are bytes allocated since the sample before, and say so.
package compat
