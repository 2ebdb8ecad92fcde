package target

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"
)

// passedOn are the signals that a started program gets when the agent does.
var passedOn = []os.Signal{
	unix.SIGINT, unix.SIGQUIT, unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGUSR2, unix.SIGALRM, unix.SIGCONT, unix.SIGWINCH,
}

// PassSignals passes the agent's signals on to the started program, until the
// returned function is called. Signals from the terminal reach the program
// anyway, since it is in the same foreground process group.
func (t *Process) PassSignals() (stop func()) {
	signals := make(chan os.Signal, 16)
	done := make(chan struct{})
	signal.Notify(signals, passedOn...)
	go func() {
		for {
			select {
			case <-done:
				return
			case s := <-signals:
				sig, ok := s.(unix.Signal)
				if !ok || fromTerminal(sig) && inForeground() {
					continue
				}
				// The program may just have ended; that is no failure.
				_ = unix.PidfdSendSignal(t.handle, sig, nil, 0)
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// fromTerminal reports whether terminals generate the signal. The sender is unknown, so in the
// foreground such signals are assumed to come from the terminal.
func fromTerminal(s unix.Signal) bool {
	return s == unix.SIGINT || s == unix.SIGQUIT || s == unix.SIGHUP || s == unix.SIGWINCH
}

// inForeground reports whether the agent is in its terminal's foreground group.
func inForeground() bool {
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}
