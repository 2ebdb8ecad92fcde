package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"slices"
	"strings"

	"ccagent/internal/manual"
	"ccagent/internal/printable"
	"ccagent/ui/printer"
	"ccagent/ui/screen/flame"
	"ccagent/ui/screen/heap"
	hotscreen "ccagent/ui/screen/hot"
	sourcescreen "ccagent/ui/screen/source"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"ccagent/internal/buildinfo"
	"ccagent/profile"
	"ccagent/profile/reasons"
	"ccagent/profile/source"
	"ccagent/profile/stacks"
	"ccagent/profile/timeline"
	"ccagent/ui"
	"ccagent/ui/text"
)

func (v *view) warn(format string, args ...any) {
	fmt.Fprintf(v.stderr, "ccview: %s\n", printable.Line(fmt.Sprintf(format, args...)))
}

// exactly returns a check for a number of arguments.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return wrong("%s takes %s; see %s --help", c.CommandPath(), what, c.CommandPath())
		}
		return nil
	}
}

func rootCommand(stdout, stderr *printable.Writer) *cobra.Command {
	v := &view{stdout: stdout, stderr: stderr}
	root := &cobra.Command{
		Use:   "ccview FILE",
		Short: "show what ccagent recorded",
		Long: `Show what ccagent recorded: in the terminal, or where stdout is no terminal, the
hot list as text.

FILE is a log of ccagent or of GHC's run-time system, also one that is being
written, or of another profiler a pprof profile or the text of perf script; or a
folder, whose logs are shown as one (ccview ls).`,
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          exactly(1, "one log"),
		RunE: func(c *cobra.Command, args []string) error {
			_, _, folder, err := v.folder(args[0])
			if err != nil {
				return err
			}
			if _, err := os.Stat(args[0]); errors.Is(err, fs.ErrNotExist) && !v.follow && !folder {
				return fmt.Errorf("there is neither a log nor a command %q; ccview --help lists the commands", args[0])
			}
			if v.interactive(c) {
				return v.tui(c, args[0])
			}
			if v.follow {
				return wrong("--follow shows a log as it grows, on a terminal that can be addressed; without --follow it is printed as it is now")
			}
			return v.hot(c, args[0])
		},
	}
	v.addFlags(root)
	v.addViewerFlags(root)
	root.Flags().BoolVar(&v.follow, "follow", false, "show a log as it grows; ccagent record --live gives it names at once")
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetUsageTemplate(manual.Usage(root))
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return wrong("%w; see %s --help", err, c.CommandPath())
	})
	root.AddCommand(
		hotCommand(stdout, stderr), sourceCommand(stdout, stderr), stacksCommand(stdout, stderr), ccsCommand(stdout, stderr),
		timelineCommand(stdout, stderr), chartCommand(stdout, stderr), codeCommand(stdout, stderr), infoCommand(stdout, stderr), doctorCommand(stdout, stderr), exportCommand(stdout, stderr), diffCommand(stdout, stderr), pushCommand(stdout, stderr),
		lsCommand(stdout, stderr), allocCommand(stdout, stderr), heapCommand(stdout, stderr), gcCommand(stdout, stderr), threadsCommand(stdout, stderr), reportCommand(stdout, stderr), versionCommand(stdout),
		manual.Command(buildinfo.Version()),
	)
	return root
}

// addViewerFlags adds the flags of commands that can open the viewer.
func (v *view) addViewerFlags(c *cobra.Command) {
	c.Flags().StringVar(&v.theme, "theme", "", "the viewer's colours: "+strings.Join(ui.Themes(), ", ")+" (default: by the terminal's background; plain with NO_COLOR)")
	c.Flags().BoolVar(&v.ascii, "ascii", false, "draw the viewer with ASCII alone")
	complete(c, "theme", ui.Themes()...)
}

// interactive reports whether the viewer can run: stdin and stdout are terminals, $TERM
// is not "dumb", and the call has no --format.
func (v *view) interactive(c *cobra.Command) bool {
	if c.Flags().Changed("format") || os.Getenv("TERM") == "dumb" {
		return false
	}
	_, ok := v.stdout.Terminal()
	return ok && term.IsTerminal(os.Stdin.Fd())
}

func (v *view) hot(c *cobra.Command, path string) error {
	s, level, err := v.selection(c, path)
	if err != nil {
		return err
	}
	if p := s.Profile; len(p.Events) == 0 && len(p.Dumps) > 0 {
		return v.print(threadsReport(p, s.Filter), path)
	} else if len(p.Events) == 0 && len(p.HeapProfiles) > 0 {
		return v.print(heap.Report{Profile: p}, path)
	}
	return v.print(hotscreen.Report{Selection: s, Level: level}, path)
}

func hotCommand(stdout, stderr *printable.Writer) *cobra.Command {
	v := &view{stdout: stdout, stderr: stderr}
	c := &cobra.Command{
		Use:   "hot FILE",
		Short: "elements by share",
		Long: `Elements by share: the part of the samples whose code has the element among its
causes. Code has several causes, so shares may sum to more than 100%.

  share  samples whose code the element is a cause of
  only   the part of it that no other element shares
  incl   samples with the element on their stack`,
		Args: exactly(1, "one log"),
		RunE: func(c *cobra.Command, args []string) error { return v.hot(c, args[0]) },
	}
	v.addFlags(c)
	return c
}

func sourceCommand(stdout, stderr *printable.Writer) *cobra.Command {
	v := &view{stdout: stdout, stderr: stderr}
	var all, core bool
	c := &cobra.Command{
		Use:   "source FILE PATH|BINDING",
		Short: "source with its costs",
		Long: `A source file, or the one that a binding lies in, with the costs of its lines. A
line bears the samples whose narrowest span begins on it; the letters name the
spans that touch it.

Of an element without source, such as '(GC)' or '(kernel)': what it consists of,
whose code causes it, and what usually helps.

With --core, the Core that GHC made of it, from the build's dumps (ghc -g3
-ddump-simpl -ddump-to-file -dsuppress-all -dno-suppress-ticks). A line bears
the samples whose nearest source note stands before the expression that begins
on it; an asterisk marks the lines that were made from the source asked for.`,
		Args: exactly(2, "a log and a source path or binding"),
		RunE: func(c *cobra.Command, args []string) error {
			s, _, err := v.selection(c, args[0])
			if err != nil {
				return err
			}
			if core {
				return v.core(s, args[0], args[1])
			}
			if reasons.Explains(args[1]) {
				r := reasons.Of(s, args[1])
				if r == nil {
					return wrong("no sample of the selection is in %s", args[1])
				}
				return v.print(sourcescreen.ReasonReport{Selection: s, Reason: r}, args[0])
			}
			sv, err := source.Find(s, args[1])
			var lookup *source.LookupError
			if errors.As(err, &lookup) {
				return &wrongCall{err}
			}
			if err != nil {
				return err
			}
			return v.print(sourcescreen.Report{Selection: s, View: sv, All: all}, args[0])
		},
	}
	v.addFlags(c)
	c.Flags().BoolVar(&all, "all", false, "print every line of the file")
	c.Flags().BoolVar(&core, "core", false, "print the Core that GHC made of it, with its costs")
	c.MarkFlagsMutuallyExclusive("all", "core")
	return c
}

func (v *view) core(s *profile.Selection, path, query string) error {
	cv, err := source.FindCore(s, query)
	if err != nil {
		return &wrongCall{err}
	}
	return v.print(sourcescreen.CoreReport{Selection: s, View: cv}, path)
}

func stacksCommand(stdout, stderr *printable.Writer) *cobra.Command {
	v := &view{stdout: stdout, stderr: stderr}
	var (
		o      stacks.Options
		so     flame.Limits
		folded bool
		of     string
		least  float64
	)
	c := &cobra.Command{
		Use:   "stacks FILE",
		Short: "call tree",
		Long: `The call tree, roots first. Neighbouring frames of one binding are one node. A
star marks what evaluates thunks: its caller forced them, and need not have
built them.`,
		Args: exactly(1, "one log"),
		RunE: func(c *cobra.Command, args []string) error {
			if folded && v.json() {
				return wrong("--folded is a text format: leave out --format json")
			}
			if of != "" && (folded || o.Invert || o.AllFrames) {
				return wrong("--sandwich shows callers and callees: leave out --folded, --invert and --all-frames")
			}
			if so.MaxDepth < 0 {
				return wrong("--depth %d: a number of frames, or 0 for no limit", so.MaxDepth)
			}
			if !(least >= 0 && least <= 100) {
				return wrong("--min %v: a percentage from 0 to 100", least)
			}
			s, _, err := v.selection(c, args[0])
			if err != nil {
				return err
			}
			if folded {
				o.MaxDepth = -1
			}
			if so.MaxDepth > 0 {
				o.MaxDepth = so.MaxDepth
			}
			t := stacks.TreeOf(s, o)
			so.MinShare = least / 100
			if of != "" {
				return v.sandwich(s, t, of, so, args[0])
			}
			if folded {
				return flame.Folded(v.stdout, t)
			}
			return v.print(flame.Report{Selection: s, Tree: t, Inverted: o.Invert, Limits: so}, args[0])
		},
	}
	v.addFlags(c)
	c.Flags().BoolVar(&o.Invert, "invert", false, "leaves first, callers under them")
	c.Flags().StringVar(&of, "sandwich", "", "callers and callees of the function `NAME`, over all stacks that have it")
	c.Flags().BoolVar(&folded, "folded", false, "a stack a line, as flame graph tools read it")
	c.Flags().BoolVar(&o.AllFrames, "all-frames", false, "also update frames and the STG machine's own; no folding of recursion")
	c.Flags().IntVar(&so.MaxDepth, "depth", 0, "frames from the root to show, with --invert from the leaf (default 200)")
	c.Flags().Float64Var(&least, "min", 0.5, "leave out of the text what is below this percentage")
	return c
}

// sandwich prints a function's callers and callees.
func (v *view) sandwich(s *profile.Selection, t *stacks.Tree, name string, so flame.Limits, path string) error {
	f, names := t.Function(name)
	switch {
	case len(names) > 0:
		return wrong("--sandwich %s: several functions are called so: %s", name, strings.Join(names[:min(len(names), 8)], ", "))
	case f == nil:
		return wrong("--sandwich %s: no function of that name is on a stack; ccview stacks %s shows which are", name, path)
	}
	callers, callees := t.Sandwich(f)
	return v.print(flame.SandwichReport{Selection: s, Callers: callers, Callees: callees, Limits: so}, path)
}

func timelineCommand(stdout, stderr *printable.Writer) *cobra.Command {
	v := &view{stdout: stdout, stderr: stderr}
	var buckets int
	c := &cobra.Command{
		Use:   "timeline FILE",
		Short: "activity over time per capability, GC, allocation rate",
		Args:  exactly(1, "one log"),
		RunE: func(c *cobra.Command, args []string) error {
			if buckets < 0 || buckets > 1<<16 {
				return wrong("--buckets %d: from 1 to %d", buckets, 1<<16)
			}
			s, _, err := v.selection(c, args[0])
			if err != nil {
				return err
			}
			if buckets == 0 {
				buckets = text.TimelineBuckets(v.options(args[0]))
			}
			return v.print(text.OverTime{Selection: s, Timeline: timeline.Of(s, timeline.Options{Buckets: buckets})}, args[0])
		},
	}
	v.addFlags(c)
	c.Flags().IntVar(&buckets, "buckets", 0, "columns (default: what fits)")
	return c
}

// whole returns a command that reports on a whole log. Its only common flag is --format.
func whole(use, short string, stdout, stderr *printable.Writer, report func(p *profile.Profile) printer.Report) *cobra.Command {
	v := &view{stdout: stdout, stderr: stderr}
	c := &cobra.Command{
		Use:   use,
		Short: short,
		Args:  exactly(1, "one log"),
		RunE: func(c *cobra.Command, args []string) error {
			if _, _, err := v.check(c); err != nil {
				return err
			}
			_, _, folder, err := v.choose(args[0])
			if err != nil {
				return err
			}
			c.Flags().Visit(func(f *pflag.Flag) {
				if f.Hidden || f.Name == "range" && !folder {
					v.warn("--%s changes nothing: %s reports the whole log", f.Name, c.Name())
				}
			})
			p, err := v.loadBy(openWhole, args[0])
			if err != nil {
				return err
			}
			return v.print(report(p), args[0])
		},
	}
	v.addFlags(c)
	hideOthers(c)
	return c
}

// mostSamples is the size in bytes of a log up to which its samples are read for reports on the whole
// of it, to say how sure shares are. Larger ones have so many samples that intervals are narrow.
const mostSamples = 32 << 20

// openWhole opens a log for a report on the whole of it.
func openWhole(path string, progress func(done, total int64)) (*profile.Profile, error) {
	if st, err := os.Stat(path); err == nil && st.Mode().IsRegular() && st.Size() <= mostSamples {
		return profile.Open(path, progress)
	}
	return profile.OpenTotals(path, progress)
}

// hideOthers hides the flags that choose samples: what the command shows is of whole logs.
func hideOthers(c *cobra.Command) {
	c.Flags().VisitAll(func(f *pflag.Flag) { f.Hidden = f.Name != "format" && !slices.Contains(folderFlagNames, f.Name) })
}

func versionCommand(stdout *printable.Writer) *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "print the version and the build",
		Args: exactly(0, "no argument"),
		RunE: func(*cobra.Command, []string) error {
			_, err := fmt.Fprintf(stdout, "ccview %s\nbuilt with %s for %s/%s\n", buildinfo.Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return err
		},
	}
}

func infoCommand(stdout, stderr *printable.Writer) *cobra.Command {
	return whole("info FILE", "metadata and all accounting", stdout, stderr,
		func(p *profile.Profile) printer.Report { return text.Info{Profile: p} })
}

func doctorCommand(stdout, stderr *printable.Writer) *cobra.Command {
	return whole("doctor FILE", "is the log whole; what is missing and what would bring it back", stdout, stderr,
		func(p *profile.Profile) printer.Report { return text.Doctor{Profile: p} })
}
