// Command host measures the daemon on a host's worth of Haskell processes, and what it costs
// servers, by runs in turns with and without it.
//
//	host [-minutes N] [-rounds N] [-processes N] [-busy SHARE] [-keep DIR] -programs DIR -root RELEASE=DIR… -collector OTELCOL CCAGENT
//
// DIR has RELEASE/host/NAME and RELEASE/container/NAME of each program; the first runs on the host, the
// other in a PID and mount namespace with the release's root. Each process has a control group
// that limits its CPU time, so that the host is neither idle nor full. The command needs root and control
// groups of either version.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

type options struct {
	minutes   float64
	rounds    int
	processes int
	busy      float64 // share of the host's CPUs that the processes may use together
	programs  string
	roots     map[string]string
	collector string
	ccagent   string
	keep      string
}

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "host:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	o := options{roots: map[string]string{}}
	fs := flag.NewFlagSet("host", flag.ContinueOnError)
	fs.Float64Var(&o.minutes, "minutes", 10, "for how long the host is measured")
	fs.IntVar(&o.rounds, "rounds", 12, "pairs of runs of each server; 0 for none")
	fs.IntVar(&o.processes, "processes", 50, "how many processes run")
	fs.Float64Var(&o.busy, "busy", 0.6, "the share of the host's CPUs that they may use")
	fs.StringVar(&o.programs, "programs", "", "the folder of programs, by release and place")
	fs.Func("root", "a release's own root, RELEASE=DIR; may be repeated", func(s string) error {
		release, dir, ok := strings.Cut(s, "=")
		if !ok {
			return errors.New("RELEASE=DIR is expected")
		}
		o.roots[release] = dir
		return nil
	})
	fs.StringVar(&o.collector, "collector", "", "OpenTelemetry's collector, of internal/engines")
	fs.StringVar(&o.keep, "keep", "", "keep what is written in this folder, which is made; pieces are in its state")
	if err := fs.Parse(args); err != nil {
		return err
	}
	if fs.NArg() != 1 || o.programs == "" || o.collector == "" || len(o.roots) == 0 {
		return errors.New("usage: host [-minutes N] [-rounds N] -programs DIR -root RELEASE=DIR… -collector OTELCOL CCAGENT")
	}
	o.ccagent = fs.Arg(0)
	for _, path := range []*string{&o.ccagent, &o.programs, &o.collector, &o.keep} {
		if *path == "" {
			continue
		}
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return err
		}
	}
	if o.minutes > 0 {
		if err := measureHost(&o, time.Duration(o.minutes*float64(time.Minute))); err != nil {
			return err
		}
	}
	if o.rounds > 0 {
		return measureServers(&o)
	}
	return nil
}
