// Package daemon profiles every Haskell process of a host, all the time: one engine samples all of
// them, and each has a log of its own, in pieces that are closed by age and size and are whole in
// themselves (package segments). Names of code are looked up when a piece is closed, in one store
// for all (package symbols).
//
// One goroutine owns the engine and the processes (daemon.go, processes.go); another closes pieces
// (close.go). Requests of the control socket are answered by the first (answer.go), but for what takes long: a
// process of its own reads what threads do, or counts a heap (dumps.go).
package daemon
