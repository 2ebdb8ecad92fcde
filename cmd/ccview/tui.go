package main

import (
	"context"
	"errors"
	"io/fs"
	"os/signal"
	"syscall"

	"ccagent/eventlog"
	"ccagent/profile"
	"ccagent/ui"
	"ccagent/ui/theme"

	"github.com/spf13/cobra"
)

// tui shows a log in the terminal. What is wrong with the log is on its
// screens; what is no log at all never gets there.
func (v *view) tui(c *cobra.Command, path string) error {
	f, _, err := v.check(c)
	if err != nil {
		return err
	}
	src := ui.File(path)
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
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err = ui.Run(ctx, src, ui.Options{Event: v.event, Filter: f, Theme: v.theme, ASCII: v.ascii})
	var header *eventlog.HeaderError
	var missing *fs.PathError
	var unknown *theme.UnknownError
	switch {
	case errors.Is(err, ui.ErrNotTerminal):
		return v.hot(c, path)
	case errors.As(err, &unknown):
		return &wrongCall{err}
	case errors.As(err, &header), errors.As(err, &missing):
		return unreadable(path, err)
	}
	return err
}
