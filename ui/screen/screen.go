// Package screen says what a screen of the viewer is, and holds what screens share. Each
// screen is a package below this one: its query and the computation of it, drawing, keys, and
// the report that prints the same as text and JSON. Package ui registers them.
//
// A screen gets actions, never keys; what it cannot do it says why. It draws what
// [model.Data] holds and asks for other data by changing the [Context]; it never queries the
// profile itself, so drawing never waits.
package screen

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"ccagent/profile"
	"ccagent/ui/keymap"
	"ccagent/ui/layout"
	"ccagent/ui/model"
	"ccagent/ui/printer"
	"ccagent/ui/widget"
)

// The screens that others refer to, by name.
const (
	Hot     = "hot"
	Source  = "source"
	Stacks  = "stacks"
	Centres = "ccs"
	Heap    = "heap"
	Diff    = "diff"
	Alloc   = "alloc"

	DiffFlame = "diffflame"
	Chart     = "chart"
	Threads   = "threads"
	Dump      = "dump"
	Code      = "code"
)

// Kind is a screen as it is registered. Its number, key and tab follow from its place among
// the registered ones.
type Kind struct {
	Name string // what is typed to open it, in the names of exported files, and where it can be of the command that prints its report
	Tab  string // its name in the title bar, of at most five letters: Name or a word of its help, or short for it
	Keys keymap.Screen
	// Off says why the screen is not available for what is open; empty if it is. It may be nil.
	Off func(*Context) string
	// First reports whether the viewer starts with this screen. It may be nil.
	First func(*Context) bool
	New   func(*Context) Screen
	// Endings are the file name endings of its own export formats, besides .txt and .json. A
	// screen that has any is an Exporter.
	Endings []string
}

// Screen is one of the viewer's screens.
type Screen interface {
	// Query is all that decides what is on screen.
	Query() model.Query
	Draw(p *widget.Painter, frame layout.Frame)
	// Do carries out an action. The text that it returns is shown to the user.
	Do(a keymap.Action) string
	// Why says why the action is off now; empty if it is on.
	Why(a keymap.Action) string
	Mouse(m Mouse)
	Subject() Subject
	// Find moves to the next (by 1) or previous (by −1) match, or with by 0 to
	// the first at or after the cursor. It reports whether there is one.
	Find(p *Pattern, by int) bool
	// Back closes what the screen has open; false if nothing was.
	Back() bool
	// Report returns a function that makes the report of what is on screen. The function runs
	// beside the event loop, so it must not use the screen. An error says why there is no
	// report.
	Report() (func(*profile.Selection) (printer.Report, error), error)
}

// Exporter is a screen with formats of its own.
type Exporter interface {
	// Export returns the writer for one of the kind's endings.
	Export(ending string) func(io.Writer, *profile.Selection) error
}

// Rekeyer is a screen that keeps elements by their keys.
type Rekeyer interface {
	// Rekey translates the keys to another profile of the same log.
	Rekey(to func(model.Key) model.Key)
}

// Prompt asks the user for a line of text.
type Prompt struct {
	Label, Hint, Value string
	// Check says what is wrong with what was typed so far. It may be nil.
	Check func(text string) error
	// Accept takes the line. The text that it returns is shown to the user.
	Accept func(text string) (string, error)
}

// WriteNew writes a file; it never overwrites one.
func WriteNew(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s is there already; give another name", path)
	}
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	return errors.Join(err, f.Close())
}
