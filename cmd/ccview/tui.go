package main

import (
	"context"
	"errors"
	"io/fs"
	"os/signal"
	"syscall"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/profile/closures"
	"ccagent/profile/diff"
	"ccagent/ui"
	"ccagent/ui/theme"

	"github.com/spf13/cobra"
)

// tui shows a log in the viewer. Problems of the log appear on its screens; a file that
// is not a log is refused before.
func (v *view) tui(c *cobra.Command, path string) error {
	f, _, err := v.check(c)
	if err != nil {
		return err
	}
	_, _, folder, err := v.choose(path)
	if err != nil {
		return err
	}
	if err := v.place(path, &f); err != nil {
		return err
	}
	if v.follow {
		if folder {
			return &wrongCall{errFollowFolder}
		}
		return v.run(ui.Follow(path), ui.Options{Event: v.event, Filter: f}, path, nil)
	}
	src := v.source(path, folder, f)
	read := src.Load
	src.Load = func(progress func(done, total int64)) (*profile.Profile, error) {
		p, err := read(progress)
		if err != nil {
			return nil, err
		}
		if _, ok := p.EventNamed(v.event); v.event != "" && !ok {
			return nil, wrong("%s has no event %q%s", path, v.event, eventList(p))
		}
		return p, nil
	}
	return v.run(src, ui.Options{Event: v.event, Filter: f}, path, func() error { return v.hot(c, path) })
}

// source is what the viewer reads of a path, which has to have the threads of the filter.
func (v *view) source(path string, folder bool, f profile.Filter) ui.Source {
	src := ui.File(path)
	if folder {
		src.Path = "" // the logs in it come and go
		src.Load = func(progress func(done, total int64)) (*profile.Profile, error) { return v.loadFolder(path, progress) }
	}
	read := src.Load
	src.Load = func(progress func(done, total int64)) (*profile.Profile, error) {
		p, err := read(progress)
		if err == nil {
			err = v.chooseThreads(p, path, &f)
		}
		return p, err
	}
	return src
}

// tuiDiff shows a comparison of two groups of logs in the viewer.
func (v *view) tuiDiff(c *cobra.Command, a, b []string, o diff.Options) error {
	var bands *closures.Grouping
	if by, err := closures.ParseGrouping(v.level); err == nil && c.Flags().Changed("level") {
		if bands = &by; by == closures.ByType || by == closures.ByKind { // samples have no such level
			v.level = profile.LevelBinding.String()
		}
	}
	f, level, err := v.check(c)
	if err != nil {
		return err
	}
	g := &ui.Against{Level: level, Bands: bands, Options: o}
	for _, side := range []struct {
		paths []string
		to    *[]ui.Source
	}{{a, &g.A}, {b, &g.B}} {
		for _, path := range side.paths {
			_, _, folder, err := v.choose(path)
			if err != nil {
				return err
			}
			if !folder && !v.span.Open() {
				return wrong("--range %s: of logs that are compared, the wall clock's time can be chosen on folders only", v.rng)
			}
			*side.to = append(*side.to, v.source(path, folder, f))
		}
	}
	return v.run(g.B[0], ui.Options{Event: v.event, Filter: f, Against: g}, b[0], nil)
}

// run runs the viewer, or calls instead if there is no terminal.
func (v *view) run(src ui.Source, o ui.Options, path string, instead func() error) error {
	if err := v.unlabelled(); err != nil {
		if _, terminal := v.stdout.Terminal(); terminal || instead == nil {
			return err
		}
		return instead()
	}
	o.Theme, o.ASCII = v.theme, v.ascii
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err := ui.Run(ctx, src, o)
	var header *eventlog.HeaderError
	var missing *fs.PathError
	var unknown *theme.UnknownError
	var which *ui.LogError
	if errors.As(err, &which) {
		path = which.Name
		err = which.Err
	}
	switch {
	case errors.Is(err, ui.ErrNotTerminal) && instead != nil:
		return instead()
	case errors.As(err, &unknown):
		return &wrongCall{err}
	case errors.As(err, &header), errors.As(err, &missing):
		return unreadable(path, err)
	}
	return err
}
