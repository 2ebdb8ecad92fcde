package main

import (
	"os"
	"os/signal"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// endSignals are the signals that end what a command does. SIGQUIT is one of them: its
// other meaning, a dump of this program's own goroutines, is nothing to users.
var endSignals = []os.Signal{unix.SIGINT, unix.SIGTERM, unix.SIGHUP, unix.SIGQUIT}

// attended is set by commands that attend to endSignals themselves.
var attended atomic.Bool

// quitQuietly has SIGQUIT end a command that does not attend to it, without a dump.
func quitQuietly() {
	quit := make(chan os.Signal, 1)
	signal.Notify(quit, unix.SIGQUIT)
	go func() {
		for range quit {
			if !attended.Load() {
				os.Exit(128 + int(unix.SIGQUIT))
			}
		}
	}()
}
