// Package duplicated estimates what CPU time goes into evaluating thunks that another Haskell thread has evaluated before, or
// evaluates at the same time.
//
// A thread that enters a thunk does not mark it (lazy blackholing): another one may enter it meanwhile, and do the same work.
// Nothing in the program counts that. But each evaluation has an update frame on its thread's stack, with the thunk's address. So at each
// sample of CPU time the walker records the thunks that the thread evaluates, and what state each is in (evaluating.h):
//
//   - It has its value: another thread was faster, and all that is still done for it is done again.
//   - It is a black hole of another thread: both evaluate it.
//   - It looks like one that nobody evaluates, or is a black hole of this thread: another one may evaluate it too. Whether one does
//     follows from the samples of the others (evaluations).
//
// Of what several threads do at the same time, all but one do it again. Which one is first cannot be seen: each sample counts in part, as
// is true of all of them together. Samples so become samples of the event, with the stack and part of the weight of those of CPU time.
//
// An evaluation that is done twice ends at the next collection at the latest: each thread marks the thunks on its stack when it stops for
// one (threadPaused in rts/ThreadPaused.c), and gives up those that it finds marked by another. So addresses are compared between two
// collections only, while no thunk is moved.
//
// What is missed: two threads in a thunk at the same time where one of them has no sample in it, if its evaluation is shorter than the time between two samples. Once it
// has ended, what the other one still does is seen, however short it is.
package duplicated
