//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// period is between two changes of the clock: what the wall clock showed first and last in it.
type period struct{ From, To time.Time }

// clock has ccagent's daemon profile a program while the wall clock is set ahead by an hour, set back by two, and while the
// machine is suspended for some seconds. After each the program has to have a new piece, and then so many samples more by ps.
// It prints the periods, as JSON, and the program's samples by ps, and leaves the pieces in PREFIX0.eventlog and so on,
// the oldest first.
//
//	init clock SAMPLES PREFIX PROG ARG…
func clock(args []string) error {
	if len(args) < 3 {
		return fmt.Errorf("clock: name a number of samples, a prefix and a program")
	}
	more, err := strconv.Atoi(args[0])
	if err != nil {
		return fmt.Errorf("clock: %w", err)
	}
	d, err := startDaemon(args[2:])
	if err != nil {
		return err
	}
	defer d.kill()
	said := struct {
		Periods []period
		Samples int
	}{}
	for _, change := range []func() error{
		func() error { return nil },
		func() error { return setClock(time.Hour) },
		func() error { return setClock(-2 * time.Hour) },
		func() error { return suspend(10) },
	} {
		before, err := d.pieces()
		if err != nil {
			return err
		}
		if err := change(); err != nil {
			return fmt.Errorf("clock: %w", err)
		}
		during := period{From: time.Now()}
		if err := d.until("there is a new piece", func() (bool, error) {
			now, err := d.pieces()
			return len(now) > len(before), err
		}); err != nil {
			return err
		}
		begun, err := d.asked()
		if err != nil {
			return err
		}
		if err := d.until("ps has more samples", func() (bool, error) {
			p, err := d.asked()
			said.Samples = p.Samples
			return p.Samples >= begun.Samples+more, err
		}); err != nil {
			return err
		}
		during.To = time.Now()
		said.Periods = append(said.Periods, during)
	}
	pieces, err := d.stop()
	if err != nil {
		return err
	}
	for i, from := range pieces {
		if err := copyFile(fmt.Sprintf("%s%d.eventlog", args[1], i), from); err != nil {
			return err
		}
		fmt.Fprintln(os.Stderr, filepath.Base(from))
	}
	return json.NewEncoder(os.Stdout).Encode(said)
}

// setClock changes what the wall clock shows.
func setClock(by time.Duration) error {
	ts := unix.NsecToTimespec(time.Now().Add(by).UnixNano())
	return unix.ClockSettime(unix.CLOCK_REALTIME, &ts)
}

// suspend has the machine sleep, and be woken by its battery's clock.
func suspend(seconds int) error {
	if err := os.WriteFile("/sys/class/rtc/rtc0/wakealarm", []byte(fmt.Sprintf("+%d", seconds)), 0); err != nil {
		return err
	}
	return os.WriteFile("/sys/power/state", []byte("mem"), 0)
}
