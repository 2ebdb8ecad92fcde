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
	s, kind := a.shown()
	if kind.Keys.Handles(act) {
		return s.Why(act)
	}
	for i := range kinds {
		if k := &kinds[i]; k.Keys.Own(act) {
			return "this is for " + strings.ToLower(k.Keys.Section.Group) + "; " + screenKey(k.Name) + " shows them"
		}
	}
	switch act {
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
	case keymap.Reload:
		switch {
		case a.src.Follow != nil:
			return "the log is followed, and always as it is now"
		case a.opts.Against != nil:
			return "several logs are open; quit and compare them again"
		}
		return ""
	case keymap.Pause:
		if a.live.feed == nil || a.live.state != columns.FollowGrowing {
			return "the log does not grow, or is not followed; see ccview --follow"
		}
		return ""
	case keymap.Metric:
		if a.nextEvent() == c.Event {
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
		if a.before == a.screen {
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
		a.show(i)
		return nil
	}
	s, kind := a.shown()
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
		a.help = newHelp()
	case keymap.PrevScreen:
		a.show(a.before)
	case keymap.Back:
		if !s.Back() && a.screen != 0 {
			a.show(0)
		}
	case keymap.Search, keymap.Filter, keymap.Minimum, keymap.FocusExpr, keymap.Only, keymap.Export:
		a.ask(act)
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
		c.Event = a.nextEvent()
		a.say("event: "+c.Profile.Events[c.Event].Name(), false)
	case keymap.Invert:
		c.Invert = !c.Invert
	case keymap.Reload:
		return a.reload()
	case keymap.Pause:
		a.live.paused = !a.live.paused
	case keymap.Raw:
		a.raw(s)
	case keymap.Base:
		a.toggleBase()
	case keymap.Copy:
		row := s.Subject().Row
		a.say("copied: "+row, false)
		return tea.SetClipboard(safe.String(strings.ReplaceAll(row, "\t", "  ")))
	case keymap.Edit:
		return a.edit(s.Subject())
	default:
		a.answer(s.Do(act))
	}
	return nil
}

// answer shows what a screen answered to an action, and does what it asked for.
func (a *App) answer(text string) {
	if text != "" {
		a.say(text, false)
	}
	a.serve()
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
	sub := a.screens[a.screen].Subject()
	t := model.Transform{Op: op, Name: sub.Name, Level: sub.Level}
	if op == model.OpCollapse {
		t.Name, t.Level = sub.Module, profile.LevelModule
		if slices.Contains(a.c.Applied.All(), t) && sub.Package != "" {
			t.Name, t.Level = sub.Package, profile.LevelPackage
		}
	}
	if !a.c.Applied.Push(t) {
		a.say("this transform is there already", false)
	}
}

// nextEvent is the next event with samples.
func (a *App) nextEvent() int {
	n := len(a.c.Profile.Events)
	for i := 1; i < n; i++ {
		if j := (a.c.Event + i) % n; j >= 0 && a.c.Profile.Events[j].Samples > 0 {
			return j
		}
	}
	return a.c.Event
}

func (a *App) toggleBase() {
	c := a.c
	c.Whole = !c.Whole
	c.Base = 1
	if s := c.Data.Summary; c.Whole && s != nil && s.AllWeight > 0 {
		c.Base = float64(s.Weight) / float64(s.AllWeight)
	}
	if c.Whole {
		a.say("shares are of all samples of the event", false)
	} else {
		a.say("shares are of the samples kept", false)
	}
}

// raw toggles between names and linker symbols, and shows the symbol of the selection.
func (a *App) raw(s screen.Screen) {
	a.c.Raw = !a.c.Raw
	text := "the linker's symbols are shown where there are any"
	if sub := s.Subject(); sub.Symbol != "" {
		text = "symbol: " + sub.Symbol
	}
	a.say(text, false)
}

func (a *App) find(by int) {
	if !a.screens[a.screen].Find(&a.c.Search, by) {
		if a.c.Search.RE == nil {
			a.say("no line of this file has samples", true)
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

func (a *App) edit(sub screen.Subject) tea.Cmd {
	path := sub.Path
	if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
		a.say(fmt.Sprintf("%s is not here; run ccview where the program was built", path), true)
		return nil
	}
	cmd := editCommand(editor(), path, sub.Line)
	return tea.ExecProcess(cmd, func(err error) tea.Msg { return editedMsg{err} })
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
	next := names[(slices.Index(names, a.painter.Theme.Name)+1)%len(names)]
	if th, err := theme.New(next); err == nil {
		a.painter.Theme = th
		a.opts.Theme, a.kept.Theme = next, next // no longer by the terminal's background
		a.say("theme: "+next, false)
	}
}
