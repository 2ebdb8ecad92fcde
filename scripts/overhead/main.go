// Command overhead measures what profiling costs a program, by runs in turns: alone,
// with the kernel's bare event and no profiler, and under ccagent with each set of
// flags.
//
//	overhead [-rounds N] [-hz HZ] -o FILE [-flags "…"]… CCAGENT PROG [ARG…]
//	overhead -table FILE
//	overhead -toggle [-halt | -blank] [-pad] [-pin] [-rounds N] [-seconds S] -o FILE -flags "…" CCAGENT PROG [ARG…]
//	overhead -whole [-blank | -daemon] [-rounds N] -o FILE -flags "…" CCAGENT PROG [ARG…]
//	overhead -reported FILE
//
// The first appends what it measured to FILE; the second prints what is there as a
// table: for every program the medians, over the rounds, of the ratio of its CPU time
// (user and system) to that alone, each with the interval that holds the true median
// with at least 95 %, by the sign test; and the geometric means of the medians.
//
// The third runs a program that does the same work again and again, and writes a byte for each piece of it,
// and measures the CPU time of a piece in turns with and without a capture: one running program differs less
// from itself than two runs do. With -halt there is one capture, whose ccagent is stopped and continued by signals in turns, which can be short:
// that shows what a capture without probes and interrupts costs besides its start. With -blank nothing is captured, which shows what
// the method itself resolves. With -pad a busy loop of the lowest priority (SCHED_IDLE) runs on each CPU all the time: a CPU that never
// idles need not be woken, which in a virtual machine costs a program that waits a lot more than a capture does, and less as soon as
// anything else keeps the CPUs awake. With -pin the program has one CPU, the last: threads that wake each other take less CPU time on one
// CPU than on two, and which they are on depends on what else runs.
//
// The fourth runs a program that does a fixed amount of work and says what CPU time that took, in turns alone and under ccagent record, or
// with -daemon beside ccagent daemon, which is started for each such run, takes no flags, and reports nothing. Where time is the number of
// executed instructions, whole runs are alike to a thousandth or two.
//
// The fifth prints what work has cost more beside what the captures say.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"ccagent/perf"
)

type options struct {
	rounds  int
	hz      uint64
	out     string
	flags   []string
	seconds float64
	halt    bool
	whole   bool
	blank   bool
	daemon  bool
	pad     bool
	pin     bool
	ccagent string
	argv    []string
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "overhead:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	var o options
	fs := flag.NewFlagSet("overhead", flag.ContinueOnError)
	fs.IntVar(&o.rounds, "rounds", 10, "rounds of runs")
	fs.Uint64Var(&o.hz, "hz", 997, "frequency of the bare event")
	fs.StringVar(&o.out, "o", "", "append what is measured to this file")
	fs.Func("flags", "flags for ccagent record, separated by spaces; may be repeated", func(s string) error {
		o.flags = append(o.flags, s)
		return nil
	})
	reported := fs.String("reported", "", "print what this file holds beside what captures report")
	toggled := fs.Bool("toggle", false, "attach to a steady program in turns")
	fs.BoolVar(&o.whole, "whole", false, "run a program that does a fixed amount of work in turns")
	fs.Float64Var(&o.seconds, "seconds", 3, "with -toggle: for how long at a time")
	fs.BoolVar(&o.halt, "halt", false, "with -toggle: attach once, and stop ccagent in turns")
	fs.BoolVar(&o.blank, "blank", false, "with -toggle: capture nothing")
	fs.BoolVar(&o.daemon, "daemon", false, "with -whole: run the program beside the daemon")
	fs.BoolVar(&o.pad, "pad", false, "with -toggle: keep all CPUs from idling")
	fs.BoolVar(&o.pin, "pin", false, "with -toggle: run the program on one CPU")
	table := fs.String("table", "", "print what this file holds")
	measure := fs.String("measure", "", "run the program and write its times to this file (internal)")
	event := fs.Uint64("event", 0, "with -measure: under the bare event at this frequency (internal)")
	if err := fs.Parse(args); err != nil {
		return err
	}
	switch {
	case *table != "":
		return printTable(stdout, *table)
	case *reported != "":
		return printReported(stdout, *reported)
	case *measure != "" && fs.NArg() > 0:
		return measureTo(*measure, *event, fs.Args())
	case o.whole && fs.NArg() > 1 && o.rounds >= 6 && o.out != "" && len(o.flags) == 1:
		o.ccagent, o.argv = fs.Arg(0), fs.Args()[1:]
		return wholeRuns(&o)
	case *toggled && fs.NArg() > 1 && o.rounds >= 6 && o.out != "" && len(o.flags) == 1:
		o.ccagent, o.argv = fs.Arg(0), fs.Args()[1:]
		return toggle(&o)
	case fs.NArg() > 1 && o.rounds >= 6 && o.out != "":
		o.ccagent, o.argv = fs.Arg(0), fs.Args()[1:]
		return compare(&o)
	}
	return errors.New("usage: overhead [-rounds N] -o FILE [-flags \"…\"]… CCAGENT PROG [ARG…], with N of 6 or more; or overhead -table FILE")
}

// times are what one run of the program took.
type times struct{ CPU, Wall time.Duration }

// measureTo runs a program as its child and writes the child's times to a file.
func measureTo(path string, hz uint64, argv []string) error {
	if hz != 0 {
		runtime.LockOSThread() // whose event the child inherits
		e, err := perf.Lookup(perf.ClockEvent)
		if err != nil {
			return err
		}
		if err := perf.OpenBare(e, perf.Rate{Frequency: hz}); err != nil {
			return err
		}
	}
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

// round has the times of the runs of a round: alone, with the bare event, and under ccagent
// with each set of flags.
type round struct {
	Program string
	Flags   []string
	Alone   times
	Bare    times
	With    []times
	Agent   []time.Duration // CPU time of ccagent, all of it
}

func compare(o *options) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "overhead-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file, err := os.OpenFile(o.out, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	out := filepath.Join(dir, "times")
	measure := func(flags ...string) []string {
		return append(append([]string{self, "-measure", out}, flags...), o.argv...)
	}
	commands := [][]string{measure(), measure("-event", fmt.Sprint(o.hz))}
	for _, flags := range o.flags {
		record := append([]string{o.ccagent, "record", "--quiet", "-o", filepath.Join(dir, "log")}, strings.Fields(flags)...)
		commands = append(commands, append(append(record, "--"), measure()...))
	}
	for i := range o.rounds {
		r := round{Program: strings.Join(append([]string{filepath.Base(o.argv[0])}, o.argv[1:]...), " "), Flags: o.flags,
			With: make([]times, len(o.flags)), Agent: make([]time.Duration, len(o.flags))}
		// Each command is first in turn, and the order is reversed every other round, so
		// that drift cancels out.
		for k := range commands {
			which := (i/2 + k) % len(commands)
			if i%2 == 1 {
				which = len(commands) - 1 - which
			}
			t, total, err := timed(commands[which], out)
			if err != nil {
				return err
			}
			switch which {
			case 0:
				r.Alone = t
			case 1:
				r.Bare = t
			default:
				r.With[which-2], r.Agent[which-2] = t, total-t.CPU
			}
		}
		if err := json.NewEncoder(file).Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// timed runs a command that writes the program's times to out. total is the CPU time of all
// its processes.
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
