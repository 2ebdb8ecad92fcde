package main

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"time"

	"ccagent/eventlog"
	"ccagent/internal/printable"
	"ccagent/profile"
	"ccagent/profile/diagnosis"
	"ccagent/ui/model"
	"ccagent/ui/printer"

	"github.com/charmbracelet/x/term"
	"github.com/spf13/cobra"
)

// view holds the flags and the output streams of one call.
type view struct {
	stdout, stderr *printable.Writer

	format string
	event  string
	rng    string
	focus  []string
	ignore []string
	hide   []string
	// These flags change the frames of stacks.
	merge    []string
	collapse []string
	fold     bool

	level  string
	top    int
	topSet bool
	theme  string // the viewer's
	ascii  bool
	follow bool
	folderFlags
	// These flags may be repeated, or have a list with commas.
	threads    []string // ids and labels
	tids       []uint
	pids       []uint
	caps       []uint
	programs   []string
	categories []string

	labels []string // of threads; the log has to say whose they are

	// looked is a log that was read to see what it holds, and is to be loaded next; nil if there is none.
	looked *looked
}

type looked struct {
	path    string
	profile *profile.Profile
}

// addFlags adds the common flags.
func (v *view) addFlags(c *cobra.Command) {
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&v.format, "format", "text", "text or json")
	f.StringVar(&v.event, "event", "", "the event to show (default: the log's first with samples)")
	f.StringVar(&v.rng, "range", "", "only samples from FROM to TO, in the log's time or the wall clock's: 3.1-5.42, -2s, 14:30-14:35")
	f.StringArrayVar(&v.focus, "focus", nil, "only samples with a frame whose name matches `RE`")
	f.StringArrayVar(&v.ignore, "ignore", nil, "no samples with a frame whose name matches `RE`")
	f.StringArrayVar(&v.hide, "hide", nil, "take what matches `RE` out of the stacks; its cost falls to its caller")
	f.StringArrayVar(&v.merge, "merge", nil, "merge the frames whose own name matches `RE` into their callers")
	f.StringArrayVar(&v.collapse, "collapse", nil, "make one of each module that matches `RE`; '^package RE' of each package")
	f.BoolVar(&v.fold, "fold-recursion", false, "take what lies between two frames of one function out of the stacks")
	f.StringVar(&v.level, "level", "binding", "span, binding, function, file, module or package")
	f.IntVar(&v.top, "top", 0, "rows to print; 0 prints all (default: what a page holds; of JSON all)")
	f.StringSliceVar(&v.threads, "thread", nil, "only samples of the Haskell thread with that id or label: `ID|LABEL`")
	f.UintSliceVar(&v.caps, "cap", nil, "only samples of capability `N`")
	f.UintSliceVar(&v.pids, "pid", nil, "only samples of process `PID`")
	f.UintSliceVar(&v.tids, "tid", nil, "only samples of OS thread `TID`")
	f.StringSliceVar(&v.programs, "program", nil, "only samples with code of `PROGRAM` on the stack, by its name or path")
	v.addFolderFlags(c)
	for _, list := range []string{"cap", "pid", "tid"} {
		f.Lookup(list).DefValue = "" // not "[]" in the help
	}
	f.StringSliceVar(&v.categories, "category", nil, "only samples that hit `CATEGORY`: haskell, stg, gc, rts, foreign, kernel, unresolved")
	complete(c, "format", "text", "json")
	complete(c, "level", "span", "binding", "file", "module", "package")
	complete(c, "category", "haskell", "stg", "gc", "rts", "foreign", "kernel", "unresolved")
}

// complete registers a flag's values for shell completion.
func complete(c *cobra.Command, flag string, choices ...string) {
	_ = c.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp))
}

// check parses the flags and checks what does not depend on the log.
func (v *view) check(c *cobra.Command) (profile.Filter, profile.Level, error) {
	var f profile.Filter
	if v.format != "text" && v.format != "json" {
		return f, 0, wrong("unknown format %q: choose text or json", v.format)
	}
	v.topSet = c.Flags().Changed("top")
	if v.top < 0 {
		return f, 0, wrong("--top %d: a number of rows, or 0 for all", v.top)
	}
	level, err := profile.ParseLevel(v.level)
	if err != nil {
		return f, 0, &wrongCall{err}
	}
	if f.Range, err = parseRange(v.rng); err != nil && v.parseWall() != nil {
		return f, 0, &wrongCall{err}
	}
	if v.last < 0 || v.last > 0 && v.rng != "" {
		return f, 0, wrong("--last %v: a duration like 15m, in place of --range", v.last)
	}
	for _, x := range []struct {
		flag string
		from []string
		to   *[]*regexp.Regexp
	}{{"focus", v.focus, &f.Focus}, {"ignore", v.ignore, &f.Ignore}, {"hide", v.hide, &f.Hide}, {"merge", v.merge, &f.Merge}, {"collapse", v.collapse, &f.Collapse}} {
		for _, s := range x.from {
			re, err := regexp.Compile(s)
			if err != nil {
				return f, 0, wrong("--%s: %w", x.flag, err)
			}
			*x.to = append(*x.to, re)
		}
	}
	f.FoldRecursion, f.Programs = v.fold, v.programs
	v.labels = nil
	for _, t := range v.threads {
		if id, err := strconv.ParseUint(t, 10, 64); err == nil {
			f.Threads = append(f.Threads, id)
		} else {
			v.labels = append(v.labels, t)
		}
	}
	for _, x := range []struct {
		flag string
		from []uint
		to   *[]uint32
	}{{"cap", v.caps, &f.Caps}, {"pid", v.pids, &f.PIDs}, {"tid", v.tids, &f.TIDs}} {
		for _, n := range x.from {
			if n > math.MaxUint32 {
				return f, 0, wrong("--%s %d: too large", x.flag, n)
			}
			*x.to = append(*x.to, uint32(n))
		}
	}
	for _, name := range v.categories {
		cat, ok := model.Category(name)
		if !ok {
			return f, 0, wrong("unknown category %q: choose haskell, stg, gc, rts, foreign, kernel or unresolved", name)
		}
		f.Categories = append(f.Categories, cat)
	}
	return f, level, nil
}

// parseRange parses FROM-TO. FROM or TO may be omitted.
func parseRange(s string) (profile.Range, error) {
	var r profile.Range
	if s == "" {
		return r, nil
	}
	from, to, ok := strings.Cut(s, "-")
	if !ok {
		return r, fmt.Errorf("--range %q: FROM-TO in seconds, as in 3.1-5.42", s)
	}
	var err error
	if r.From, err = parseTime(from); err != nil {
		return r, fmt.Errorf("--range %q: %w", s, err)
	}
	if r.To, err = parseTime(to); err != nil {
		return r, fmt.Errorf("--range %q: %w", s, err)
	}
	if to != "" && r.To <= r.From {
		return r, fmt.Errorf("--range %q ends before it begins", s)
	}
	return r, nil
}

func parseTime(s string) (uint64, error) {
	if s == "" {
		return 0, nil
	}
	if f, err := strconv.ParseFloat(s, 64); err == nil {
		if !(f >= 0 && f < 1e10) {
			return 0, fmt.Errorf("%q is no time in a log", s)
		}
		return uint64(math.Round(f * 1e9)), nil
	}
	d, err := time.ParseDuration(s)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q is neither seconds nor a duration like 200ms", s)
	}
	return uint64(d), nil
}

// unreadable adds the offset from which the log cannot be read to a read error.
func unreadable(path string, err error) error {
	var header *eventlog.HeaderError
	if !errors.As(err, &header) {
		return err
	}
	if errors.Is(err, eventlog.ErrEmpty) || errors.Is(err, eventlog.ErrHeaderCut) {
		return fmt.Errorf("%s cannot be read from offset %d on: %w; it is only being begun, or was cut off: open it later, or record again", path, header.Offset, err)
	}
	return fmt.Errorf("%s cannot be read from offset %d on: %w; ccview reads eventlogs of ccagent and of GHC's run-time system, pprof profiles and the text of perf script", path, header.Offset, err)
}

// load opens a log and prints its problems to stderr.
func (v *view) load(path string) (*profile.Profile, error) {
	if l := v.looked; l != nil && l.path == path {
		v.looked = nil
		return l.profile, nil
	}
	return v.loadBy(profile.Open, path)
}

// muchRead is the minimum size of a log after which load returns memory to the system:
// for smaller logs that is not worth the time.
const muchRead = 16 << 20

func (v *view) loadBy(open func(string, func(done, total int64)) (*profile.Profile, error), path string) (*profile.Profile, error) {
	_, _, folder, err := v.choose(path)
	if err != nil {
		return nil, err
	}
	if folder {
		open = v.loadFolder
	}
	p, err := open(path, nil)
	if err != nil {
		return nil, unreadable(path, err)
	}
	if p.Accounting.Bytes >= muchRead {
		debug.FreeOSMemory() // reading can take as much memory as the profile
	}
	for _, c := range diagnosis.Diagnose(p) {
		if c.Status == diagnosis.StatusFail {
			v.warn("%s: %s", path, c.Detail)
			if c.Remedy != "" {
				v.warn("  → %s", strings.ReplaceAll(c.Remedy, "FILE", path))
			}
		}
	}
	return p, nil
}

// selection loads a log and applies the flags.
func (v *view) selection(c *cobra.Command, path string) (*profile.Selection, profile.Level, error) {
	f, level, err := v.check(c)
	if err != nil {
		return nil, 0, err
	}
	if err := v.place(path, &f); err != nil {
		return nil, 0, err
	}
	p, err := v.load(path)
	if err != nil {
		return nil, 0, err
	}
	if v.event != "" {
		i, ok := p.EventNamed(v.event)
		if !ok {
			return nil, 0, wrong("%s has no event %q%s", path, v.event, eventList(p))
		}
		f = f.WithEvent(i)
	}
	for _, name := range f.Programs {
		if len(p.Program(name)) == 0 {
			return nil, 0, wrong("%s has no program %q%s", path, name, programList(p))
		}
	}
	if err := v.chooseThreads(p, path, &f); err != nil {
		return nil, 0, err
	}
	return p.Select(f), level, nil
}

func programList(p *profile.Profile) string {
	names := slices.Sorted(maps.Values(p.Programs()))
	if len(names) == 0 {
		return ": it is of one"
	}
	return ": it has " + strings.Join(names, ", ")
}

func eventList(p *profile.Profile) string {
	if len(p.Events) == 0 {
		return ": it has none"
	}
	var names []string
	for i := range p.Events {
		names = append(names, p.Events[i].Name())
	}
	return ": it has " + strings.Join(names, ", ")
}

// options returns the printing options: the terminal's width, and styles if the terminal
// and the environment allow them.
func (v *view) options(path string) printer.Options {
	o := printer.Options{File: path}
	if v.topSet {
		if o.Top = v.top; o.Top == 0 {
			o.Top = -1
		}
	}
	if f, ok := v.stdout.Terminal(); ok {
		if w, _, err := term.GetSize(f.Fd()); err == nil {
			o.Width = w
		}
		_, plain := os.LookupEnv("NO_COLOR")
		if o.Color = !plain && os.Getenv("TERM") != "dumb"; o.Color {
			v.stdout.AllowStyles()
		}
	}
	return o
}

// print prints a report in the format of --format.
func (v *view) print(r printer.Report, path string) error {
	if v.json() {
		return r.JSON(v.stdout, v.options(path))
	}
	return r.Text(v.stdout, v.options(path))
}

func (v *view) json() bool { return v.format == "json" }
