package screen

import (
	"math"

	"ccagent/internal/format"
	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/ui/model"
)

// Context is what all screens share. The event loop owns it.
type Context struct {
	Profile *profile.Profile
	Data    *model.Data // the latest; never nil
	Applied model.History
	Event   int
	Base    float64 // factor for all shares: 1, or kept/all samples where shares are of all
	Whole   bool    // shares are of all samples, not of those kept
	Sort    Sort
	Minimum float64
	Filter  Pattern
	Search  Pattern
	Raw     bool // linker symbols

	Selected model.Key      // the selected element, the same on all screens
	File     columns.FileID // whose source is shown
	Line     int            // the source cursor, 1-based; 0 = none yet

	Window    Window
	Bookmarks []uint64 // moments, ns, in order
	Invert    bool
	Core      bool     // Core in the place of the source
	Sandwich  Function // whose callers and callees the stacks' screen shows; zero for none

	Code CodeOf // whose machine code is shown

	Compared *Compared // nil if one log is open
	Sealed   string    // why nothing may be written; empty if it may
	// Key gives the key that opens a screen.
	Key func(name string) string

	// Goto and Ask are requests to the event loop, which carries them out and clears them:
	// to open another screen, by its name, and to ask the user for a line of text.
	Goto string
	Ask  *Prompt
}

// Rebase sets the factor for shares by the latest data.
func (c *Context) Rebase() {
	c.Base = 1
	if s := c.Data.Summary; c.Whole && s != nil && s.AllWeight > 0 {
		c.Base = float64(s.Weight) / float64(s.AllWeight)
	}
}

// Function names a function of a call tree; the zero Function is none.
type Function struct{ Name, Module, Package string }

// CodeOf names what machine code was asked for, and what was selected then: another selection takes
// its place.
type CodeOf struct {
	Name     string
	Selected model.Key
}

// CodeName names the element whose machine code is to be shown; empty if there is none.
func (c *Context) CodeName() string {
	if c.Code.Name != "" && c.Code.Selected == c.Selected {
		return c.Code.Name
	}
	if r := c.Row(c.Selected); r != nil && r.Key.Level == profile.LevelBinding {
		return r.Full
	}
	return ""
}

// Query is the common query of all screens, with a screen's own part.
func (c *Context) Query(part model.Part) model.Query {
	return model.Query{Samples: c.Samples(), Selected: c.Selected, File: c.File, Part: part}
}

// QueryWindow is Query for a screen with a time axis.
func (c *Context) QueryWindow(part model.Part) model.Query {
	q := c.Query(part)
	q.Window = c.Window.Window
	return q
}

// Samples is the current event and transforms.
func (c *Context) Samples() model.Samples {
	return model.Samples{Event: c.Event, Transforms: model.TransformsOf(c.Applied.All()...)}
}

// Part returns the answer to a screen's own part of the query; nil until it is computed.
func Part[T any](c *Context) *T {
	p, _ := c.Data.Part.(*T)
	return p
}

// Window is the stretch of time the timeline shows, and its cursor.
type Window struct {
	model.Window
	Cursor int // column
}

// At is the first time of a column.
func (w *Window) At(col int) uint64 {
	if w.Cols <= 0 {
		return w.From
	}
	return w.From + uint64(math.Ceil(float64(w.To-w.From)*float64(col)/float64(w.Cols)))
}

// Column is the column that holds a time; it may lie outside.
func (w *Window) Column(t uint64) int {
	if w.To <= w.From {
		return 0
	}
	return int(math.Floor((float64(t) - float64(w.From)) / float64(w.To-w.From) * float64(w.Cols)))
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
	Only            string // the side that alone has it: A or B; empty if both do, or one log is open
}

// WhyNoTimeline is the reason why the timeline's keys are off on other screens.
func (c *Context) WhyNoTimeline() string {
	return "the timeline is on the main screen; " + c.Key(Hot) + " goes there"
}

// WhyNoSamples says why there is nothing on screens of samples: the log is of another kind; empty if it
// has samples, or was to have some.
func (c *Context) WhyNoSamples() string {
	if len(c.Profile.Events) == 0 && c.Profile.Samples() == 0 {
		return "the log has no samples"
	}
	return ""
}

// WhyNoUndo says why there is no transform to undo; empty if there is.
func (c *Context) WhyNoUndo() string {
	if c.Applied.CanUndo() {
		return ""
	}
	return "no transform to undo"
}

// WhyNoRedo says why there is nothing to redo; empty if there is.
func (c *Context) WhyNoRedo() string {
	if c.Applied.CanRedo() {
		return ""
	}
	return "nothing to redo"
}

// Unit is the unit of the event's weights; empty if there is no event.
func (c *Context) Unit() string {
	if c.Event < 0 || c.Event >= len(c.Profile.Events) {
		return ""
	}
	return c.Profile.Events[c.Event].Unit
}

// WeightWidth is the width of a column of weights, with the space after it.
const WeightWidth = 9

// WeightHead is the heading of a column of weights.
func (c *Context) WeightHead() string {
	switch u := c.Unit(); u {
	case "ns":
		return "time"
	case "bytes", "cycles", "":
		return u
	default:
		return "count"
	}
}

// Weight gives a share of the samples kept in the event's unit; empty before that is known.
func (c *Context) Weight(share float64) string {
	s := c.Data.Summary
	if s == nil {
		return ""
	}
	return format.Brief(uint64(share*float64(s.Weight)+0.5), c.Unit())
}
