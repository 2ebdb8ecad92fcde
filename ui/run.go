package ui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/term"

	"ccagent/internal/printable"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/ui/theme"
)

// Source is a log to view.
type Source struct {
	Name string // shown
	Path string // watched for changes; empty if it is no file's
	// Load reads it; it runs beside the event loop.
	Load func(progress func(done, total int64)) (*profile.Profile, error)
	// Follow, if not nil, takes Load's place: the log is shown as it grows.
	Follow func() (*columns.Follower, error)
	// Live tells that names are looked up while the log grows.
	Live bool
}

// File is the source that reads a log from a file.
func File(path string) Source {
	return Source{
		Name: filepath.Base(path), Path: path,
		Load: func(progress func(done, total int64)) (*profile.Profile, error) { return profile.Open(path, progress) },
	}
}

// Options say how to show it. The zero value is a good choice.
type Options struct {
	Event string // by its name; empty means the log's first with samples
	// Filter holds from the beginning; its event is ignored. What it says of time
	// and names can be undone.
	Filter profile.Filter
	Theme  string // one of Themes; empty: by the terminal's background, or plain with NO_COLOR
	ASCII  bool   // draw with ASCII alone
	// Sealed says why nothing may be written and no program started, where that is
	// so.
	Sealed string
	// Against, if not nil, is what to compare in place of one log.
	Against *Against
}

// ErrNotTerminal tells that there is no terminal to draw on; print text instead.
var ErrNotTerminal = errors.New("standard output is not a terminal the viewer can draw on")

// Usable reports whether the viewer can run here: stdin and stdout are
// terminals and TERM names one that can move its cursor.
func Usable() bool {
	t := os.Getenv("TERM")
	return t != "" && t != "dumb" && term.IsTerminal(os.Stdout.Fd()) && term.IsTerminal(os.Stdin.Fd())
}

// Run shows a log until the user quits. The error is ErrNotTerminal, that of
// loading, or that of the terminal.
func Run(ctx context.Context, src Source, o Options) error {
	if !Usable() {
		return ErrNotTerminal
	}
	if o.Theme == "" && os.Getenv("NO_COLOR") != "" {
		o.Theme = "plain"
	}
	o.ASCII = o.ASCII || !unicodeLocale(os.Getenv)
	kept, save := remembered(&o)
	app, err := newApp(src, o)
	if err != nil {
		return err
	}
	app.kept = kept.settings
	app.hint, app.hintWarns = kept.hint, kept.warns
	_, err = tea.NewProgram(app, tea.WithContext(ctx)).Run()
	if app.live.feed != nil {
		app.live.feed.Close()
	}
	app.keepBookmarks()
	if err := save(app.kept); err != nil {
		fmt.Fprintf(os.Stderr, "ccview: %s\n", printable.Line(err.Error())) // the screen is the shell's again
	}
	switch {
	case app.err != nil:
		return app.err
	case err != nil && ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("run viewer: %w", err)
	}
	return nil
}

// Themes lists the themes' names, for the command line's help.
func Themes() []string { return theme.Names() }

// firstHint greets who has never run the viewer.
const firstHint = "? shows all keys, enter opens, esc goes back, q quits"

// memory is what an earlier run left, and what is to be said at the beginning.
type memory struct {
	settings
	hint  string
	warns bool
}

// remembered loads the settings; the theme holds unless another is asked for.
// What save is given is written if it is not what was loaded. What is wrong with
// the file is said and left alone.
func remembered(o *Options) (m memory, save func(settings) error) {
	save = func(settings) error { return nil }
	at, err := findStore()
	if err == nil {
		m.settings, err = at.load()
	}
	if err != nil {
		m.hint, m.warns = err.Error(), true
		return m, save
	}
	was := m.settings
	if !m.Seen {
		m.hint, m.Seen = firstHint, true
	}
	if o.Theme == "" {
		o.Theme = m.Theme
	}
	return m, func(now settings) error {
		if reflect.DeepEqual(now, was) {
			return nil
		}
		return at.save(now)
	}
}
