package view

import (
	"regexp"

	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/ui/keymap"
	"ccagent/ui/layout"
	"ccagent/ui/model"
	"ccagent/ui/widget"
)

// Context is what all screens share. The event loop owns it.
type Context struct {
	Profile *profile.Profile
	Data    *model.Data // the latest; never nil
	Stack   model.Stack
	Event   int
	Base    float64 // what a share of the kept samples is multiplied with: 1, or kept/all
	Whole   bool    // shares are of all samples, not of those kept
	Sort    Sort
	Minimum float64
	Filter  Pattern
	Search  Pattern
	Raw     bool // linker symbols

	Selected model.Key      // the element that everything else relates to
	File     columns.FileID // whose source is shown
	Line     int            // the source cursor, 1-based; 0 = none yet

	Window    Window
	Bookmarks []uint64 // moments, ns, in order
	Invert    bool
	Core      bool           // Core in the place of the source
	Sandwich  model.Function // whose callers and callees screen 3 shows; zero for none

	// Goto is set by a screen that wants another one opened: an action of the
	// screens' group. The event loop carries it out and clears it.
	Goto keymap.Action
}

// Window is the stretch of time the timeline shows, and its cursor.
type Window struct {
	From, To uint64
	Cols     int
	Cursor   int // column
}

// Pattern is a regular expression as the user typed it.
type Pattern struct {
	Text   string
	RE     *regexp.Regexp // nil when empty
	Invert bool
}

// Compile reads a pattern: smart case, and with invertible a leading "!" inverts.
func Compile(text string, invertible bool) (Pattern, error) {
	p := Pattern{Text: text}
	body := text
	if invertible && len(body) > 0 && body[0] == '!' {
		p.Invert, body = true, body[1:]
	}
	if body == "" {
		return Pattern{}, nil
	}
	expr := body
	if !hasUpper(body) {
		expr = "(?i)" + body
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		// The error of what was typed, not of what was made of it.
		if _, plain := regexp.Compile(body); plain != nil {
			err = plain
		}
		return Pattern{}, err
	}
	p.RE = re
	return p, nil
}

func hasUpper(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' { // \W, \S: not letters of the text
			i++
			continue
		}
		if s[i] >= 'A' && s[i] <= 'Z' {
			return true
		}
	}
	return false
}

// Match reports whether s is wanted; an empty pattern wants all.
func (p *Pattern) Match(s string) bool {
	return p.RE == nil || p.RE.MatchString(s) != p.Invert
}

// Sort is the order of the hot list.
type Sort uint8

// The orders.
const (
	ByShare Sort = iota
	ByOnly
	ByInclusive
	ByName
	sorts
)

func (s Sort) String() string { return [...]string{"share", "only", "inclusive", "name"}[s] }

// ParseSort reads an order's name.
func ParseSort(name string) (Sort, bool) {
	for s := range sorts {
		if s.String() == name {
			return s, true
		}
	}
	return 0, false
}

// Next is the order after s.
func (s Sort) Next() Sort { return (s + 1) % sorts }

// Subject is what transforms, copying and the editor act on.
type Subject struct {
	Name  string        // as scripts see it; empty if nothing is selected
	Level profile.Level // LevelModule or LevelPackage if Name is one; else LevelBinding
	// Module and Package are what Name lies in; Function is set if it is one.
	Module, Package string
	Function        bool
	Key             model.Key
	Path            string
	Line            int
	Symbol          string
	Row             string // the row as text, for copying
}

// Mouse is a mouse event inside a screen.
type Mouse struct {
	X, Y   int
	Kind   MouseKind
	Double bool
}

// MouseKind is what the mouse did.
type MouseKind uint8

// What a mouse does.
const (
	Press MouseKind = iota
	Drag
	Release
	WheelUp
	WheelDown
)

// Screen is one of the numbered screens.
type Screen interface {
	// Do carries out an action. What it answers is shown to the user.
	Do(a keymap.Action) string
	// Why says why the action is off now; empty if it is on.
	Why(a keymap.Action) string
	Mouse(m Mouse) string
	Draw(p *widget.Painter, frame layout.Frame)
	Subject() Subject
	// Find moves to the next (by 1) or previous (by −1) match, or with by 0 to
	// the first at or after the cursor. It reports whether there is one.
	Find(p *Pattern, by int) bool
	// Back closes what the screen has open; false if nothing was.
	Back() bool
	// Needs adds what the screen shows beyond the common parts.
	Needs(n *model.Need)
}

// Owner is a screen for which actions that otherwise concern all screens, or
// another one, mean something of its own.
type Owner interface {
	Owns(a keymap.Action) bool
}

// Owns reports whether a screen has a meaning of its own for an action.
func Owns(s Screen, a keymap.Action) bool {
	o, ok := s.(Owner)
	return ok && o.Owns(a)
}
