// Package machinecode shows the instructions of a function with the samples on each.
//
// A log holds addresses, no code. The code is read from the program's file, if that is the build which
// ran: by its build-id, or where it has none by size and time of change. The file is as hostile as
// any: only its headers, its notes and the bytes asked for are read, all bounded, and instructions
// are only decoded.
package machinecode
