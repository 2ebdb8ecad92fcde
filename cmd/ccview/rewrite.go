package main

import (
	"io"
	"slices"
	"strings"

	"ccagent/profile"
	"ccagent/profile/compat"
	"ccagent/profile/rewrite"
	"ccagent/profile/threads"

	"github.com/spf13/cobra"
)

const eventlogFormat = "eventlog"

func compatNames() []string { return compat.Names() }

// rewrite writes a log from several logs, or from a part of one.
func (v *view) rewrite(c *cobra.Command, paths []string, out, tool string) error {
	if v.json() {
		return wrong("export has formats of its own: leave out --format json")
	}
	if err := v.notOnTerminal(true, out, eventlogFormat); err != nil {
		return err
	}
	f, _, err := v.check(c)
	if err != nil {
		return err
	}
	for flag, set := range map[string]bool{"hide": len(f.Hide) > 0, "merge": len(f.Merge) > 0, "collapse": len(f.Collapse) > 0, "fold-recursion": f.FoldRecursion} {
		if set {
			return wrong("--%s changes stacks, which a log keeps as they were: leave it out, or export to another format", flag)
		}
	}
	if err := v.place(paths[0], &f); err != nil {
		return err
	}
	o := rewrite.Options{Range: f.Range}
	samplesOnly := f
	samplesOnly.Range = profile.Range{}
	filtered := v.event != "" || len(f.Focus)+len(f.Ignore)+len(f.Threads)+len(v.labels)+len(f.TIDs)+len(f.PIDs)+len(f.Caps)+len(f.Categories)+len(f.Programs) > 0
	var inputs []rewrite.Input
	nowhere := nowhere{}
	for _, path := range paths {
		of, err := v.inputs(path)
		if err != nil {
			return err
		}
		for i := range of {
			if filtered {
				if of[i].Keep, err = v.keeper(of[i].Name, samplesOnly, &nowhere); err != nil {
					return err
				}
			}
		}
		inputs = append(inputs, of...)
	}
	if len(nowhere.not) > 0 {
		return nowhere.not[0].error(strings.Join(paths, ", "), nowhere.known)
	}
	if tool != "" {
		if len(paths) > 1 {
			return wrong("--compat takes one log: merge first")
		}
		ss, _, err := v.selections(c, paths[0], true)
		if err != nil {
			return err
		}
		if o.Add, err = compat.Events(tool, ss); err != nil {
			return &wrongCall{err}
		}
	}
	var report rewrite.Report
	err = v.writeTo(out, func(w io.Writer) error {
		var err error
		report, err = rewrite.Write(w, inputs, o)
		return unreadable(paths[0], err)
	})
	if err == nil && report.Left > 0 {
		v.warn("%d stretches or events could not be taken over: damaged, or of a kind that the logs declare differently", report.Left)
	}
	return err
}

// nowhere is the threads that --thread names and none of several logs has. A thread need not be in
// each piece of a capture.
type nowhere struct {
	logs  int
	not   []missing
	known []threads.Name // of all of them
}

// add leaves those that another log does not have either.
func (n *nowhere) add(not []missing, known []threads.Name) {
	if n.logs++; n.logs == 1 {
		n.not = not
	}
	n.not = slices.DeleteFunc(n.not, func(m missing) bool { return !slices.Contains(not, m) })
	n.known = threads.Merge(n.known, known)
}

// keeper returns a function that reports whether the filter keeps the sample with number
// i.
func (v *view) keeper(path string, f profile.Filter, n *nowhere) (func(i int) bool, error) {
	p, err := profile.Open(path, nil)
	if err != nil {
		return nil, err
	}
	if p.Accounting.Dropped > 0 {
		return nil, wrong("%s has more events than can be kept apart: it can be cut by --range only", path)
	}
	if len(v.labels)+len(f.Threads) > 0 {
		known := threads.Known(p)
		found, not := v.findThreads(known, f.Threads)
		n.add(not, known)
		if len(found) == 0 {
			return func(int) bool { return false }, nil
		}
		f.Threads = found
	}
	var ss []*profile.Selection
	for i := range p.Events {
		if v.event == "" || p.Events[i].Name() == v.event || p.Events[i].Granted == v.event {
			ss = append(ss, p.Select(f.WithEvent(i)))
		}
	}
	if v.event != "" && len(ss) == 0 {
		return nil, wrong("%s has no event %q%s", path, v.event, eventList(p))
	}
	return func(i int) bool {
		for _, s := range ss {
			if s.Keeps(i) {
				return true
			}
		}
		return false
	}, nil
}
