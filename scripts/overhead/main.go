// Command overhead measures what profiling costs a program, by paired runs: with
// and without ccagent, alternating, and a ratio for each pair.
//
//	overhead [-pairs N] [-flags "…"] CCAGENT PROG [ARG…]
//
// It prints the medians of the pairs' ratios, of the program's own CPU time (user and
// system) and of its wall time, each with the interval that holds the true median
// with at least 95 %, by the sign test; and the agent's own CPU time, as a part of the
// program's.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	pairs := flag.Int("pairs", 10, "pairs of runs")
	flags := flag.String("flags", "", "flags for ccagent record, separated by spaces")
	measure := flag.String("measure", "", "run the program and write its times to this file (internal)")
	flag.Parse()
	var err error
	switch {
	case *measure != "" && flag.NArg() > 0:
		err = measureTo(*measure, flag.Args())
	case flag.NArg() > 1 && *pairs >= 6:
		err = compare(*pairs, strings.Fields(*flags), flag.Arg(0), flag.Args()[1:])
	default:
		err = errors.New("usage: overhead [-pairs N] CCAGENT PROG [ARG…], with N of 6 or more")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "overhead:", err)
		os.Exit(1)
	}
}

// times are what one run of the program took.
type times struct{ CPU, Wall time.Duration }

// measureTo runs a program as a child, whose times no one else's are mixed into.
func measureTo(path string, argv []string) error {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Stderr = os.Stderr
	begin := time.Now()
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("run %s: %w", argv[0], err)
	}
	t := times{cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), time.Since(begin)}
	data, err := json.Marshal(t)
	if err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}

func compare(pairs int, flags []string, ccagent string, argv []string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "overhead-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	out := filepath.Join(dir, "times")
	measured := append([]string{self, "-measure", out}, argv...)
	recorded := append([]string{ccagent, "record", "--quiet", "-o", filepath.Join(dir, "log")}, flags...)
	recorded = append(append(recorded, "--"), measured...)

	var cpu, wall, agent []float64
	for i := range pairs {
		// Which of the two comes first alternates, so that drift cancels.
		first, second := measured, recorded
		if i%2 == 1 {
			first, second = recorded, measured
		}
		var got [2]times
		var total [2]time.Duration
		for k, command := range [][]string{first, second} {
			if got[k], total[k], err = timed(command, out); err != nil {
				return err
			}
		}
		with, without, spent := got[1], got[0], total[1]
		if i%2 == 1 {
			with, without, spent = got[0], got[1], total[0]
		}
		cpu = append(cpu, with.CPU.Seconds()/without.CPU.Seconds())
		wall = append(wall, with.Wall.Seconds()/without.Wall.Seconds())
		agent = append(agent, (spent-with.CPU).Seconds()/with.CPU.Seconds())
	}
	fmt.Printf("%s\tcpu %s\twall %s\tagent %.2f %%\n", strings.Join(append([]string{filepath.Base(argv[0])}, argv[1:]...), " "), interval(cpu), interval(wall), 100*median(agent))
	return nil
}

// timed runs a command that has the program's times written to out. total is the CPU
// time of all that ran.
func timed(argv []string, out string) (t times, total time.Duration, err error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	if msg, err := cmd.CombinedOutput(); err != nil {
		return t, 0, fmt.Errorf("run %v: %w\n%s", argv, err, msg)
	}
	data, err := os.ReadFile(out)
	if err != nil {
		return t, 0, err
	}
	if err := os.Remove(out); err != nil {
		return t, 0, err
	}
	return t, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), json.Unmarshal(data, &t)
}

func median(x []float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// interval prints the median of ratios as a change in percent, with its bounds.
func interval(ratios []float64) string {
	s := slices.Sorted(slices.Values(ratios))
	k := signRank(len(s))
	percent := func(x float64) float64 { return 100 * (x - 1) }
	return fmt.Sprintf("%+.2f %% [%+.2f, %+.2f]", percent(median(s)), percent(s[k]), percent(s[len(s)-1-k]))
}

// signRank is the largest k such that the k+1st smallest and the k+1st largest of n
// values enclose the median with at least 95 %.
func signRank(n int) int {
	tail, term := 0.0, math.Pow(0.5, float64(n))
	k := -1
	for i := 0; i < n/2; i++ {
		tail += term
		if 2*tail > 0.05 {
			break
		}
		k = i
		term *= float64(n-i) / float64(i+1)
	}
	return max(k, 0)
}
