package daemon

import (
	"fmt"
	"time"

	systemd "github.com/coreos/go-systemd/v22/daemon"

	"ccagent/perf"
)

// notify reports the daemon's state to systemd, if that started it (sd_notify(3)).
func (d *Daemon) notify(state string) {
	if _, err := systemd.SdNotify(false, state); err != nil {
		d.opts.Log(fmt.Sprintf("systemd is not notified of %.12q: %v", state, err))
	}
}

// reloading is the state of a daemon that reads its configuration again, with the time that
// Type=notify-reload asks for.
func reloading() string {
	return fmt.Sprintf("%s\nMONOTONIC_USEC=%d", systemd.SdNotifyReloading, perf.Monotonic()/1000)
}

// watchdog returns what the loop is to call in each turn: it reports twice in the unit's WatchdogSec
// that the daemon is alive, which nothing but the loop can do, so that one that hangs is started anew.
func (d *Daemon) watchdog() func(now time.Time) {
	interval, err := systemd.SdWatchdogEnabled(false)
	if err != nil {
		d.opts.Log(fmt.Sprintf("the watchdog of systemd is left alone: %v", err))
	}
	if err != nil || interval <= 0 {
		return func(time.Time) {}
	}
	var last time.Time
	return func(now time.Time) {
		if now.Sub(last) >= interval/2-quietInterval || now.Before(last) {
			last = now
			d.notify(systemd.SdNotifyWatchdog)
		}
	}
}
