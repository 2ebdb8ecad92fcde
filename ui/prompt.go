package ui

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"charm.land/bubbles/v2/textinput"
	tea "charm.land/bubbletea/v2"

	"ccagent/profile"
	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/view"
)

// prompt asks for a line of text in the place of the footer. What is typed
// takes effect at once where that can be taken back.
type prompt struct {
	what   keymap.Action
	label  string
	hint   string
	input  textinput.Model
	err    string
	before view.Context // to go back to on esc
}

var labels = map[keymap.Action][2]string{
	keymap.Search:    {"/", "regular expression; n and N step, esc leaves"},
	keymap.Filter:    {"&", "regular expression; ! first inverts, empty lists all"},
	keymap.Minimum:   {"least share in %: ", "rows below it are left out; 0 lists all"},
	keymap.FocusExpr: {"focus /", "keeps samples with a frame whose name matches"},
	keymap.Choose:    {"centres: ", "globs or presets with commas: @bindings @modules @packages Main.load*,module:Data.*"},
	keymap.Export:    {"export to ", exportHint},
	keymap.SaveSet:   {"write centres to ", "a file; ccview ccs --set reads it"},
	keymap.Only:      {"keep only ", "thread N, cap N, tid N, pid N, cpu N or a category"},
}

func (a *App) ask(what keymap.Action) {
	p := &prompt{what: what, label: labels[what][0], hint: labels[what][1], input: textinput.New(), before: *a.c}
	p.input.CharLimit = 500
	switch what {
	case keymap.Filter:
		p.input.SetValue(a.c.Filter.Text)
	case keymap.Choose:
		p.input.SetValue(a.centres().Patterns())
	case keymap.Export:
		p.input.SetValue(a.exportName())
	case keymap.SaveSet:
		p.input.SetValue("centres.ccs")
	case keymap.Only:
		p.hint = a.kinds()
	case keymap.Minimum:
		if a.c.Minimum > 0 {
			p.input.SetValue(strconv.FormatFloat(100*a.c.Minimum, 'g', 4, 64))
		}
	}
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
	// Its commands only make a cursor blink; the terminal's own is shown.
	p.input, _ = p.input.Update(msg)
	if p.input.Value() != was {
		a.typed()
	}
	return nil
}

// typed tries what was typed so far.
func (a *App) typed() {
	p := a.prompt
	text := p.input.Value()
	p.err = ""
	switch p.what {
	case keymap.Minimum:
		v, err := percent(text)
		if err != nil {
			p.err = err.Error()
			return
		}
		a.c.Minimum = v
	case keymap.Choose:
		if _, err := view.ParsePatterns(text); err != nil {
			p.err = err.Error()
		}
	case keymap.Export:
		if err := a.checkExport(text); err != nil {
			p.err = err.Error()
		}
	case keymap.SaveSet:
	case keymap.Only:
		if _, err := model.ParseOnly(text); err != nil && text != "" {
			p.err = err.Error()
		}
	default:
		pat, err := view.Compile(text, p.what == keymap.Filter)
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
	switch p.what {
	case keymap.Search:
		if text == "" {
			a.c.Search = view.Pattern{}
			return nil
		}
		if p.hint == "no match" {
			a.say("no match for "+text, true)
		}
	case keymap.Choose:
		if set, err := view.ParsePatterns(text); err == nil {
			a.centres().Choose(set)
		}
	case keymap.Export:
		return a.export(text)
	case keymap.SaveSet:
		a.saveCentres(text)
	case keymap.Only:
		if t, err := model.ParseOnly(text); err == nil {
			a.c.Stack.Push(t)
		}
	case keymap.FocusExpr:
		pat, err := view.Compile(text, false)
		if err == nil && pat.RE != nil {
			a.c.Stack.Push(model.Transform{Op: model.OpFocus, Name: pat.RE.String(), Expr: true})
		}
	}
	return nil
}

// kinds tells what there is to keep samples of.
func (a *App) kinds() string {
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

// categories are those that samples of the event hit, the hottest first.
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

// saveCentres writes what is chosen to a file that is not there yet.
func (a *App) saveCentres(path string) {
	text, err := model.NewEngine(a.c.Profile).SaveSet(a.centres().Choice())
	if err == nil {
		err = writeNew(path, []byte(text))
	}
	if err != nil {
		a.say("write centres: "+err.Error(), true)
		return
	}
	a.say("centres written to "+path, false)
}

// writeNew writes a file and never over another.
func writeNew(path string, data []byte) error {
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
