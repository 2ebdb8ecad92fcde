package ui

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"ccagent/profile"
	"ccagent/ui/keymap"
	"ccagent/ui/layout"
	"ccagent/ui/model"
	"ccagent/ui/safe"
	"ccagent/ui/screen"
	"ccagent/ui/widget"
)

// prompt asks for a line of text in the place of the footer. Searches and filters
// take effect while they are typed, and esc takes them back.
type prompt struct {
	what   keymap.Action
	screen *screen.Prompt // set if a screen asks; what is empty then
	label  string
	hint   string
	input  textinput.Model
	err    string
	c      *screen.Context
	before screen.Context // restored on esc
	export exporter
}

var labels = map[keymap.Action][2]string{
	keymap.Search:    {"/", "regular expression; n and N step, esc leaves"},
	keymap.Filter:    {"&", "regular expression; ! first inverts, empty lists all"},
	keymap.Minimum:   {"least share in %: ", "rows below it are left out; 0 lists all"},
	keymap.FocusExpr: {"focus /", "keeps samples with a frame whose name matches"},
	keymap.Export:    {"export to ", exportHint()},
	keymap.Only:      {"keep only ", "thread N, cap N, tid N, pid N, cpu N or a category"},
}

// newPrompt makes the prompt of an action.
func newPrompt(what keymap.Action, c *screen.Context, x exporter) *prompt {
	p, value := &prompt{what: what, label: labels[what][0], hint: labels[what][1], export: x}, ""
	switch what {
	case keymap.Filter:
		value = c.Filter.Text
	case keymap.Export:
		value = x.suggested()
	case keymap.Only:
		p.hint = whatOnly(c)
	case keymap.Minimum:
		if c.Minimum > 0 {
			value = strconv.FormatFloat(100*c.Minimum, 'g', 4, 64)
		}
	}
	return p.begin(c, value)
}

// begin sets the value that the prompt begins with.
func (p *prompt) begin(c *screen.Context, value string) *prompt {
	p.input, p.c, p.before = textinput.New(), c, *c
	p.input.CharLimit = 500
	p.input.SetValue(value)
	p.input.CursorEnd()
	p.input.Focus()
	return p
}

// key takes a key. It reports whether the prompt is over, and what is to be said and done then.
func (p *prompt) key(msg tea.KeyPressMsg) (over bool, said message, cmd tea.Cmd) {
	switch msg.String() {
	case "esc":
		c := p.c
		c.Search, c.Filter, c.Minimum = p.before.Search, p.before.Filter, p.before.Minimum
		c.Selected, c.File, c.Line = p.before.Selected, p.before.File, p.before.Line
		return true, said, nil
	case "ctrl+c":
		return false, said, tea.Quit
	case "enter":
		if p.err == "" {
			said, cmd = p.accept()
			return true, said, cmd
		}
		return false, said, nil
	}
	was := p.input.Value()
	// Its commands blink a cursor, which is not needed: the terminal's own is shown.
	p.input, _ = p.input.Update(msg)
	if p.input.Value() != was {
		p.typed()
	}
	return false, said, nil
}

// paste appends text.
func (p *prompt) paste(text string) {
	p.input.SetValue(p.input.Value() + text)
	p.typed()
}

// typed checks and applies what was typed so far.
func (p *prompt) typed() {
	text := p.input.Value()
	p.err = ""
	if p.screen != nil {
		if check := p.screen.Check; check != nil {
			if err := check(text); err != nil {
				p.err = err.Error()
			}
		}
		return
	}
	switch p.what {
	case keymap.Minimum:
		v, err := percent(text)
		if err != nil {
			p.err = err.Error()
			return
		}
		p.c.Minimum = v
	case keymap.Export:
		if err := p.export.check(text); err != nil {
			p.err = err.Error()
		}
	case keymap.Only:
		if _, err := model.ParseOnly(text); err != nil && text != "" {
			p.err = err.Error()
		}
	default:
		pat, err := screen.Compile(text, p.what == keymap.Filter)
		if err != nil {
			p.err = strings.TrimPrefix(err.Error(), "error parsing regexp: ")
			return
		}
		switch p.what {
		case keymap.Search:
			p.c.Search = pat
			if pat.RE != nil && !p.export.shown.Find(&pat, 0) {
				p.err = ""
				p.hint = "no match"
				return
			}
			p.hint = labels[p.what][1]
		case keymap.Filter:
			p.c.Filter = pat
		}
	}
}

func percent(text string) (float64, error) {
	text = strings.TrimSuffix(strings.TrimSpace(text), "%")
	if text == "" {
		return 0, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= 100) {
		return 0, fmt.Errorf("type a number from 0 to 100")
	}
	return v / 100, nil
}

// accept carries out what was typed.
func (p *prompt) accept() (said message, cmd tea.Cmd) {
	text := p.input.Value()
	if p.screen != nil {
		text, err := p.screen.Accept(text)
		if err != nil {
			return message{err.Error(), true}, nil
		}
		return message{text: text}, nil
	}
	c := p.c
	switch p.what {
	case keymap.Search:
		if text == "" {
			c.Search = screen.Pattern{}
		} else if p.hint == "no match" {
			return message{"no match for " + text, true}, nil
		}
	case keymap.Export:
		return p.export.write(c, text)
	case keymap.Only:
		if t, err := model.ParseOnly(text); err == nil {
			c.Applied.Push(t)
		}
	case keymap.FocusExpr:
		pat, err := screen.Compile(text, false)
		if err == nil && pat.RE != nil {
			c.Applied.Push(model.Transform{Op: model.OpFocus, Name: pat.RE.String(), Expr: true})
		}
	}
	return said, nil
}

// draw draws the prompt, and returns the cursor.
func (p *prompt) draw(on *widget.Painter, r layout.Rect) *tea.Cursor {
	t := on.Theme
	x := on.Text(r.Min.X+1, r.Min.Y, r.Max.X, p.label, t.Key)
	runes := []rune(p.input.Value())
	at := min(p.input.Position(), len(runes))
	// The end of a long text is what is being typed.
	from := 0
	for from < at && x+safe.Width(string(runes[from:at])) >= r.Max.X-1 {
		from++
	}
	st := t.Strong
	if p.err != "" {
		st = t.Error
	}
	col := x + safe.Width(string(runes[from:at]))
	x = on.Text(x, r.Min.Y, r.Max.X, string(runes[from:]), st)
	note, ns := p.hint, t.Dim
	if p.err != "" {
		note, ns = p.err, t.Error
	}
	on.Text(x+3, r.Min.Y, r.Max.X, note, ns)
	return tea.NewCursor(min(col, r.Max.X-1), r.Min.Y)
}

// whatOnly lists the threads, capabilities and categories that samples can be limited to.
func whatOnly(c *screen.Context) string {
	p := c.Profile
	var out []string
	list := func(name string, ids []uint64) {
		slices.Sort(ids)
		ids = slices.Compact(ids)
		if len(ids) < 2 {
			return
		}
		text := name
		for i, id := range ids {
			if i == 6 {
				text += fmt.Sprintf(" and %d more", len(ids)-i)
				break
			}
			text += fmt.Sprintf(" %d", id)
		}
		out = append(out, text)
	}
	var caps, threads []uint64
	if t := c.Data.Lanes; t != nil {
		for _, row := range t.Caps {
			if row.Cap >= 0 {
				caps = append(caps, uint64(row.Cap))
			}
		}
	}
	for i := range p.Threads {
		if p.Threads[i].TSO != 0 {
			threads = append(threads, p.Threads[i].TSO)
		}
	}
	list("cap", caps)
	list("thread", threads)
	if cats := categories(c); len(cats) > 0 {
		out = append(out, strings.Join(cats, " "))
	}
	return "there are: " + strings.Join(out, ", ")
}

// categories are those with samples of the event, by falling weight.
func categories(c *screen.Context) []string {
	if len(c.Profile.Events) == 0 {
		return nil
	}
	all := c.Profile.Select(profile.Filter{}.WithEvent(c.Event)).Categories()
	slices.SortStableFunc(all, func(x, y profile.Category) int { return cmp.Compare(y.Weight, x.Weight) })
	var names []string
	for _, cat := range all {
		if cat.Weight > 0 {
			names = append(names, cat.Name)
		}
	}
	return names
}
