// Command startend measures what a capture takes before its program's first instruction and
// after its last, by runs of one or more builds of ccagent in turns.
//
//	startend [-rounds N] [-empty DIR] [-flags "…"] -agent CCAGENT… MARKS.so PROG [ARG…]
//
// MARKS.so is marks/marks.c of this folder, which is preloaded into the program. The command needs
// root and a control group of version 2, in which it makes a group for each run. It prints
// the medians over the rounds: milliseconds by the clock and of CPU time (user + system, all
// of ccagent's processes, without the program's own) before, between and after.
package main

import (
	"bufio"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

type options struct {
	rounds int
	empty  string
	agents []string
	flags  []string
	marks  string
	argv   []string
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "startend:", err)
		os.Exit(1)
	}
}

func run(args []string, stdout io.Writer) error {
	var o options
	fs := flag.NewFlagSet("startend", flag.ContinueOnError)
	fs.IntVar(&o.rounds, "rounds", 7, "rounds of runs")
	fs.StringVar(&o.empty, "empty", "", "remove this folder, ccagent's cache, before each run")
	fs.Func("agent", "a build of ccagent; may be repeated", func(s string) error {
		o.agents = append(o.agents, s)
		return nil
	})
	fs.Func("flags", "flags for ccagent record, separated by spaces", func(s string) error {
		o.flags = strings.Fields(s)
		return nil
	})
	if err := fs.Parse(args); err != nil {
		return err
	}
	if len(o.agents) == 0 || fs.NArg() < 2 {
		return errors.New("usage: startend [-rounds N] [-empty DIR] [-flags \"…\"] -agent CCAGENT… MARKS.so PROG [ARG…]")
	}
	var err error
	if o.marks, err = filepath.Abs(fs.Arg(0)); err != nil {
		return err
	}
	o.argv = fs.Args()[1:]
	return compare(&o, stdout)
}

// cost is what one part of a capture took.
type cost struct{ wall, user, system time.Duration }

// parts are a capture's: until the program's first instruction, until its last, and after.
type parts [3]cost

func compare(o *options, stdout io.Writer) error {
	dir, err := os.MkdirTemp("", "startend-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	runs := make([][]parts, len(o.agents))
	for round := range o.rounds + 1 {
		for i := range o.agents {
			i = (i + round) % len(o.agents)
			if o.empty != "" {
				if err := os.RemoveAll(o.empty); err != nil {
					return err
				}
			}
			p, err := measure(o, o.agents[i], dir)
			if err != nil {
				return fmt.Errorf("%s: %w", o.agents[i], err)
			}
			if round > 0 { // the first brings files into the page cache
				runs[i] = append(runs[i], p)
			}
		}
	}
	for i, agent := range o.agents {
		report(stdout, agent, runs[i])
	}
	return nil
}

// measure runs the program once under a build of ccagent.
func measure(o *options, agent, dir string) (p parts, err error) {
	group, err := makeGroup()
	if err != nil {
		return p, err
	}
	defer func() { err = errors.Join(err, os.Remove(group.Name())) }()
	defer group.Close()
	marks := filepath.Join(dir, "marks")
	_ = os.Remove(marks)
	log := filepath.Join(dir, "run.eventlog")
	args := append([]string{"record", "--quiet", "-o", log}, o.flags...)
	cmd := exec.Command(agent, append(append(args, "--"), o.argv...)...)
	stat := filepath.Join(group.Name(), "cpu.stat")
	cmd.Env = append(os.Environ(), "LD_PRELOAD="+o.marks, "MARKS="+marks, "MARKS_CPU="+stat)
	cmd.SysProcAttr = &syscall.SysProcAttr{UseCgroupFD: true, CgroupFD: int(group.Fd())}
	var stderr strings.Builder
	cmd.Stderr = &stderr
	begin := now()
	if err := cmd.Run(); err != nil {
		return p, fmt.Errorf("%w\n%s", err, stderr.String())
	}
	end := now()
	all, err := usage(stat)
	if err != nil {
		return p, err
	}
	first, last, err := readMarks(marks)
	if err != nil {
		return p, err
	}
	moments := []moment{{wall: begin}, first, last, {wall: end, ownUser: last.ownUser, ownSystem: last.ownSystem, user: all.user, system: all.system}}
	for i := range p {
		a, b := moments[i], moments[i+1]
		micro := func(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
		p[i] = cost{micro(b.wall - a.wall), micro(b.user - a.user - (b.ownUser - a.ownUser)), micro(b.system - a.system - (b.ownSystem - a.ownSystem))}
	}
	return p, nil
}

// moment is a line of marks.c's, in microseconds: the clock; the program's CPU time; its group's.
type moment struct{ wall, ownUser, ownSystem, user, system int64 }

func readMarks(path string) (first, last moment, err error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return first, last, err
	}
	found := map[string]moment{}
	for line := range strings.Lines(string(b)) {
		var name string
		var m moment
		if _, err := fmt.Sscan(line, &name, &m.wall, &m.ownUser, &m.ownSystem, &m.user, &m.system); err != nil {
			return first, last, fmt.Errorf("read marks: %w", err)
		}
		found[name] = m
	}
	if len(found) != 2 {
		return first, last, fmt.Errorf("the program left these marks: %s", b)
	}
	return found["begin"], found["end"], nil
}

func usage(path string) (m moment, err error) {
	f, err := os.Open(path)
	if err != nil {
		return m, err
	}
	defer f.Close()
	s := bufio.NewScanner(f)
	for s.Scan() {
		var name string
		var n int64
		if _, err := fmt.Sscan(s.Text(), &name, &n); err != nil {
			return m, err
		}
		switch name {
		case "user_usec":
			m.user = n
		case "system_usec":
			m.system = n
		}
	}
	return m, s.Err()
}

// makeGroup makes a control group for a run.
func makeGroup() (*os.File, error) {
	mounts, err := os.ReadFile("/proc/mounts")
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[2] != "cgroup2" {
			continue
		}
		dir, err := os.MkdirTemp(fields[1], "startend-")
		if err != nil {
			return nil, err
		}
		return os.Open(dir)
	}
	return nil, errors.New("no control groups of version 2 are mounted")
}

// now is the clock that marks.c reads, in microseconds.
func now() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano() / 1000
}

func report(w io.Writer, agent string, runs []parts) {
	fmt.Fprintf(w, "%s, medians of %d runs (lowest), ms\n", agent, len(runs))
	fmt.Fprintf(w, "  %-8s %16s %16s %16s %16s\n", "", "clock", "CPU", "user", "system")
	show := func(name string, of func(parts) cost) {
		fmt.Fprintf(w, "  %-8s", name)
		for _, value := range []func(cost) time.Duration{
			func(c cost) time.Duration { return c.wall }, func(c cost) time.Duration { return c.user + c.system },
			func(c cost) time.Duration { return c.user }, func(c cost) time.Duration { return c.system },
		} {
			var all []float64
			for _, r := range runs {
				all = append(all, float64(value(of(r)).Microseconds())/1000)
			}
			slices.Sort(all)
			fmt.Fprintf(w, "   %6.0f (%5.0f)", all[len(all)/2], all[0])
		}
		fmt.Fprintln(w)
	}
	for i, name := range []string{"start", "run", "end"} {
		show(name, func(p parts) cost { return p[i] })
	}
	show("all", func(p parts) (sum cost) {
		for _, c := range p {
			sum.wall, sum.user, sum.system = sum.wall+c.wall, sum.user+c.user, sum.system+c.system
		}
		return sum
	})
}
