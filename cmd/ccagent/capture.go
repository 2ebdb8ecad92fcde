package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"ccagent/agent"
	"ccagent/agent/config"
	"ccagent/agent/invoker"
	"ccagent/internal/buildinfo"
	"ccagent/perf"
	"ccagent/profile/compat"
	"ccagent/symbolize/debuginfod"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// captureFlags are the flags that record and attach share.
type captureFlags struct {
	output          string
	events          string
	frequency       frequency
	period          uint64
	duration        time.Duration
	kernel          bool
	noEmbedSource   bool
	noArgs          bool
	noLabels        bool
	live            bool
	rotate          string
	keep            int
	maxFrames       int
	user            string
	quiet           bool
	compat          string
	debuginfod      []string
	symbolizeMemory string
	symbolizeTime   time.Duration
	maxOverhead     float64
	maxPause        time.Duration
	changed         func(flag string) bool
}

func (f *captureFlags) register(cmd *cobra.Command) {
	fs := cmd.Flags()
	f.changed = fs.Changed
	fs.StringVarP(&f.output, "output", "o", "", "write the log to `FILE` (default PROG.PID.eventlog; PROG.PID-2.eventlog while another capture writes that one)")
	fs.StringVarP(&f.events, "event", "e", "cycles,alloc,gc,threads", "sample these `EVENTS`, separated by commas (ccagent events lists them)")
	fs.VarP(&f.frequency, "frequency", "F", "samples a second of each event, in `HZ`; auto: 241, 487 or 997, by what an interrupt costs here")
	fs.Uint64VarP(&f.period, "count", "c", 0, "sample every `PERIOD` counts instead of by frequency")
	fs.DurationVar(&f.duration, "duration", 0, "end the capture after `D` (such as 5s)")
	fs.Float64Var(&f.maxOverhead, "max-overhead", 1, "take at most `PCT` per cent of the program's CPU time over captures of ten seconds and longer, by sampling less often; a shorter one may take 25 ms more at its start. 0 keeps the rates as they are, and so does -F or -c without this flag")
	fs.DurationVar(&f.maxPause, "max-pause", defaultMaxPause, "with -e heap: stop the program for about `D` at the most at a census; of a larger heap, the oldest generation is copied while the program runs. 0 is no bound, and exact")
	fs.BoolVar(&f.kernel, "kernel", false, "record the kernel's frames of samples that hit there")
	fs.BoolVar(&f.noEmbedSource, "no-embed-source", false, "leave the text of source files out of the log")
	fs.BoolVar(&f.noArgs, "no-args", false, "leave the program's arguments out of the log")
	fs.BoolVar(&f.noLabels, "no-labels", false, "leave out of the log what the program calls its threads")
	fs.BoolVar(&f.live, "live", false, "look names up and write them while the capture runs, for ccview --follow")
	fs.StringVar(&f.rotate, "rotate", "", "begin a new log when one has reached `SIZE` (such as 256MB)")
	fs.IntVar(&f.keep, "keep", 0, "with --rotate: keep the last `N` logs (default: all)")
	fs.StringVar(&f.compat, "compat", "", "when the capture has ended, add the events that `TOOL` looks for: "+strings.Join(compat.Names(), ", "))
	fs.IntVar(&f.maxFrames, "max-frames", 128, "record at most `N` frames of a stack")
	fs.StringVar(&f.user, "user", "", "run, or trace, and own the log as user `NAME` instead of the invoking one")
	fs.BoolVar(&f.quiet, "quiet", false, "print no summary")
	registerDebuginfod(fs, &f.debuginfod)
	fs.StringVar(&f.symbolizeMemory, "symbolize-memory", "512MB", "memory `SIZE` that finding names may take")
	fs.DurationVar(&f.symbolizeTime, "symbolize-time", 2*time.Minute, "time `D` that finding names may take")
	// Our options end at the program's name; what follows is the program's.
	fs.SetInterspersed(false)
	cmd.MarkFlagsMutuallyExclusive("frequency", "count")
}

func (f *captureFlags) options() (agent.Options, error) {
	if err := checkCompat(f.compat); err != nil {
		return agent.Options{}, err
	}
	memory, err := config.ParseSize(f.symbolizeMemory)
	if err != nil {
		return agent.Options{}, fmt.Errorf("--symbolize-memory: %w", err)
	}
	servers, err := debuginfod.Parse(f.debuginfod)
	if err != nil {
		return agent.Options{}, fmt.Errorf("--debuginfod: %w", err)
	}
	rate := perf.Rate{Frequency: uint64(f.frequency)}
	if f.period != 0 {
		rate = perf.Rate{Period: f.period}
	}
	if f.duration < 0 {
		return agent.Options{}, fmt.Errorf("--duration %v is negative", f.duration)
	}
	if !(f.maxOverhead >= 0 && f.maxOverhead <= 100) {
		return agent.Options{}, fmt.Errorf("--max-overhead %v: give per cent of the program's CPU time, or 0 for no limit", f.maxOverhead)
	}
	if f.maxPause < 0 {
		return agent.Options{}, fmt.Errorf("--max-pause %v is negative", f.maxPause)
	}
	events := perf.SplitNames(f.events)
	for _, e := range events {
		if e == "" {
			return agent.Options{}, fmt.Errorf("-e %q: an event's name is empty", f.events)
		}
	}
	var rotate uint64
	if f.rotate != "" {
		if rotate, err = config.ParseSize(f.rotate); err != nil {
			return agent.Options{}, fmt.Errorf("--rotate: %w", err)
		}
	}
	switch {
	case f.keep < 0:
		return agent.Options{}, fmt.Errorf("--keep %d: a number of logs, or 0 for all", f.keep)
	case f.live && rotate != 0:
		return agent.Options{}, errors.New("--live writes names once, and each log of --rotate needs them all: choose one")
	case f.keep > 0 && rotate == 0:
		return agent.Options{}, errors.New("--keep is for --rotate SIZE: without it there is one log")
	}
	return agent.Options{
		Rotate:          rotate,
		Keep:            f.keep,
		Output:          f.output,
		Events:          events,
		Rate:            rate,
		Duration:        f.duration,
		KernelStacks:    f.kernel,
		MaxOverhead:     f.maxOverhead / 100,
		MaxPause:        f.maxPause,
		KeepRate:        rate != perf.Rate{} && !f.changed("max-overhead"),
		EmbedSource:     !f.noEmbedSource,
		NoArgs:          f.noArgs,
		NoLabels:        f.noLabels,
		Live:            f.live,
		MaxFrames:       f.maxFrames,
		User:            f.user,
		Debuginfod:      servers,
		SymbolizeMemory: memory,
		SymbolizeTime:   f.symbolizeTime,
		AgentVersion:    buildinfo.Version(),
		Warn:            func(line string) { say("%s", line) },
	}, nil
}

func recordCommand() *cobra.Command {
	var flags captureFlags
	cmd := &cobra.Command{
		Use:   "record [flags] -- PROG [ARG…]",
		Short: "run a program as the invoking user and profile it until it ends",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("record: name the program to run: ccagent record -- PROG [ARG…]")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := flags.options()
			if err != nil {
				return err
			}
			opts.Program = args
			return runCapture(cmd.Context(), opts, &flags)
		},
	}
	flags.register(cmd)
	return cmd
}

func attachCommand() *cobra.Command {
	var flags captureFlags
	cmd := &cobra.Command{
		Use:   "attach [flags] PID",
		Short: "profile a running process until it ends, --duration passes, or ctrl-c",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("attach: name one process: ccagent attach PID")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			opts, err := flags.options()
			if err != nil {
				return err
			}
			if opts.PID, err = strconv.Atoi(args[0]); err != nil || opts.PID <= 0 {
				return fmt.Errorf("attach: %q is not a process id", args[0])
			}
			return runCapture(cmd.Context(), opts, &flags)
		},
	}
	flags.register(cmd)
	return cmd
}

// runCapture runs the capture and prints its result.
func runCapture(ctx context.Context, opts agent.Options, flags *captureFlags) error {
	ctx, in := interrupts(ctx, len(opts.Program) > 0)
	defer in.done()
	opts.Finishing = func() { in.finishing.Store(true) }
	if flags.compat != "" {
		opts.Derive = func(ctx context.Context, log *invoker.Log) error {
			return addCompat(ctx, log, flags.compat, flags.symbolizeTime)
		}
	}
	printed := false
	opts.Waiting = func(sum *agent.Summary, err error) {
		if !flags.quiet {
			printSummary(stderr, sum)
			printed = true
		}
		if err == nil && !in.finishing.Load() {
			say("recorded for %v, as --duration asks; the program runs on unobserved, and ccagent waits for its end", opts.Duration)
		}
	}
	sum, err := agent.Run(ctx, in.stop, opts)
	if sum == nil {
		return err
	}
	if !flags.quiet && !printed {
		printSummary(stderr, sum)
	}
	switch {
	case err != nil:
		return err
	case sum.Samples == 0 && len(sum.Events) == 0:
		if len(sum.Heap) > 0 && censuses(sum) == 0 && len(sum.Probes) == 0 && !sum.HaveStatus {
			for _, h := range sum.Heap {
				for _, text := range seriesLines(h, sum.Wall) {
					if flags.quiet { // else the summary has it
						say("%s", text)
					}
				}
			}
			return exitStatus(exitFailed)
		}
	case sum.Samples == 0:
		say("no sample was taken: %s", whyNoSample(sum))
		if !sum.HaveStatus && !watched(sum) {
			return exitStatus(exitFailed)
		}
	}
	if sum.HaveStatus && sum.Status != 0 {
		return exitStatus(sum.Status)
	}
	return nil
}

// interruption is the effect of signals on a capture.
type interruption struct {
	stop      chan struct{} // closed to end the capture
	finishing atomic.Bool   // the capture has ended; its log is being finished
	done      func()        // stops handling signals
}

// interrupts turns the user's first signal into the end of a capture, and a second one into
// its abortion. A recorded program gets the first signal itself, so that it can end; after
// its end every signal is for the agent.
func interrupts(ctx context.Context, recording bool) (context.Context, *interruption) {
	ctx, abort := context.WithCancel(ctx)
	in := &interruption{stop: make(chan struct{})}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, endSignals...)
	attended.Store(true)
	go func() {
		left := 1
		if recording {
			left = 2
		}
		for s := range signals {
			if in.finishing.Load() && (s != unix.SIGINT || !recording) {
				abort()
			}
			if recording && s != unix.SIGINT {
				continue // the program handles it
			}
			left--
			switch {
			case left == 0:
				close(in.stop)
			case left < 0:
				abort()
			}
		}
	}()
	in.done = func() {
		signal.Stop(signals)
		close(signals)
		abort()
	}
	return ctx, in
}
