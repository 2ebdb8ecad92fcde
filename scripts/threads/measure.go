package main

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"strings"
	"time"

	"ccagent/scripts/paired"
)

// settings are the flags under which run times are compared: those of the fault, one capability, and what is advised.
var settings = []string{"-N2", "-N1", "-N2 -qg", "-N2 -qn1", "-N2 -A64m"}

// measured are the programs, and what they are.
var measured = []struct {
	argv  []string
	about string
}{
	{[]string{"contention", "count", "1000"}, "keeps a map of 100 000 keys alive"},
	{[]string{"contention", "squares", "2000"}, "keeps nothing alive"},
}

// measure runs each program under all settings in turns, in an order of its own in each round, and gives a table.
func (l *lab) measure(rounds int) (string, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "| Program | `+RTS` | s, median | against `%s` |\n|---|---|---|---|\n", settings[0])
	for _, m := range measured {
		seconds := make([][]float64, len(settings))
		for range rounds {
			for _, i := range rand.Perm(len(settings)) {
				s, err := l.time(m.argv, settings[i])
				if err != nil {
					return "", err
				}
				seconds[i] = append(seconds[i], s)
			}
		}
		for i, setting := range settings {
			name, change := "", ""
			if i == 0 {
				name = fmt.Sprintf("`%s`: %s", strings.Join(m.argv, " "), m.about)
			} else {
				ratios := make([]float64, rounds)
				for n := range ratios {
					ratios[n] = seconds[i][n] / seconds[0][n]
				}
				change = paired.Interval(ratios)
			}
			fmt.Fprintf(&b, "| %s | `%s` | %.2f | %s |\n", name, setting, paired.Median(seconds[i]), change)
		}
	}
	load, err := exec.Command("cut", "-d ", "-f1-3", "/proc/loadavg").Output()
	if err != nil {
		return "", err
	}
	fmt.Fprintf(&b, "\nMedians of %d rounds of elapsed time, all settings in turns; ratios of runs of one round with their 95 %% interval (sign test). %d CPUs, at a load of %s (1, 5, 15 minutes) at the end.\n",
		rounds, runtime.NumCPU(), strings.Join(strings.Fields(string(load)), ", "))
	return b.String(), nil
}

// time is how long a program runs, in seconds.
func (l *lab) time(argv []string, setting string) (float64, error) {
	cmd := exec.Command(l.path(argv[0]), append(append(argv[1:len(argv):len(argv)], "+RTS"), strings.Fields(setting)...)...)
	start := time.Now()
	if out, err := cmd.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("%s: %w\n%s", cmd, err, out)
	}
	return time.Since(start).Seconds(), nil
}
