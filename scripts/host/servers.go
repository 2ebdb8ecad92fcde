package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"ccagent/scripts/paired"
)

// servers are programs with a fixed amount of work: green threads on two capabilities, and OS threads.
var servers = [][]string{
	{"server", "60000", "20", "4", "+RTS", "-N2"},
	{"pingpong", "40000"},
}

// measureServers runs each server in pairs, one with the daemon and one without, in turns, and prints
// the medians of the ratios of their CPU times.
func measureServers(o *options) error {
	release := (&population{o: o}).releases()[0]
	ratios := make([][]float64, len(servers))
	for round := range o.rounds {
		// Which is first changes from round to round, so that drift cancels out.
		times := [2][]time.Duration{}
		for _, with := range []bool{round%2 == 0, round%2 == 1} {
			ran, err := runServers(o, release, with)
			if err != nil {
				return err
			}
			times[map[bool]int{false: 0, true: 1}[with]] = ran
		}
		for i := range servers {
			ratios[i] = append(ratios[i], times[1][i].Seconds()/times[0][i].Seconds())
		}
	}
	fmt.Printf("\n| paired overhead, %d rounds | median and its interval of 95 %% |\n|---|--:|\n", o.rounds)
	for i, argv := range servers {
		printLine(strings.Join(argv, " "), "%s", paired.Interval(ratios[i]))
	}
	return nil
}

// runServers runs each server once and returns their CPU times, user and system.
func runServers(o *options, release string, with bool) (times []time.Duration, err error) {
	if with {
		dir, err := os.MkdirTemp("", "host-")
		if err != nil {
			return nil, err
		}
		defer os.RemoveAll(dir)
		d, err := startDaemon(o, dir, "")
		if err != nil {
			return nil, err
		}
		defer d.stop()
	}
	for _, argv := range servers {
		cmd := exec.Command(filepath.Join(o.programs, release, "host", argv[0]), argv[1:]...)
		if out, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("run %v: %w\n%s", argv, err, out)
		}
		times = append(times, cmd.ProcessState.UserTime()+cmd.ProcessState.SystemTime())
	}
	return times, nil
}
