package main

import (
	"path/filepath"
	"strings"

	"ccagent/internal/printable"
	"ccagent/profile"
	"ccagent/profile/closures"
	"ccagent/profile/diff"
	"ccagent/ui/printer"
	diffscreen "ccagent/ui/screen/diff"
	"ccagent/ui/screen/diffflame"
	"ccagent/ui/screen/heap"

	"github.com/spf13/cobra"
)

// maxRuns bounds the logs of one side.
const maxRuns = 32

// comparing holds the flags of a comparison.
type comparing struct {
	metric, normalise string
	alpha             float64
	all, stacks, heap bool
	options           diff.Options
}

func diffCommand(stdout, stderr *printable.Writer) *cobra.Command {
	v := &view{stdout: stdout, stderr: stderr}
	d := &comparing{}
	c := &cobra.Command{
		Use:   "diff A B | A1,A2,… B1,B2,…",
		Short: "two logs, or two groups of logs, side by side",
		Long: `What B spends on each element against what A spends, by name. All transforms
hold for both sides.

With several logs a side, differences are tested: how much runs of one side
vary decides what the other side must differ by. p-values are adjusted for the
number of elements. A single log a side gets no test: its ± is the noise of
sampling alone.

Of two logs that have censuses of the heap and no samples, and of any with
--heap, the bands of the largest census are compared, by where their closures
are written, or by --level type, kind, span, binding, file, module or package.`,
		Args: exactly(2, "two logs, or two lists of logs with commas"),
		RunE: func(c *cobra.Command, args []string) error {
			if err := d.check(); err != nil {
				return err
			}
			a, b, err := sides(args)
			if err != nil {
				return err
			}
			if v.interactive(c) && !d.heap {
				return v.tuiDiff(c, a, b, d.options)
			}
			r, err := v.compareHeaps(c, a, b, d.heap)
			if err != nil {
				return err
			}
			if r != nil {
				return v.print(r, "")
			}
			if d.stacks {
				r, err := v.compareStacks(c, a, b, d.all)
				if err != nil {
					return err
				}
				return v.print(r, "")
			}
			res, err := v.compare(c, a, b, d.options)
			if err != nil {
				return err
			}
			return v.print(diffscreen.Report{Result: res, All: d.all}, "")
		},
	}
	v.addFlags(c)
	v.addViewerFlags(c)
	f := c.Flags()
	f.StringVar(&d.metric, "by", "share", "what is compared of an element: share, only or inclusive")
	f.StringVar(&d.normalise, "normalise", "none", "none: weights as they are; share: parts of each run's total")
	f.Float64Var(&d.alpha, "alpha", diff.DefaultAlpha, "the chance of any false verdict")
	f.BoolVar(&d.stacks, "stacks", false, "compare call paths, by their parts of each run's total")
	f.BoolVar(&d.heap, "heap", false, "print the bands of the heap that differ, also of logs that have samples")
	f.BoolVar(&d.all, "all", false, "print every element, not only those that differ")
	return c
}

func (d *comparing) check() error {
	m, ok := diff.ParseMetric(d.metric)
	switch {
	case !ok:
		return wrong("--by %q: choose share, only or inclusive", d.metric)
	case d.normalise != "none" && d.normalise != "share":
		return wrong("--normalise %q: choose none or share", d.normalise)
	case !(d.alpha > 0 && d.alpha < 1):
		return wrong("--alpha %v: a chance between 0 and 1", d.alpha)
	}
	d.options = diff.Options{Metric: m, Alpha: d.alpha}
	if d.normalise == "share" {
		d.options.Normalise = diff.Share
	}
	return nil
}

// sides splits the arguments into the two sides' logs.
func sides(args []string) (a, b []string, err error) {
	var both [2][]string
	for i, arg := range args {
		for _, name := range strings.Split(arg, ",") {
			if name == "" {
				return nil, nil, wrong("%q has an empty name between its commas", arg)
			}
			both[i] = append(both[i], name)
		}
		if len(both[i]) > maxRuns {
			return nil, nil, wrong("%d logs on one side: %d at most", len(both[i]), maxRuns)
		}
	}
	return both[0], both[1], nil
}

// compareStacks compares the call trees of all logs.
func (v *view) compareStacks(c *cobra.Command, a, b []string, all bool) (printer.Report, error) {
	unit, event := "", v.event
	read := func(paths []string) (out []*profile.Selection, err error) {
		for _, path := range paths {
			s, _, err := v.selection(c, path)
			if err != nil {
				return nil, err
			}
			if event == "" {
				event = s.EventDef().Name()
				v.event = event // the first log's event, for all logs
			}
			switch u := s.EventDef().Unit; {
			case unit == "":
				unit = u
			case u != unit:
				return nil, wrong("%s counts %s, the logs before it %s: give one --event", path, u, unit)
			}
			out = append(out, s)
		}
		return out, nil
	}
	as, err := read(a)
	if err != nil {
		return nil, err
	}
	bs, err := read(b)
	if err != nil {
		return nil, err
	}
	return diffflame.Of(as, bs, a, b, all), nil
}

// compareHeaps compares the bands of two logs that have censuses of the heap, and no samples unless they are asked for; nil of
// others.
func (v *view) compareHeaps(c *cobra.Command, a, b []string, asked bool) (printer.Report, error) {
	switch one := len(a) == 1 && len(b) == 1 && v.event == ""; {
	case asked && !one:
		return nil, wrong("--heap compares two logs, and no event of theirs")
	case !one:
		return nil, nil
	}
	var both [2]*profile.Profile
	for i, path := range []string{a[0], b[0]} {
		p, err := v.load(path)
		if err != nil {
			return nil, err
		}
		if !asked && (p.Samples() > 0 || len(p.HeapProfiles) == 0) {
			v.looked = &looked{path, p}
			return nil, nil
		}
		both[i] = p
	}
	r := heap.BandChanges{A: both[0], B: both[1], NameA: filepath.Base(a[0]), NameB: filepath.Base(b[0])}
	if c.Flags().Changed("level") {
		var err error
		if r.Level, err = closures.ParseGrouping(v.level); err != nil {
			return nil, wrong("--level: %v", err)
		}
	} else {
		r.Level = heap.FirstLevel(both[0], both[1])
	}
	return r, nil
}

// compare reads the logs one after another and keeps only their figures.
func (v *view) compare(c *cobra.Command, a, b []string, o diff.Options) (*diff.Result, error) {
	measure := func(paths []string) ([]*diff.Run, error) {
		var out []*diff.Run
		for _, path := range paths {
			s, level, err := v.selection(c, path)
			if err != nil {
				return nil, err
			}
			out = append(out, diff.Measure(path, s, level))
		}
		return out, nil
	}
	as, err := measure(a)
	if err != nil {
		return nil, err
	}
	if v.event == "" {
		v.event = as[0].Event // the first log's event, for all logs
	}
	bs, err := measure(b)
	if err != nil {
		return nil, err
	}
	res, err := diff.Compare(as, bs, o)
	if err != nil {
		return nil, &wrongCall{err}
	}
	for _, r := range append(as, bs...) {
		if r.Granted != as[0].Granted {
			v.warn("%s measured %s, %s %s: their figures differ in kind", as[0].Name, as[0].Title, r.Name, r.Title)
			break
		}
	}
	return res, nil
}
