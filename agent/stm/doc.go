// Package stm samples transactions of software transactional memory: how many attempts to run one there are, how
// they end, which code runs them, and what CPU time those take whose work is thrown away.
//
// # Attempts
//
// A transaction runs until its commit finds that nobody has changed what it has read. If somebody has, its work is thrown
// away, and it begins again: that is another attempt. Probes stand where the run-time system tests
// whether an attempt was valid: at a commit, a retry and an exception (package rtsites). They count all attempts, by
// how they end, and sample some, with their stacks.
//
// # Windows
//
// A hit costs about a microsecond, and a program may run a million transactions a second. If that would exceed the budget (a token
// bucket, package overhead), the probes are in place for windows only, which begin at random times. What is counted in
// one stands for the transactions that have begun since the end of the one before: the threaded run-time system counts those
// itself, by the tokens that it hands out for them. Without threads it has no such count, and a window stands for the CPU
// time that was used, without what hits took. (By the clock it would stand for too much: where a program shares its CPUs, it runs
// when the agent that has begun a window lets it.) The interval follows from how much windows differ. Programs with fewer
// transactions are probed all the time, and their counts are exact. Whether they have fewer is not known at first, nor when it changes, and the
// agent may be late to learn it: the BPF program reports when there were as many hits as are paid for, to a thread that removes the probes (guard).
//
// # CPU time
//
// How many attempts fail does not say what that costs: those that take long are the ones that fail. So the walker
// notes, at each sample of CPU time that is taken inside of a transaction while there is a window, the thread that runs it, and the probe
// at the end of that attempt says how it has ended. A sample stands for as much CPU time wherever it is taken, so the attempts
// that are found so are those of each moment of CPU time, whatever they last. When a window ends, no more
// samples are noted, but the probes remain for a while, until the attempts have ended that were: otherwise short ones would be found
// more often. Attempts whose end was not seen are unknown, and widen the interval from both sides.
package stm
