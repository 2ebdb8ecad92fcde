package main

import (
	"math"
	"slices"

	"ccagent/internal/printable"
	"ccagent/ui/printer"
	"ccagent/ui/screen/heap"

	"ccagent/profile"
	"ccagent/profile/closures"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// choosesSamples lists the common flags that choose samples or change their stacks. Heap
// censuses and collections have neither, so their commands lack these flags.
var choosesSamples = []string{"event", "focus", "ignore", "hide", "merge", "collapse", "fold-recursion", "level", "thread", "cap", "pid", "tid", "program", "category"}

// ofRange returns a command that reports on a range of time. Its common flags are the
// format, the range, the number of rows, and those of the flags that choose samples which are in
// takes.
func ofRange(use, short, long string, stdout, stderr *printable.Writer, flags func(c *cobra.Command), report func(p *profile.Profile, f profile.Filter) (printer.Report, error), takes ...string) *cobra.Command {
	v := &view{stdout: stdout, stderr: stderr}
	c := &cobra.Command{
		Use: use, Short: short, Long: long,
		Args: exactly(1, "one log"),
		RunE: func(c *cobra.Command, args []string) error {
			f, _, err := v.check(c)
			if err != nil {
				return err
			}
			if err := refuseChoice(c, "shows what happened in a --range of time", takes...); err != nil {
				return err
			}
			if err := v.place(args[0], &f); err != nil {
				return err
			}
			p, err := v.load(args[0])
			if err != nil {
				return err
			}
			if err := v.chooseThreads(p, args[0], &f); err != nil {
				return err
			}
			r, err := report(p, f)
			if err != nil {
				return err
			}
			return v.print(r, args[0])
		},
	}
	v.addFlags(c)
	for _, name := range choosesSamples {
		if !slices.Contains(takes, name) {
			_ = c.Flags().MarkHidden(name)
		}
	}
	flags(c)
	return c
}

func heapCommand(stdout, stderr *printable.Writer) *cobra.Command {
	var (
		number, columns int
		retained, rss   bool
		allocated       bool
		path, root      string
		level, band     string
	)
	var since string
	load := (&view{stdout: stdout, stderr: stderr}).load
	return ofRange("heap FILE", "what was live over time, by bands, and the heap's size",
		`What was live at each census of the heap, by the bands of the profile that the
program was run with (+RTS -hT, -hc, -hy, -hi, …) or that ccagent heap has
counted, and the heap's size and collections as the run-time system reported
them.

In the chart each band is a letter, the greatest at the bottom.

What ccagent has counted can be divided otherwise: --level kind is thunks,
functions, values, stacks and so on; span and binding where closures of one kind
are written; file, module and package. --band THUNK is only what is in bands
whose type or kind has this in its name, by default by where it is written.

Of a log by ccagent heap --graph, --retained shows what keeps what alive: the
tree of what would be freed without each CAF, thread and closure; and --path
how a kind of closure is reached from there; and --root what one of these roots
keeps alive: a CAF by its name, a thread by its number or label, a stable or
weak pointer. --retained --since EARLIER compares two such logs of one process:
what keeps alive what has come since.

Of a log with -e alloc,heap, --allocated joins both by closure: what is
allocated much and dies, and what survives from the first census to the largest,
or to the last of a --range.

Of any log by ccagent heap, --rss shows where the memory of the process was (its
resident set size): live data, the nursery, free blocks and what holds them,
stacks, C's malloc, files; and what to do about it.`, stdout, stderr,
		func(c *cobra.Command) {
			c.Flags().IntVar(&number, "profile", 1, "which heap profile, if the log has several")
			c.Flags().BoolVar(&retained, "retained", false, "what keeps what alive, and how much (of a log by ccagent heap --graph)")
			c.Flags().StringVar(&since, "since", "", "with --retained: what retains more than in an `EARLIER` log")
			c.Flags().StringVar(&path, "path", "", "how closures are reached whose name or place has `CLOSURE` in it (likewise)")
			c.Flags().StringVar(&root, "root", "", "what is kept alive by the root that is called `ROOT`: a CAF, a thread, a stable or weak pointer (likewise)")
			c.Flags().BoolVar(&rss, "rss", false, "where the memory of the process was, and what to do about it (of a log by ccagent heap)")
			level = setLevel(c, &level)
			c.Flags().StringVar(&band, "band", "", "only closures of bands by type or kind whose name has `BAND` in it, by default by span")
			c.Flags().BoolVar(&allocated, "allocated", false, "what is allocated and dies, and what survives (of a log with -e alloc,heap)")
			c.Flags().IntVar(&columns, "buckets", 0, "columns (default: what fits)")
		},
		func(p *profile.Profile, f profile.Filter) (printer.Report, error) {
			if number < 1 || number > max(1, len(p.HeapProfiles)) {
				return nil, wrong("--profile %d: the log has %d", number, len(p.HeapProfiles))
			}
			if columns < 0 || columns > math.MaxUint16 {
				return nil, wrong("--buckets %d: from 1 to %d", columns, math.MaxUint16)
			}
			asked := 0
			for _, is := range []bool{retained, path != "", root != "", rss, allocated} {
				if is {
					asked++
				}
			}
			switch {
			case asked > 1:
				return nil, wrong("--retained, --path, --root, --rss and --allocated: choose one")
			case since != "" && !retained:
				return nil, wrong("--since: it compares what is retained; give --retained too")
			case since != "":
				before, err := load(since)
				if err != nil {
					return nil, err
				}
				return heap.RetainedGrowth{Before: before, After: p}, nil
			case allocated:
				return heap.FatesReport{Profile: p, Range: f.Range, Number: number - 1}, nil
			case rss:
				return heap.RSS{Profile: p}, nil
			case retained:
				return heap.Retained{Profile: p}, nil
			case path != "":
				return heap.Paths{Profile: p, Closure: path}, nil
			case root != "":
				return heap.Roots{Profile: p, Name: root}, nil
			}
			by, err := closures.ParseGrouping(level)
			if err != nil {
				return nil, wrong("--level: %v", err)
			}
			if by == closures.ByType && band != "" {
				by = closures.BySpan
			}
			return heap.Report{Profile: p, Range: f.Range, Number: number - 1, Buckets: columns, Level: by, Band: band}, nil
		}, "level")
}

// setLevel gives the flag --level the levels of the heap.
func setLevel(c *cobra.Command, level *string) string {
	const standard = "type"
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.StringVar(level, "level", standard, "type, kind, span, binding, file, module or package")
	f := c.Flags().Lookup("level")
	f.Value, f.DefValue, f.Usage = own.Lookup("level").Value, standard, own.Lookup("level").Usage
	return standard
}

func gcCommand(stdout, stderr *printable.Writer) *cobra.Command {
	return ofRange("gc FILE", "pauses for garbage collection, by generation", "", stdout, stderr, func(*cobra.Command) {},
		func(p *profile.Profile, f profile.Filter) (printer.Report, error) {
			return heap.GCReport{Profile: p, Range: f.Range}, nil
		})
}
