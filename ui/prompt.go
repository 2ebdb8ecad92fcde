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
	"ccagent/ui/model"
	"ccagent/ui/screen"
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
	before screen.Context // restored on esc
}

var labels = map[keymap.Action][2]string{
	keymap.Search:    {"/", "regular expression; n and N step, esc leaves"},
	keymap.Filter:    {"&", "regular expression; ! first inverts, empty lists all"},
	keymap.Minimum:   {"least share in %: ", "rows below it are left out; 0 lists all"},
	keymap.FocusExpr: {"focus /", "keeps samples with a frame whose name matches"},
	keymap.Export:    {"export to ", exportHint()},
	keymap.Only:      {"keep only ", "thread N, cap N, tid N, pid N, cpu N or a category"},
}

func (a *App) ask(what keymap.Action) {
	p, value := &prompt{what: what, label: labels[what][0], hint: labels[what][1]}, ""
	switch what {
	case keymap.Filter:
		value = a.c.Filter.Text
	case keymap.Export:
		value = a.exportName()
	case keymap.Only:
		p.hint = a.only()
	case keymap.Minimum:
		if a.c.Minimum > 0 {
			value = strconv.FormatFloat(100*a.c.Minimum, 'g', 4, 64)
		}
	}
	a.open(p, value)
}

// open shows a prompt that begins with a value.
func (a *App) open(p *prompt, value string) {
	p.input, p.before = textinput.New(), *a.c
	p.input.CharLimit = 500
	p.input.SetValue(value)
	p.input.CursorEnd()
	p.input.Focus()
	a.prompt = p
}

func (a *App) promptKey(msg tea.KeyPressMsg) tea.Cmd {
	p := a.prompt
	switch msg.String() {
	case "esc":
		a.prompt = nil
		a.c.Search, a.c.Filter, a.c.Minimum = p.before.Search, p.before.Filter, p.before.Minimum
		a.c.Selected, a.c.File, a.c.Line = p.before.Selected, p.before.File, p.before.Line
		return nil
	case "ctrl+c":
		return tea.Quit
	case "enter":
		if p.err == "" {
			return a.accept()
		}
		return nil
	}
	was := p.input.Value()
	// Its commands blink a cursor, which is not needed: the terminal's own is shown.
	p.input, _ = p.input.Update(msg)
	if p.input.Value() != was {
		a.typed()
	}
	return nil
}

// typed checks and applies what was typed so far.
func (a *App) typed() {
	p := a.prompt
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
		a.c.Minimum = v
	case keymap.Export:
		if err := a.checkExport(text); err != nil {
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
			a.c.Search = pat
			if pat.RE != nil && !a.screens[a.screen].Find(&pat, 0) {
				p.err = ""
				p.hint = "no match"
				return
			}
			p.hint = labels[p.what][1]
		case keymap.Filter:
			a.c.Filter = pat
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

func (a *App) accept() tea.Cmd {
	p := a.prompt
	a.prompt = nil
	text := p.input.Value()
	if p.screen != nil {
		said, err := p.screen.Accept(text)
		if err != nil {
			a.say(err.Error(), true)
		} else if said != "" {
			a.say(said, false)
		}
		return nil
	}
	switch p.what {
	case keymap.Search:
		if text == "" {
			a.c.Search = screen.Pattern{}
			return nil
		}
		if p.hint == "no match" {
			a.say("no match for "+text, true)
		}
	case keymap.Export:
		return a.export(text)
	case keymap.Only:
		if t, err := model.ParseOnly(text); err == nil {
			a.c.Applied.Push(t)
		}
	case keymap.FocusExpr:
		pat, err := screen.Compile(text, false)
		if err == nil && pat.RE != nil {
			a.c.Applied.Push(model.Transform{Op: model.OpFocus, Name: pat.RE.String(), Expr: true})
		}
	}
	return nil
}

// only lists the threads, capabilities and categories that samples can be limited to.
func (a *App) only() string {
	p := a.c.Profile
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
	if t := a.c.Data.Timeline; t != nil {
		for _, c := range t.Caps {
			if c.Cap >= 0 {
				caps = append(caps, uint64(c.Cap))
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
	if cats := a.categories(); len(cats) > 0 {
		out = append(out, strings.Join(cats, " "))
	}
	return "there are: " + strings.Join(out, ", ")
}

// categories are those with samples of the event, by falling weight.
func (a *App) categories() []string {
	if len(a.c.Profile.Events) == 0 {
		return nil
	}
	all := a.c.Profile.Select(profile.Filter{}.WithEvent(a.c.Event)).Categories()
	slices.SortStableFunc(all, func(x, y profile.Category) int { return cmp.Compare(y.Weight, x.Weight) })
	var names []string
	for _, c := range all {
		if c.Weight > 0 {
			names = append(names, c.Name)
		}
	}
	return names
}
