package ui

import (
	"errors"
	"fmt"
	"strings"

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

// tab is a screen's key and name in the title bar, or the name of a key that is held.
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

// refill makes the screens that a log had nothing for and that it has something for now.
func (d *deck) refill(c *screen.Context) {
	for i, k := range kinds {
		if d.screens[i] == nil && (k.Off == nil || k.Off(c) == "") {
			d.screens[i] = k.New(c)
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

// The forms of tabs, from the fullest: spaced names, names, the name of the screen that is shown
// among numbers, and numbers alone.
const (
	tabsSpaced = iota
	tabsNamed
	tabsOneNamed
	tabsNumbered
	tabForms
)

// tabText is a tab's text in a form: the digit that opens the screen, and its name.
func (d *deck) tabText(i, form int) string {
	_, key := keymap.ScreenKey(i)
	name := kinds[i].Tab
	if form == tabsNumbered || form == tabsOneNamed && i != d.at {
		name = ""
	}
	switch {
	case i == d.at:
		return "[" + key + name + "]"
	case form == tabsSpaced:
		return " " + key + name + " "
	}
	return " " + key + name
}

// line is the tabs in a form, from column x on: tabs proper, and marks that name the key which is held
// for the digits of the tabs behind it. It returns the column behind them, too.
func (d *deck) line(form, x int) (tabs, marks []tab, end int) {
	holds := ""
	for i := range d.screens {
		if d.screens[i] == nil {
			continue // this log has nothing for it; ? says why
		}
		if held, _ := keymap.ScreenKey(i); held != holds {
			holds = held
			mark := tab{screen: -1, text: " " + held + ":", x: x}
			marks = append(marks, mark)
			x += len(mark.text)
		}
		t := tab{screen: i, text: d.tabText(i, form), x: x}
		tabs = append(tabs, t)
		x += len(t.text)
	}
	return tabs, marks, x
}

// tabsWidth is the width of all tabs in a form.
func (d *deck) tabsWidth(form int) int {
	_, _, width := d.line(form, 0)
	return width
}

// layTabs places the tabs at the right end of the title bar, in the fullest form that fits to the
// right of column from; none if none does.
func (d *deck) layTabs(r layout.Rect, from int) (tabs, marks []tab) {
	for form := range tabForms {
		if x := r.Max.X - d.tabsWidth(form); x >= from {
			tabs, marks, _ = d.line(form, x)
			return tabs, marks
		}
	}
	return nil, nil
}

// drawTabs draws the tabs to the right of column from.
func (d *deck) drawTabs(p *widget.Painter, r layout.Rect, from int, why func(keymap.Action) string) {
	var marks []tab
	d.tabs, marks = d.layTabs(r, from)
	d.row = r.Min.Y
	for _, m := range marks {
		p.Text(m.x, r.Min.Y, r.Max.X, m.text, p.Theme.Dim)
	}
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

// ask returns the prompt for a screen's name.
func (d *deck) ask(c *screen.Context, why func(keymap.Action) string) *screen.Prompt {
	var names []string
	for i := range d.screens {
		if d.screens[i] != nil && i != d.at {
			names = append(names, kinds[i].Name)
		}
	}
	find := func(text string) (int, error) {
		text = strings.ToLower(strings.TrimSpace(text))
		var at []int
		for i := range kinds {
			if kinds[i].Name == text || strings.EqualFold(kinds[i].Tab, text) {
				at = []int{i}
				break
			}
			if strings.HasPrefix(kinds[i].Name, text) || strings.HasPrefix(strings.ToLower(kinds[i].Tab), text) {
				at = append(at, i)
			}
		}
		switch {
		case len(at) == 0:
			return 0, fmt.Errorf("no screen is called so: %s", strings.Join(names, " "))
		case len(at) > 1:
			return 0, fmt.Errorf("%s or %s?", kinds[at[0]].Name, kinds[at[1]].Name)
		}
		if off := why(keymap.OpenScreen(at[0])); off != "" {
			return 0, errors.New(off)
		}
		return at[0], nil
	}
	return &screen.Prompt{
		Label: "screen: ", Hint: strings.Join(names, " "),
		Check: func(text string) error {
			if text == "" {
				return nil
			}
			_, err := find(text)
			return err
		},
		Accept: func(text string) (string, error) {
			if text == "" {
				return "", nil
			}
			i, err := find(text)
			if err == nil {
				c.Goto = kinds[i].Name
			}
			return "", err
		},
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
