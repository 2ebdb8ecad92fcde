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
	"ccagent/ui/model"

	"github.com/spf13/cobra"
)

// tui shows a log in the terminal. What is wrong with the log is on its
// screens; what is no log at all never gets there.
func (v *view) tui(c *cobra.Command, path string) error {
	f, _, err := v.check(c)
	if err != nil {
		return err
	}
	for _, flag := range []string{"thread", "cap", "pid", "tid", "category"} {
		if c.Flags().Changed(flag) {
			return wrong("--%s is for the text views: %s hot --%s … %s", flag, c.Root().Name(), flag, path)
		}
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGHUP)
	defer stop()
	err = ui.Run(ctx, ui.File(path), ui.Options{Event: v.event, Stack: v.transforms(f.Range)})
	var header *eventlog.HeaderError
	var missing *fs.PathError
	switch {
	case errors.Is(err, ui.ErrNotTerminal):
		return v.hot(c, path)
	case errors.As(err, &header), errors.As(err, &missing):
		return unreadable(path, err)
	}
	return err
}

// transforms are the flags as the viewer's own steps, to be undone there.
func (v *view) transforms(r profile.Range) []model.Transform {
	var ts []model.Transform
	if r != (profile.Range{}) {
		ts = append(ts, model.Transform{Op: model.OpRange, From: r.From, To: r.To})
	}
	for _, x := range []struct {
		op  model.Op
		res []string
	}{{model.OpFocus, v.focus}, {model.OpDrop, v.ignore}, {model.OpHide, v.hide}} {
		for _, re := range x.res {
			ts = append(ts, model.Transform{Op: x.op, Name: re, Expr: true})
		}
	}
	return ts
}
