// Package compat derives from our logs the standard events that other readers of
// eventlogs look for. It does so on export, not while the program is profiled: most of
// these events need names, which are known only after the capture, and profiling the
// program should not become more expensive for them.
//
//	hs-speedscope       PROF_BEGIN, cost-centre definitions, PROF_SAMPLE
//	ghc-stack-profiler  its binary messages (USER_BINARY_MSG): whole stacks by thread
//	threadscope         capabilities, tasks, RUN/STOP and GC derived from samples
//	eventlog2html       allocation by binding, as heap samples
//
// The derived events are added to the log's own, so ccview shows the result as it
// shows the original.
//
// # What each reader expects
//
// hs-speedscope (mpickering/hs-speedscope, src/HsSpeedscope.hs) drops the first
// seven definitions, as the RTS's own centres, reads the others as frames in
// descending order of their ids, and takes id n of a sample for frame n−1. It drops a
// sample with one frame whose id is the highest. Every sample has the weight of
// PROF_BEGIN's interval.
//
// ghc-stack-profiler (well-typed/ghc-stack-profiler, GHC.Stack.Profiler.Core)
// has messages 0xFFCA (stack), 0xFFCB (part of a stack that continues), 0xFFCC
// (string) and 0xFFCD (source location), big-endian, stacks root first; its
// viewer shows the first 1000 frames.
//
// threadscope draws rows only for capabilities that have events, and bars
// between RUN and STOP and between GC_START and GC_END on one of them.
//
// eventlog2html does not sort, so definitions come before samples. Its bands are
// residencies; ours are bytes allocated since the sample before, and are labelled so.
package compat
