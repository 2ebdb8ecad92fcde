// Package threads says of a thread dump who waits for whom, which threads do the same, and
// which can never go on.
//
// A thread that waits for a black hole waits for the thread that evaluates the thunk, one in throwTo
// for the one that is to take the exception. For an MVar nobody is recorded: those are taken to be
// able to end the wait whose handlers of exceptions put a value into it (what withMVar, modifyMVar,
// bracket and finally leave on the stack), and only where there are none, those whose stacks refer
// to it and that do not wait for it themselves.
//
// Threads are deadlocked if each of them waits for threads of which all are among them: any other
// that could go on might wake them. An edge counts only if thread and object were unchanged
// throughout the dump. References that lie deeper in the heap are not seen, so that a deadlock
// without handlers is one as far as stacks show: Deadlock.Certain says which.
package threads
