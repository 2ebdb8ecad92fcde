package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// endSignals are the signals that end what a command does. SIGQUIT is one of them: its
// other meaning, a dump of this program's own goroutines, is nothing to users.
var endSignals = []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT}
