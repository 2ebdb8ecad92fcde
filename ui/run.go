package ui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"runtime/debug"

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
	Path string // watched for changes; empty if the log is not a file
	// Load reads it; it runs beside the event loop.
	Load func(progress func(done, total int64)) (*profile.Profile, error)
	// Follow, if not nil, takes Load's place: the log is shown as it grows.
	Follow func() (*columns.Follower, error)
	// Live is set if names are looked up while the log grows.
	Live bool
	// Dump, if not nil, has what the program's threads do now written into the log that is followed. It returns when it is there.
	Dump func() error
}

// File is the source that reads a log from a file.
func File(path string) Source {
	return Source{
		Name: filepath.Base(path), Path: path,
		Load: func(progress func(done, total int64)) (*profile.Profile, error) { return profile.Open(path, progress) },
	}
}

// Options say how to show a log. The zero value is a good choice.
type Options struct {
	Event string // by its name; empty means the log's first with samples
	// Filter gives the first transforms, which can be undone; its event is ignored.
	Filter profile.Filter
	Theme  string // one of Themes; empty: by the terminal's background, or plain with NO_COLOR
	ASCII  bool   // draw with ASCII alone
	// Sealed says why no file may be written and no program started; empty if they may.
	Sealed string
	// Against, if not nil, is what to compare in place of one log.
	Against *Against
}

// ErrNotTerminal is returned where there is no terminal to draw on; print text instead.
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
	app.kept = kept
	defer debug.SetGCPercent(debug.SetGCPercent(garbageShare))
	program := tea.NewProgram(app, tea.WithContext(ctx), tea.WithFPS(framesPerSecond))
	app.out.idle.program = program
	_, err = program.Run()
	if app.log.live.feed != nil {
		app.log.live.feed.Close()
	}
	app.keepBookmarks()
	if err := save(app.kept.settings); err != nil {
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

// firstHint is shown to users who have never run the viewer.
const firstHint = "? shows all keys, ?t a tour, enter opens, esc goes back, q quits"

// memory is the settings of an earlier run, and the first message.
type memory struct {
	settings
	hint  string
	warns bool
	first bool // this user has not run the viewer before, and that it runs now is written down
}

// remembered loads the settings, and sets the theme unless the options have one. save
// writes settings that differ from those loaded. A file that cannot be read is reported
// in the first message and never overwritten.
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
		// Now, so that a viewer that is killed is no reason to show the tour again.
		if err := at.save(m.settings); err == nil {
			m.first, was = true, m.settings
		}
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
