package main

import (
	"errors"
	"fmt"
	"os/signal"
	"strconv"
	"time"

	"ccagent/agent"
	"ccagent/agent/census"
	"ccagent/agent/config"
	"ccagent/agent/daemon/control"
	"ccagent/agent/discovery"
	"ccagent/eventlog"
	"ccagent/internal/buildinfo"
	"ccagent/internal/format"

	"github.com/spf13/cobra"
)

func heapCommand() *cobra.Command {
	o := agent.HeapOptions{Options: agent.Options{AgentVersion: buildinfo.Version(), Warn: func(line string) { say("%s", line) }}}
	var (
		memory  string
		noEmbed bool
		daemon  bool
		socket  string
		stood   bool
	)
	cmd := &cobra.Command{
		Use:   "heap [flags] PID",
		Short: "count what is live in the heap of a running process, by closure",
		Long: `Count what is live in the heap of a running process, by closure type and
constructor, as +RTS -hT does of a program that was started so. The process is
stopped for a moment at the end of its next major collection, and runs on. One that
makes none in --wait is stopped where it is, and garbage is counted too. What a
thread holds that runs Haskell code at that moment, --graph finds by its registers and
its stack, on x86-64 only. Which of their words are pointers is not known: garbage to which one leads
by chance counts as held. With --wait 60s there may be a collection.

What was found is a log with a heap profile of one census: ccview heap FILE shows
it, and so do tools that read eventlogs. Nothing of what closures hold is in it.

With --daemon the running daemon counts it, and a process may be named by its
service: users who may ask the daemon need no sudo for processes of their own. It
looks into one process once a second, or less often where that stops it.`,
		Example: `  sudo ccagent heap 4711
  sudo ccagent heap --graph --max-pause 0 4711
  ccagent heap --daemon -o api.heap.eventlog api`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("heap: name one process: ccagent heap PID")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.Wait < 0 || o.MaxPause < 0 {
				return errors.New("heap: --wait and --max-pause must not be negative")
			}
			if daemon || cmd.Flags().Changed("socket") {
				switch {
				case o.User != "":
					return errors.New("heap: the daemon asks the kernel who you are: leave out --user")
				case o.Graph:
					return errors.New("heap: the daemon has no room for a copy of the whole heap, which --graph takes: leave out --daemon")
				}
				pause := o.MaxPause.Seconds()
				r := control.Request{Command: control.CommandHeap, MaxPause: &pause, Wait: o.Wait.Seconds(), NoSource: noEmbed, NoArgs: o.NoArgs, NoLabels: o.NoLabels}
				r.PID, r.Service = pidOrService(args[0])
				if o.Output == "" {
					o.Output = discovery.Clean(args[0]) + ".heap.eventlog"
				}
				return daemonHeap(socket, r, o.Output)
			}
			var err error
			if o.PID, err = strconv.Atoi(args[0]); err != nil || o.PID <= 0 {
				return fmt.Errorf("heap: %q is not a process id; by its service, the daemon finds it (--daemon)", args[0])
			}
			if o.GraphMemory, err = config.ParseSize(memory); err != nil {
				return fmt.Errorf("--graph-memory: %w", err)
			}
			o.EmbedSource = !noEmbed
			ctx, stop := signal.NotifyContext(cmd.Context(), endSignals...)
			defer stop()
			attended.Store(true)
			sum, err := agent.Heap(ctx, o)
			if err != nil {
				return err
			}
			if stood {
				fmt.Fprintln(cmd.OutOrStdout(), sum.Stops.Sum)
			}
			say("%s", heapLine(sum))
			if g := sum.Graph; g != nil {
				say("%s", graphLine(g))
			}
			for _, p := range sum.SymbolProblems {
				say("symbols: %s", p)
			}
			say("%s", sum.Log)
			return nil
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&o.Output, "output", "o", "", "write the log to `FILE` (default PROG.PID.eventlog; by the daemon PID.heap.eventlog or SERVICE.heap.eventlog)")
	fs.DurationVar(&o.Wait, "wait", 2*time.Second, "wait `D` for a major collection; of a process that makes none the heap is counted as it is, garbage included")
	fs.DurationVar(&o.MaxPause, "max-pause", defaultMaxPause, "stop the process for about `D` at the most: of a larger heap, the oldest generation is read while the process runs, or a random part of it, and bands have intervals. 0 is no bound, and exact")
	fs.BoolVar(&o.Graph, "graph", false, "follow pointers too: what keeps what alive (ccview heap FILE --retained, --path)")
	fs.StringVar(&memory, "graph-memory", "1GB", "memory `SIZE` that --graph may take for a copy of the heap, and as much for the analysis")
	fs.BoolVar(&daemon, "daemon", false, "have the running daemon count it, of a PID or SERVICE that it samples")
	socketFlag(cmd, &socket)
	stoodFlag(cmd, &stood)
	fs.BoolVar(&noEmbed, "no-embed-source", false, "leave the text of source files out of the log")
	fs.BoolVar(&o.NoLabels, "no-labels", false, "leave out what the program calls its threads")
	fs.BoolVar(&o.NoArgs, "no-args", false, "leave the program's arguments out of the log")
	fs.StringVar(&o.User, "user", "", "trace, and own the log as user `NAME` instead of the invoking one")
	return cmd
}

// defaultMaxPause is for how long a census may stop a program: less than most collections do.
const defaultMaxPause = 5 * time.Millisecond

// graphLine says what was found of pointers.
func graphLine(g *eventlog.HeapGraph) string {
	line := fmt.Sprintf("%s with %s, reached from %s, %s, %d stable and %s",
		format.Plural(g.Closures, "closure"), format.Plural(g.Pointers, "pointer"), format.Plural(g.CAFs, "CAF"), format.Plural(g.Threads, "thread"),
		g.StablePtrs, format.Plural(g.Weaks, "weak pointer"))
	if g.Unreached > 0 {
		line += fmt.Sprintf("; %s were reached from none of these", bytesAmount(int64(g.UnreachedBytes)))
		if g.AtRest && !g.Complete {
			line += ": a thread ran, its registers did not tell what it holds, and what it alone does counts as unreached. --wait 60s waits longer for a major collection, where all is known"
		}
	}
	switch {
	case !g.StuckKnown:
	case g.Stuck == 1:
		line += "; 1 thread waits for what nothing else can reach: ccview heap --retained names it"
	case g.Stuck > 1:
		line += fmt.Sprintf("; %d threads wait for what nothing else can reach: ccview heap --retained names them", g.Stuck)
	}
	return line
}

// stopsText says for how long a program stood.
func stopsText(s census.Stops) string {
	if s.Number == 0 {
		return "not stopped, as it is frozen"
	}
	if s.Number <= 1 {
		return fmt.Sprintf("stopped for %.1f ms", s.Longest.Seconds()*1e3)
	}
	return fmt.Sprintf("stopped %d times, for %.1f ms at the longest and %.1f ms altogether", s.Number, s.Longest.Seconds()*1e3, s.Sum.Seconds()*1e3)
}

// heapLine says what a census has found.
func heapLine(s *agent.HeapSummary) string {
	how := map[census.Manner]string{
		census.Exact:  "at the end of a major collection",
		census.Beside: "at the end of a major collection; the oldest generation was copied while it ran on",
	}[s.Manner]
	if s.AtRest {
		how = map[census.Manner]string{
			census.Exact:  "at rest, garbage included",
			census.Beside: "at rest, garbage included; the oldest generation was copied while it ran on",
		}[s.Manner]
	}
	if s.Bands == 0 {
		return "closures were not counted; " + stopsText(s.Stops)
	}
	line := fmt.Sprintf("%s in %d bands, %s; %s", bytesAmount(int64(s.Bytes)), s.Bands, how, stopsText(s.Stops))
	if d := s.Draw; d != nil {
		line += fmt.Sprintf("; estimated by a random %d of %d megablocks, with intervals", d.Drawn, d.Megablocks)
	}
	if s.Pinned > 0 {
		line += fmt.Sprintf("; %s of it are whole blocks of pinned byte arrays", bytesAmount(int64(s.Pinned)))
	}
	if s.Slop > 0 {
		line += fmt.Sprintf("; %s more were left behind by closures that have shrunk", bytesAmount(int64(s.Slop)))
	}
	return line
}
