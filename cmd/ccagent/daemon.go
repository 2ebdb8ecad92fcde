package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"ccagent/agent/config"
	"ccagent/agent/daemon"
	"ccagent/agent/daemon/control"
	"ccagent/agent/discovery"
	"ccagent/agent/invoker"
	"ccagent/agent/overhead"
	"ccagent/eventlog"
	"ccagent/internal/buildinfo"
	"ccagent/internal/printable"
	"ccagent/profile"
	"ccagent/profile/rewrite"
	"ccagent/ui/printer"

	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

func daemonCommand() *cobra.Command {
	o := daemon.Options{Version: buildinfo.Version()}
	var check bool
	cmd := &cobra.Command{
		Use:   "daemon",
		Short: "profile every Haskell process of the host, all the time",
		Long: `Profile every Haskell process of the host, all the time, in the foreground.

Each process has a log in pieces below the state folder, in SERVICE/PID-START.eventlog;
the oldest are removed. ccagent ps lists what is sampled, ccagent snapshot gives the
last minutes of a process or service as one log, and ccview shows it.

SIGHUP, or ccagent reload, has the configuration read again.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check {
				if _, err := daemon.Check(o.Config); err != nil {
					return err
				}
				fmt.Fprintf(cmd.OutOrStdout(), "%s is right\n", o.Config)
				return nil
			}
			return runDaemon(cmd.Context(), o)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&o.Config, "config", config.Path, "the configuration `FILE`")
	fs.StringVar(&o.StateDir, "state-dir", "/var/lib/ccagent", "keep logs below `DIR`")
	fs.StringVar(&o.Socket, "socket", control.Path, "answer requests at `PATH`")
	fs.BoolVar(&check, "check", false, "check the configuration, and do nothing else")
	return cmd
}

// daemonGC is how much garbage the daemon's heap may have, in percent of what is in use.
const daemonGC = 50

func runDaemon(ctx context.Context, o daemon.Options) error {
	if os.Geteuid() != 0 {
		return errors.New("the daemon profiles processes of all users: run it as root")
	}
	o.Log = func(line string) { say("%s", line) }
	if err := overhead.Relax(); err != nil {
		o.Log(fmt.Sprintf("timers stay as exact as they are, which takes CPU time: %v", err))
	}
	// It has little to do at a time, ten times a second: with more CPUs Go's scheduler wakes further threads each
	// time to look for work that is not there, which took as much as the work.
	runtime.GOMAXPROCS(1)
	// Its memory is at its peak when a host's programs are read for the first time, half of it garbage: what more often looking
	// for that takes later is little, as there is little garbage.
	debug.SetGCPercent(daemonGC)
	c, err := config.Load(o.Config)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.StateDir, 0o700); err != nil {
		return fmt.Errorf("open the folder of logs: %w", err)
	}
	send, err := newSender(&c.Daemon, o.StateDir)
	if err != nil {
		return err
	}
	defer send.stop()
	o.Closed, o.Engines, o.Dump = send.add, send.engines, dumpBeside
	o.Ready = func() {
		say("profiling; requests are answered at %s", o.Socket)
		send.start() // no other daemon has the folder
	}
	ctx, stop := signal.NotifyContext(ctx, unix.SIGINT, unix.SIGTERM, unix.SIGQUIT)
	defer stop()
	attended.Store(true)
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, unix.SIGHUP)
	defer signal.Stop(hangup)
	return daemon.Run(ctx, hangup, o)
}

// ask asks the daemon on behalf of the invoker: who may use ccagent by sudo sees no more by that.
func ask(socket string, r control.Request) (control.Answer, []*os.File, error) {
	who, err := invoker.Find("")
	if err != nil {
		return control.Answer{}, nil, err
	}
	if who.UID != uint32(os.Geteuid()) {
		r.AsUID = &who.UID
	}
	return control.Ask(socket, r)
}

// socketFlag has a command ask the daemon at a socket.
func socketFlag(cmd *cobra.Command, socket *string) {
	cmd.Flags().StringVar(socket, "socket", control.Path, "ask the daemon at `PATH`")
}

func psCommand() *cobra.Command {
	var socket, format string
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "list the Haskell processes of the host, and what the daemon samples of them",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			processes, err := visible(socket)
			if err != nil {
				return err
			}
			if len(processes) == 0 {
				say("%s", nothingToList())
			}
			return printAs(cmd, format, struct {
				Processes []processJSON `json:"processes"`
			}{processesJSON(processes)}, func(to io.Writer) error { return printProcesses(to, processes) })
		},
	}
	socketFlag(cmd, &socket)
	formatFlag(cmd, &format)
	return cmd
}

// processJSON is a process as ps prints it: what is not known of it is null.
type processJSON struct {
	control.Process
	Service   *string `json:"service"`
	Program   *string `json:"program"`
	GHC       *string `json:"ghc"`
	Way       *string `json:"way"`
	Cgroup    *string `json:"cgroup"`
	Container *string `json:"container"`
}

func processesJSON(ps []control.Process) []processJSON {
	out := make([]processJSON, len(ps))
	for i, p := range ps {
		out[i] = processJSON{p, printer.Known(p.Service), printer.Known(p.Program), printer.Known(p.GHC), printer.Known(p.Way), printer.Known(p.Cgroup), printer.Known(p.Container)}
	}
	return out
}

// visible lists what the daemon sees or, where none runs, what could be profiled.
func visible(socket string) ([]control.Process, error) {
	a, _, err := ask(socket, control.Request{Command: control.CommandPS})
	if a.Processes == nil {
		a.Processes = []control.Process{}
	}
	if !errors.Is(err, unix.ENOENT) && !errors.Is(err, unix.ECONNREFUSED) {
		return a.Processes, err
	}
	found, err := discovery.New().All()
	if err != nil {
		return nil, err
	}
	say("no daemon answers at %s: these processes could be profiled", socket)
	who, err := invoker.Find("")
	if err != nil {
		return nil, err
	}
	var could daemon.Prospect
	for _, p := range found {
		if who.UID != 0 && p.UID != who.UID {
			continue
		}
		a.Processes = append(a.Processes, could.Describe(p))
	}
	return a.Processes, nil
}

// nothingToList says why a list of processes is empty.
func nothingToList() string {
	if who, err := invoker.Find(""); err == nil && who.UID != 0 {
		return "no Haskell process of yours runs; root sees those of all users"
	}
	return "no Haskell process runs"
}

// cell is what a program says of itself as the text of a cell: it ends neither the cell nor the line.
func cell(text string) string {
	return strings.ReplaceAll(printable.Line(text), "\t", string(printable.Mark))
}

func printProcesses(to io.Writer, processes []control.Process) error {
	w := tabwriter.NewWriter(to, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "PID\tSERVICE\tGHC\tWAY\tSTATE\tSAMPLES\tCOST\tEVENTS\tPROGRAM")
	why := map[string][]string{}    // events and processes, by reason
	partly := map[string]struct{}{} // events that are sampled in part, with reasons
	for _, p := range processes {
		if b := p.Boost; b != nil {
			p.State = fmt.Sprintf("boosted by %d Hz for %v", b.Rate, time.Duration(b.Left*1e9).Round(time.Second))
		}
		cost := "-"
		if p.Cost != nil {
			cost = fmt.Sprintf("%.2f %%", 100**p.Cost)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%d\t%s\t%s\t%s\n", p.PID, cell(p.Service), cell(dash(p.GHC)), cell(dash(p.Way)), p.State, p.Samples, cost, dash(strings.Join(p.Events, ",")), cell(p.Program))
		for _, m := range p.Partly {
			partly[m.Event+": "+m.Reason] = struct{}{}
		}
		if p.State == "excluded" {
			continue
		}
		missing := map[string][]string{} // events, by reason
		for _, m := range p.Missing {
			missing[m.Reason] = append(missing[m.Reason], m.Event)
		}
		for reason, events := range missing {
			why[reason] = append(why[reason], fmt.Sprintf("%d (%s)", p.PID, strings.Join(events, ", ")))
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, what := range slices.Sorted(maps.Keys(partly)) {
		if _, err := fmt.Fprintln(to, what); err != nil {
			return err
		}
	}
	for _, reason := range slices.Sorted(maps.Keys(why)) {
		if _, err := fmt.Fprintf(to, "missing of %s: %s\n", strings.Join(why[reason], ", "), reason); err != nil {
			return err
		}
	}
	return nil
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func statusCommand() *cobra.Command {
	var socket, format string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "say how the daemon is",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			a, _, err := ask(socket, control.Request{Command: control.CommandStatus})
			if err != nil {
				return err
			}
			if a.Status == nil {
				return errors.New("the daemon's answer has no status")
			}
			s := a.Status
			return printAs(cmd, format, s, func(to io.Writer) error {
				if s.Problem != "" {
					say("%d logs cannot be written now (%d events were dropped): %s", s.Stalled, s.Unwritten, s.Problem)
				}
				for _, e := range s.Engines {
					var dropped uint64
					for _, n := range e.Dropped {
						dropped += n
					}
					say("%s: %d pieces sent, %d wait, %d dropped", e.Name, e.Sent, e.Waiting, dropped)
					if e.Failing != "" {
						say("%s: %s", e.Name, e.Failing)
					}
				}
				_, err := fmt.Fprintf(to, `ccagent %s, process %d, up %v
processes that are sampled: %d (%s)
%s, %d lost
%s, %s; %d could not be finished
%.1f s of CPU time, %s at most
`, s.Version, s.PID, time.Duration(s.UpSeconds*1e9).Round(time.Second), s.Processes, strings.Join(s.Events, ", "),
					count(s.Samples, "sample"), s.Lost, count(uint64(s.Pieces), "piece"), bytesAmount(s.Bytes), s.Failed, s.CPUSecs, bytesAmount(int64(s.RSS)))
				return err
			})
		},
	}
	socketFlag(cmd, &socket)
	formatFlag(cmd, &format)
	return cmd
}

func reloadCommand() *cobra.Command {
	var socket string
	cmd := &cobra.Command{
		Use:   "reload",
		Short: "have the daemon read its configuration again",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			_, _, err := ask(socket, control.Request{Command: control.CommandReload})
			return err
		},
	}
	socketFlag(cmd, &socket)
	return cmd
}

func snapshotCommand() *cobra.Command {
	var socket, output string
	last := 5 * time.Minute
	cmd := &cobra.Command{
		Use:   "snapshot PID|SERVICE",
		Short: "write what the daemon has of the last minutes of a process or service as one log",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("snapshot: name one process or service (ccagent ps lists them)")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			r := control.Request{Command: control.CommandSnapshot, Last: last.Seconds()}
			r.PID, r.Service = pidOrService(args[0])
			if last <= 0 {
				return fmt.Errorf("--last %v is not in the past", last)
			}
			if output == "" {
				output = discovery.Clean(args[0]) + ".eventlog"
			}
			return snapshot(socket, r, output)
		},
	}
	socketFlag(cmd, &socket)
	cmd.Flags().DurationVar(&last, "last", last, "of so long ago until now")
	cmd.Flags().StringVarP(&output, "output", "o", "", "write the log to `FILE` (default PID.eventlog or SERVICE.eventlog)")
	return cmd
}

// pidOrService takes what a user names a process by: what is no process id is a service.
func pidOrService(name string) (pid uint32, service string) {
	if n, err := strconv.ParseUint(name, 10, 32); err == nil && n > 0 {
		return uint32(n), ""
	}
	return 0, name
}

// snapshot merges the pieces that the daemon gives into a log.
func snapshot(socket string, r control.Request, output string) error {
	a, files, err := ask(socket, r)
	if err != nil {
		return err
	}
	defer closeAll(files)
	var inputs []rewrite.Input
	var start int64
	for i, f := range files {
		info, err := f.Stat()
		if err != nil {
			return err
		}
		text := func() io.Reader { return io.NewSectionReader(f, 0, info.Size()) }
		inputs = append(inputs, rewrite.Input{Name: a.Pieces[i], Open: func() (io.ReadCloser, error) { return io.NopCloser(text()), nil }})
		if at, ok := startOf(text()); ok && (start == 0 || at < start) {
			start = at
		}
	}
	log, err := createOwn(output)
	if err != nil {
		return err
	}
	defer log.Close()
	o := rewrite.Options{Range: profile.Range{From: uint64(max(a.SinceUnixNs-start, 0))}}
	report, err := rewrite.Write(log, inputs, o)
	if err == nil && report.Samples == 0 {
		err = errors.New("there is no sample of it in that time (ccagent ps lists what is sampled)")
	}
	if err != nil {
		return errors.Join(err, log.Remove())
	}
	say("%s: %s of %s", output, count(report.Samples, "sample"), count(uint64(len(files)), "piece"))
	return nil
}

// closeAll closes the files of the daemon's answer.
func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}

// createOwn makes a log that belongs to who runs the command.
func createOwn(path string) (*invoker.Log, error) {
	who, err := invoker.Find("")
	if err != nil {
		return nil, err
	}
	return invoker.CreateLog(path, who)
}

// startOf reads the wall clock at a log's time 0.
func startOf(log io.Reader) (int64, bool) {
	r := eventlog.NewReader(log)
	for n := 0; n < 16 && r.Next(); n++ {
		if c, ok := r.Record().Event.(*eventlog.Capture); ok {
			return int64(c.StartUnixNs), true
		}
	}
	return 0, false
}
