package ui

import (
	"fmt"
	"image"

	tea "charm.land/bubbletea/v2"

	"ccagent/ui/keymap"
	"ccagent/ui/layout"
	"ccagent/ui/screen"
	"ccagent/ui/widget"
)

// tour is three steps for those who see the viewer for the first time, in a box over the screen. It comes once by itself, where a log is
// opened on its main screen, and when it is asked for (?t). Keys that are not its own end it, and do what they always do.
type tour struct{ step int }

// tourStep is what one step says. Keys are named by their actions, so that the text follows the table of keys.
type tourStep struct {
	title string
	text  []string
}

// tourSteps are the steps, with the keys of today.
func tourSteps() []tourStep {
	k := func(a keymap.Action) string { return keyTable.Of(a).FirstKey() }
	return []tourStep{
		{"what is hot", []string{
			"The list has the functions by share: the part of the samples that hit them. " +
				"Shares overlap; only is what no other function has part in, and ±95% how far a share may be off.",
			fmt.Sprintf("%s and %s move; the source of the row stands beside it.", k(keymap.Down), k(keymap.Up)),
		}},
		{"look closer", []string{
			fmt.Sprintf("%s opens a function's source, or what (GC) and (kernel) are made of. %s is who called whom, as a flame graph.", k(keymap.Open), screenKey(screen.Stacks)),
			fmt.Sprintf("%s keeps the samples with the function, %s drops them; %s takes that back.", k(keymap.Focus), k(keymap.Drop), k(keymap.Pop)),
		}},
		{"everywhere", []string{
			fmt.Sprintf("The line at the top has the screens, the last line the keys of this one; both can be clicked. %s shows the next event, %s searches.", k(keymap.Metric), k(keymap.Search)),
			fmt.Sprintf("%s lists all keys, and why some are off; %st shows this tour again; %s quits.", k(keymap.Help), k(keymap.Help), k(keymap.Quit)),
		}},
	}
}

// tourWidth and tourHeight are the size of the terminal from which on there is room for the tour.
const (
	tourWidth  = 60
	tourHeight = 16
)

// key takes a key. It reports whether the tour is over, and whether the key was its own.
func (t *tour) key(msg tea.KeyPressMsg) (over, taken bool) {
	switch msg.String() {
	case "enter", "space", "right":
		t.step++
		return t.step >= len(tourSteps()), true
	case "left", "backspace":
		t.step = max(0, t.step-1)
		return false, true
	case "esc":
		return true, true
	}
	return true, false
}

// draw draws the step at the lower end of the body.
func (t *tour) draw(p *widget.Painter, body layout.Rect) {
	if body.Dx() < tourWidth || body.Dy() < tourHeight-4 {
		return
	}
	steps := tourSteps()
	s := steps[min(t.step, len(steps)-1)]
	width := min(76, body.Dx()-4)
	var lines []string
	for _, text := range s.text {
		lines = append(lines, screen.Wrap(p, text, width-4)...)
	}
	r := layout.Dialog(body, width, len(lines)+3)
	r = r.Add(image.Pt(0, body.Max.Y-1-r.Max.Y))
	p.Fill(r, p.Theme.Text)
	p.Box(r, fmt.Sprintf("%d of %d: %s", t.step+1, len(steps), s.title), "a tour", true)
	for i, l := range lines {
		p.Text(r.Min.X+2, r.Min.Y+1+i, r.Max.X-1, l, p.Theme.Text)
	}
	next := "enter next   esc skips the tour"
	if t.step == len(steps)-1 {
		next = "enter ends the tour"
	}
	p.Right(r.Min.X+1, r.Max.X-2, r.Max.Y-2, next, p.Theme.Dim)
}
