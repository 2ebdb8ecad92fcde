package ui

import (
	"fmt"

	"ccagent/ui/keymap"
	"ccagent/ui/layout"
	"ccagent/ui/screen"
	"ccagent/ui/widget"
)

// deck is the screens of the open log, of which one is shown, and their tabs.
type deck struct {
	screens []screen.Screen // by their place among kinds; nil where there is none
	at      int             // the one that is shown
	before  int             // the one shown before it
	tabs    []tab           // as drawn
	row     int             // of the tabs; −1 where there is no line for them
}

// tab is a screen's name in the title bar.
type tab struct {
	screen int
	text   string
	x      int
}

// fill makes the screens of a log, and shows the one that comes first.
func (d *deck) fill(c *screen.Context) {
	d.screens = make([]screen.Screen, len(kinds))
	for i, k := range kinds {
		if k.Off == nil || k.Off(c) == "" {
			d.screens[i] = k.New(c)
		}
	}
	for i, k := range kinds {
		if k.First != nil && k.First(c) {
			d.show(i)
		}
	}
}

// current returns the screen that is shown.
func (d *deck) current() screen.Screen { return d.screens[d.at] }

// kind returns the kind of the screen that is shown.
func (d *deck) kind() *screen.Kind { return &kinds[d.at] }

// show shows a screen.
func (d *deck) show(i int) {
	if i != d.at {
		d.before, d.at = d.at, i
	}
}

// layTabs places the tabs at the right end of the title bar: with names, with numbers
// alone, or none, as fits to the right of column from.
func (d *deck) layTabs(r layout.Rect, from int) []tab {
	for form := range 3 { // with names, apart, close
		var out []tab
		width := 0
		for i := range kinds {
			text := fmt.Sprintf(" %d ", i+1)
			switch {
			case i == d.at:
				text = fmt.Sprintf("[%d]", i+1)
			case form == 2:
				text = fmt.Sprint(i + 1)
			}
			if form == 0 {
				text += kinds[i].Tab + " "
			}
			out = append(out, tab{screen: i, text: text})
			width += len(text)
		}
		if x := r.Max.X - width; x >= from {
			for i := range out {
				out[i].x = x
				x += len(out[i].text)
			}
			return out
		}
	}
	return nil
}

// drawTabs draws the tabs to the right of column from.
func (d *deck) drawTabs(p *widget.Painter, r layout.Rect, from int, why func(keymap.Action) string) {
	d.tabs, d.row = d.layTabs(r, from), r.Min.Y
	for _, t := range d.tabs {
		st := p.Theme.Dim
		switch {
		case t.screen == d.at:
			st = p.Theme.Title
		case why(keymap.OpenScreen(t.screen)) == "":
			st = p.Theme.Text
		}
		p.Text(t.x, r.Min.Y, r.Max.X, t.text, st)
	}
}

// tabAt reports whether the mouse is on the line of tabs, and returns the screen whose tab it is
// on; −1 if it is on none.
func (d *deck) tabAt(m screen.Mouse) (int, bool) {
	if m.Y != d.row {
		return 0, false
	}
	for _, t := range d.tabs {
		if m.X >= t.x && m.X < t.x+len(t.text) {
			return t.screen, true
		}
	}
	return -1, true
}
