// Package activity says how capabilities and Haskell threads spent their time, by samples of CPU
// time: each says which thread runs on which capability, and whether that is in the mutator, the
// garbage collector or the scheduler. It costs the program nothing more, and it is of all of the
// time, where probes at each run of a thread may be too dear to stay in place.
package activity
