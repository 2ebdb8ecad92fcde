package ui

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/safe"
	"ccagent/ui/screen"
	"ccagent/ui/theme"
)

// why says why an action is off now; empty if it is on.
func (a *App) why(act keymap.Action) string {
	c := a.c
	if i, ok := keymap.ScreenOf(act); ok {
		if off := kinds[i].Off; off != nil {
			return off(c)
		}
		return ""
	}
	s, kind := a.deck.current(), a.deck.kind()
	if kind.Keys.Handles(act) {
		return s.Why(act)
	}
	for i := range kinds {
		if k := &kinds[i]; k.Keys.Own(act) {
			return "this is for " + strings.ToLower(k.Keys.Section.Group) + "; " + screenKey(k.Name) + " shows them"
		}
	}
	switch act {
	case keymap.Mode:
		var where []string
		for i, other := range a.deck.screens {
			if other != nil && kinds[i].Keys.Handles(act) && other.Why(act) == "" {
				where = append(where, screenKey(kinds[i].Name))
			}
		}
		if where == nil {
			return "no screen of this log has modes"
		}
		return "this screen has no modes; " + strings.Join(where, ", ") + " has"
	case keymap.Undo:
		return c.WhyNoUndo()
	case keymap.Redo:
		return c.WhyNoRedo()
	case keymap.Pop:
		if len(c.Applied.All()) == 0 {
			return "no transform to take off"
		}
		return ""
	case keymap.Base:
		if len(c.Applied.All()) == 0 && !c.Whole {
			return "no transform holds, so all samples are kept"
		}
		return ""
	case keymap.OtherSide:
		return whyOneSide(c)
	case keymap.Reload:
		switch {
		case a.log.src.Follow != nil:
			return "the log is followed, and always as it is now"
		case a.opts.Against != nil:
			return "several logs are open; quit and compare them again"
		}
		return ""
	case keymap.Pause:
		if a.log.live.feed == nil || a.log.live.state != columns.FollowGrowing {
			return "the log does not grow, or is not followed; see ccview --follow"
		}
		return ""
	case keymap.Threads:
		return a.log.whyNoDump()
	case keymap.Metric:
		if nextEvent(c) == c.Event {
			return "the log has samples of one event only"
		}
		return ""
	case keymap.SearchNext, keymap.SearchPrev:
		if c.Search.RE == nil && !kind.Keys.Steps {
			return "no search yet; / begins one"
		}
		return ""
	case keymap.Edit:
		sub := s.Subject()
		switch {
		case a.opts.Sealed != "":
			return a.opts.Sealed
		case sub.Path == "":
			return "nothing here has a source file"
		case len(editor()) == 0:
			return "set $VISUAL or $EDITOR to your editor"
		}
		return ""
	case keymap.Export:
		return a.opts.Sealed
	case keymap.Core:
		var where []string
		for i := range kinds {
			if kinds[i].Keys.Handles(act) {
				where = append(where, screenKey(kinds[i].Name))
			}
		}
		return "Core stands where the source does, on screens " + strings.Join(where, " and ")
	case keymap.Code:
		if i := screenNamed(screen.Code); a.deck.screens[i] == nil {
			return a.why(keymap.OpenScreen(i))
		}
		if kind.Name == screen.Code {
			return "the machine code is shown; I on a row of another screen shows that row's"
		}
		if a.codeName() == "" {
			return "select a function first; " + screenKey(screen.Hot) + " lists them"
		}
		return ""
	case keymap.Theme:
		if os.Getenv("NO_COLOR") != "" {
			return "NO_COLOR is set"
		}
		return ""
	case keymap.Copy:
		if s.Subject().Row == "" {
			return "nothing is selected"
		}
		return ""
	case keymap.PrevScreen:
		if a.deck.before == a.deck.at {
			return "this is the first screen you opened"
		}
		return ""
	case keymap.Focus, keymap.Drop, keymap.Hide, keymap.Merge, keymap.Collapse:
		if w := s.Why(act); w != "" {
			return w
		}
		return whyNotTransform(act, s.Subject())
	}
	return s.Why(act)
}

// do carries out a binding, or says why not.
func (a *App) do(b *keymap.Binding) tea.Cmd {
	act := b.Action
	if w := a.why(act); w != "" {
		a.say(b.FirstKey()+": "+w, true)
		return nil
	}
	c := a.c
	if i, ok := keymap.ScreenOf(act); ok {
		a.deck.show(i)
		return nil
	}
	s, kind := a.deck.current(), a.deck.kind()
	if kind.Keys.Handles(act) {
		a.answer(s.Do(act))
		return nil
	}
	switch act {
	case keymap.Quit:
		return tea.Quit
	case keymap.Suspend:
		return tea.Suspend
	case keymap.Help:
		a.help = &help{}
	case keymap.PrevScreen:
		a.deck.show(a.deck.before)
	case keymap.Back:
		if !s.Back() && a.deck.at != 0 {
			a.deck.show(0)
		}
	case keymap.Search, keymap.Filter, keymap.Minimum, keymap.FocusExpr, keymap.Only, keymap.Export:
		a.prompt = newPrompt(act, c, exporter{a.log.src.Name, kind, s})
	case keymap.SearchNext:
		a.find(1)
	case keymap.SearchPrev:
		a.find(-1)
	case keymap.Focus:
		a.push(model.OpFocus)
	case keymap.Drop:
		a.push(model.OpDrop)
	case keymap.Hide:
		a.push(model.OpHide)
	case keymap.Merge:
		a.push(model.OpMerge)
	case keymap.Collapse:
		a.push(model.OpCollapse)
	case keymap.Recursion:
		c.Applied.Toggle(model.Transform{Op: model.OpFold})
	case keymap.Pop:
		c.Applied.Pop()
	case keymap.Undo:
		c.Applied.Undo()
	case keymap.Redo:
		c.Applied.Redo()
	case keymap.Theme:
		a.nextTheme()
	case keymap.Sort:
		c.Sort = c.Sort.Next()
		a.kept.Sort = c.Sort.String()
		a.say("sorted by "+c.Sort.String(), false)
	case keymap.Metric:
		c.Event = nextEvent(c)
		a.say("event: "+c.Profile.Events[c.Event].Title(), false)
	case keymap.Invert:
		c.Invert = !c.Invert
	case keymap.OtherSide:
		return a.otherSide()
	case keymap.ByName:
		c.Ask = a.deck.ask(c, a.why)
		a.serve()
	case keymap.Reload:
		return a.log.reload(a.shown())
	case keymap.Threads:
		a.say("reading the threads …", false)
		return a.log.dump(len(c.Profile.Dumps))
	case keymap.Pause:
		a.log.live.paused = !a.log.live.paused
	case keymap.Code:
		c.Code = screen.CodeOf{Name: a.codeName(), Selected: c.Selected}
		a.deck.show(screenNamed(screen.Code))
	case keymap.Raw:
		a.say(toggleRaw(c, s.Subject().Symbol), false)
	case keymap.Base:
		a.say(toggleBase(c), false)
	case keymap.Copy:
		row := s.Subject().Row
		a.say("copied: "+row, false)
		return tea.SetClipboard(safe.String(strings.ReplaceAll(row, "\t", "  ")))
	case keymap.Edit:
		cmd, problem := edit(s.Subject())
		if problem != "" {
			a.say(problem, true)
		}
		return cmd
	default:
		a.answer(s.Do(act))
	}
	return nil
}

// codeName names the function under the cursor, or else the selected one, for its machine code; empty
// if there is none.
func (a *App) codeName() string {
	sub := a.deck.current().Subject()
	switch r := a.c.Row(sub.Key); {
	case sub.Function, r != nil && r.Category:
		return sub.Name
	case sub.Name != "", !a.deck.kind().Keys.Handles(keymap.Core):
		return "" // a file, a module or a package; or a screen without source
	}
	return a.c.CodeName()
}

// answer shows what a screen answered to an action, and does what it asked for.
func (a *App) answer(text string) {
	if text != "" {
		a.say(text, false)
	}
	a.serve()
}

// serve carries out the screen's requests; see screen.Context.
func (a *App) serve() {
	c := a.c
	if i := screenNamed(c.Goto); i >= 0 && a.deck.screens[i] != nil {
		a.deck.show(i)
	}
	if c.Ask != nil {
		a.prompt = (&prompt{screen: c.Ask, label: c.Ask.Label, hint: c.Ask.Hint}).begin(c, c.Ask.Value)
	}
	c.Goto, c.Ask = "", nil
}

// whyNotTransform says why an action cannot transform a subject.
func whyNotTransform(act keymap.Action, sub screen.Subject) string {
	switch {
	case sub.Name == "":
		return "no element is selected"
	case act == keymap.Merge && !sub.Function && sub.Level == profile.LevelBinding:
		return "this is no function with a caller; D hides it"
	case act == keymap.Collapse && sub.Level == profile.LevelPackage:
		return "the package is shown as one already"
	case act == keymap.Collapse && sub.Module == "":
		return "this is in no Haskell module"
	}
	return ""
}

// push adds a transform of what is selected.
func (a *App) push(op model.Op) {
	sub := a.deck.current().Subject()
	t := model.Transform{Op: op, Name: sub.Name, Level: sub.Level}
	if op == model.OpCollapse {
		t.Name, t.Level = sub.Module, profile.LevelModule
		if slices.Contains(a.c.Applied.All(), t) && sub.Package != "" {
			t.Name, t.Level = sub.Package, profile.LevelPackage
		}
	}
	switch {
	case !a.c.Applied.Push(t):
		a.say("this transform is there already", false)
	case a.c.Compared != nil && sub.Only != "":
		a.say(fmt.Sprintf("%s: it is in %s only", t, sub.Only), false)
	case a.c.Compared != nil:
		a.say(fmt.Sprintf("%s: in A and in B", t), false)
	}
}

// nextEvent is the next event with samples.
func nextEvent(c *screen.Context) int {
	n := len(c.Profile.Events)
	for i := 1; i < n; i++ {
		if j := (c.Event + i) % n; j >= 0 && c.Profile.Events[j].Samples > 0 {
			return j
		}
	}
	return c.Event
}

// toggleBase toggles between shares of the samples kept and of all, and says which they are.
func toggleBase(c *screen.Context) string {
	c.Whole = !c.Whole
	c.Rebase()
	if c.Whole {
		return "shares are of all samples of the event"
	}
	return "shares are of the samples kept"
}

// toggleRaw toggles between names and linker symbols, and returns the symbol of the selection as a
// message.
func toggleRaw(c *screen.Context, symbol string) string {
	c.Raw = !c.Raw
	if symbol != "" {
		return "symbol: " + symbol
	}
	return "the linker's symbols are shown where there are any"
}

func (a *App) find(by int) {
	if !a.deck.current().Find(&a.c.Search, by) {
		if a.c.Search.RE == nil {
			a.say("no line here has samples", true)
			return
		}
		a.say("no match for "+a.c.Search.Text, true)
	}
}

// editor is the user's editor as a command line.
func editor() []string {
	for _, v := range []string{"VISUAL", "EDITOR"} {
		if f := strings.Fields(os.Getenv(v)); len(f) > 0 {
			return f
		}
	}
	return nil
}

// edit opens a subject in the user's editor, or says why not.
func edit(sub screen.Subject) (cmd tea.Cmd, problem string) {
	path := sub.Path
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		return nil, fmt.Sprintf("%s is not here; run ccview where the program was built", path)
	}
	return tea.ExecProcess(editCommand(editor(), path, sub.Line), func(err error) tea.Msg { return editedMsg{err} }), ""
}

// editCommand opens a file at a line. The path comes from the log, so it must
// not be taken for an option.
func editCommand(editor []string, path string, line int) *exec.Cmd {
	if !filepath.IsAbs(path) {
		path = "./" + filepath.Clean(path)
	}
	args := slices.Clone(editor[1:])
	line = max(1, line)
	switch strings.TrimSuffix(filepath.Base(editor[0]), ".exe") {
	case "code", "codium", "code-insiders":
		args = append(args, "--goto", fmt.Sprintf("%s:%d", path, line))
	case "subl", "hx", "helix", "zed", "kak-open":
		args = append(args, fmt.Sprintf("%s:%d", path, line))
	default:
		args = append(args, fmt.Sprintf("+%d", line), path)
	}
	return exec.Command(editor[0], args...)
}

// nextTheme switches to the next theme and remembers it.
func (a *App) nextTheme() {
	names := theme.Names()
	next := names[(slices.Index(names, a.out.painter.Theme.Name)+1)%len(names)]
	if th, err := theme.New(next); err == nil {
		a.out.painter.Theme = th
		a.opts.Theme, a.kept.Theme = next, next // no longer by the terminal's background
		a.say("theme: "+next, false)
	}
}
