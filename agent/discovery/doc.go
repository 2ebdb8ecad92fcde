// Package discovery finds the processes that run programs compiled by GHC, and says what they
// are called.
//
// A program is known by its file: the compiler leaves its name there, and shared Haskell
// libraries have names of their own. Each file is examined once, whatever number of processes
// runs it. Files, names and environments are the processes' own, so all that is read of them is
// bounded; names become parts of file names only after Clean.
package discovery
