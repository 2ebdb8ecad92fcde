package main

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"

	"ccagent/agent"
	"ccagent/agent/daemon/control"
	"ccagent/internal/buildinfo"
	"ccagent/profile"
	"ccagent/ui/printer"
	"ccagent/ui/screen/dump"
)

func threadsCommand() *cobra.Command {
	var (
		opts    agent.Options
		noEmbed bool
		format  string
		asJSON  bool
		quiet   bool
		daemon  bool
		socket  string
		stood   bool
		top     int
	)
	cmd := &cobra.Command{
		Use:   "threads [flags] PID",
		Short: "what every Haskell thread of a process does, and who waits for whom",
		Long: `Reads what every Haskell thread of a running process does: its state, what it
waits for, its stack with sources; which threads wait for each other, deadlocks
and convoys. Threads that do the same are listed together.

The process is read while it runs. OS threads that run at that moment are stopped
while memory is copied: for 4 ms, and until all have stopped and can go on, which
takes tens of milliseconds where they wait for a CPU. The first line says for how
long they stood.

With --daemon the running daemon reads them, and a process may be named by its
service: users who may ask the daemon need no sudo for processes of their own.
It reads those of one process once a second, or less often where that stops it.`,
		Example: `  sudo ccagent threads 4711
  ccagent threads --daemon api
  ccagent threads --daemon -o api.eventlog 4711`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("threads: name one process: ccagent threads PID")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if asJSON {
				format = "json"
			}
			if err := checkFormat(format); err != nil {
				return err
			}
			show := func(p *profile.Profile) error {
				if quiet {
					return nil
				}
				o := dumpPrinter(p, top)
				if cmd.Flags().Changed("top") && top == 0 {
					o.Top = -1
				}
				r := dump.Report{Profile: p}
				if format == "json" {
					return r.JSON(stdout, o)
				}
				return r.Text(stdout, o)
			}
			switch {
			case quiet && opts.Output == "":
				return errors.New("threads: --quiet prints nothing: keep the dump with -o FILE")
			case (daemon || cmd.Flags().Changed("socket")) && opts.User != "":
				return errors.New("threads: the daemon asks the kernel who you are: leave out --user")
			case daemon || cmd.Flags().Changed("socket"):
				r := control.Request{Command: control.CommandThreads, NoSource: noEmbed || opts.Output == "", NoArgs: opts.NoArgs, NoLabels: opts.NoLabels}
				r.PID, r.Service = pidOrService(args[0])
				return daemonThreads(socket, r, opts.Output, show)
			}
			var err error
			if opts.PID, err = strconv.Atoi(args[0]); err != nil || opts.PID <= 0 {
				return fmt.Errorf("threads: %q is not a process id; by its service, the daemon finds it (--daemon)", args[0])
			}
			opts.EmbedSource = !noEmbed
			opts.AgentVersion = buildinfo.Version()
			opts.Warn = func(line string) { say("%s", line) }
			ctx, stop := signal.NotifyContext(cmd.Context(), endSignals...)
			defer stop()
			attended.Store(true)
			keep := opts.Output != ""
			if !keep {
				dir, remove, err := scratch(opts.User)
				if err != nil {
					return err
				}
				defer remove()
				opts.Output = filepath.Join(dir, "threads.eventlog")
			}
			sum, err := agent.Threads(ctx, opts)
			if err != nil {
				return err
			}
			for _, p := range sum.SymbolProblems {
				say("symbols: %s", p)
			}
			if stood {
				fmt.Fprintln(cmd.OutOrStdout(), sum.Stood)
			}
			if quiet { // and nothing is read back
				return nil
			}
			p, err := profile.Open(opts.Output, nil)
			if err != nil {
				return fmt.Errorf("read back the dump: %w", err)
			}
			if err := show(p); err != nil {
				return err
			}
			if keep {
				say("%s", sum.Log)
			}
			return nil
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&opts.Output, "output", "o", "", "keep the dump as a log in `FILE`, which ccview shows")
	formatFlag(cmd, &format)
	fs.BoolVar(&asJSON, "json", false, "the same as --format json")
	fs.IntVar(&top, "top", 0, "groups of threads and queues to print; 0 prints all, with whole stacks (default: what a page holds)")
	fs.BoolVar(&quiet, "quiet", false, "print nothing: with -o")
	fs.BoolVar(&daemon, "daemon", false, "have the running daemon read them, of a PID or SERVICE that it samples")
	socketFlag(cmd, &socket)
	stoodFlag(cmd, &stood)
	fs.BoolVar(&noEmbed, "no-embed-source", false, "leave the text of source files out of the log")
	fs.BoolVar(&opts.NoArgs, "no-args", false, "leave the program's arguments out of the log")
	fs.BoolVar(&opts.NoLabels, "no-labels", false, "leave out what the program calls its threads")
	fs.StringVar(&opts.User, "user", "", "trace, and own the log, as user `NAME` instead of the invoking one")
	return cmd
}

// dumpPrinter is how a dump is printed on standard output.
func dumpPrinter(p *profile.Profile, top int) printer.Options {
	o := printer.Options{File: filepath.Base(p.Capture.Program), Top: top}
	if f, ok := stdout.Terminal(); ok {
		if width, _, err := term.GetSize(f.Fd()); err == nil {
			o.Width = width
		}
		_, plain := os.LookupEnv("NO_COLOR")
		if o.Color = !plain && os.Getenv("TERM") != "dumb"; o.Color {
			stdout.AllowStyles()
		}
	}
	return o
}
