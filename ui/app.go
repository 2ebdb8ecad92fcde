package ui

import (
	"fmt"
	"image"
	"time"

	tea "charm.land/bubbletea/v2"

	"ccagent/profile"
	"ccagent/ui/keymap"
	"ccagent/ui/layout"
	"ccagent/ui/model"
	"ccagent/ui/safe"
	"ccagent/ui/screen"
	"ccagent/ui/theme"
	"ccagent/ui/widget"
)

// App is the event loop's state, a Bubble Tea model.
type App struct {
	log  openLog
	opts Options
	kept memory // from one run to the next

	c    *screen.Context // nil until the log is loaded
	deck deck

	engine *model.Engine
	busy   bool  // a computation is under way; there is never more than one
	err    error // of loading; ends the program

	prompt *prompt
	help   *help
	tour   *tour
	said   message
	clicks clicks
	out    display
}

// message is the last thing that was said to the user.
type message struct {
	text string
	warn bool
}

// display is what is drawn on, and what was drawn last.
type display struct {
	painter *widget.Painter
	w, h    int // 0 until the terminal's size is known
	frame   string
	cursor  *tea.Cursor
	hints   []hint // the keys in the footer, as drawn
	fresh   bool   // the frame may differ from the one on the terminal
	idle    idle
}

// hint is a key in the footer.
type hint struct {
	binding *keymap.Binding
	r       layout.Rect
}

// Messages of the event loop.
type (
	loadedMsg struct {
		p        *profile.Profile
		compared *screen.Compared // nil if one log is open
		err      error
	}
	progressMsg progress
	dataMsg     struct {
		e *model.Engine
		d *model.Data
	}
	editedMsg struct{ err error }
)

func newApp(src Source, o Options) (*App, error) {
	th, err := theme.New(o.Theme)
	if err != nil {
		return nil, err
	}
	g := widget.Unicode()
	if o.ASCII {
		g = widget.ASCII()
	}
	return &App{
		log: openLog{src: src, against: o.Against, progress: make(chan progress, 1)}, opts: o,
		out: display{painter: widget.NewPainter(1, 1, th, g)}, clicks: clicks{now: time.Now},
	}, nil
}

// Init implements tea.Model: it begins to load.
func (a *App) Init() tea.Cmd {
	cmds := []tea.Cmd{a.log.load, a.log.awaitProgress}
	if a.log.src.Follow != nil {
		cmds = []tea.Cmd{a.log.openFeed(), a.log.awaitProgress}
	}
	if a.opts.Theme == "" {
		cmds = append(cmds, tea.RequestBackgroundColor)
	}
	return tea.Batch(cmds...)
}

// loaded sets up the screens on a profile.
func (a *App) loaded(p *profile.Profile, compared *screen.Compared) {
	event := p.DefaultEvent()
	if a.opts.Event != "" {
		if i, ok := p.EventNamed(a.opts.Event); ok {
			event = i
		}
	}
	a.engine = model.NewEngine(p)
	a.c = &screen.Context{
		Profile: p, Data: &model.Data{}, Event: event, Base: 1, Selected: model.NoKey,
		Window: screen.Window{Window: model.Window{To: p.Duration}}, Compared: compared, Sealed: a.opts.Sealed, Key: screenKey,
	}
	a.c.Sort, _ = screen.ParseSort(a.kept.Sort)
	a.c.Bookmarks = a.kept.bookmarks(logName(p, a.log.src.Path), p.Duration)
	if a.kept.hint != "" {
		a.say(a.kept.hint, a.kept.warns)
	}
	for _, t := range model.Split(a.opts.Filter) {
		if t.Op == model.OpRange && t.To == 0 {
			t.To = p.Duration
		}
		a.c.Applied.Push(t)
	}
	a.deck.fill(a.c)
	if a.kept.first && !a.log.src.Live && a.deck.kind().Name == screen.Hot {
		a.tour = &tour{}
	}
}

// Update implements tea.Model.
func (a *App) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	said := a.said
	cmd := a.handle(msg)
	if _, ok := msg.(stampMsg); !ok || a.said != said { // a log that is as it was changes nothing
		a.draw()
		a.out.fresh = true
	}
	return a, tea.Batch(cmd, a.demand())
}

func (a *App) handle(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		a.out.w, a.out.h = max(1, msg.Width), max(1, msg.Height)
	case tea.BackgroundColorMsg:
		if a.opts.Theme == "" && !msg.IsDark() {
			if th, err := theme.New("light"); err == nil {
				a.out.painter.Theme = th
			}
		}
	case progressMsg:
		a.log.loading = progress(msg)
		return a.log.awaitProgress
	case loadedMsg:
		if msg.err != nil {
			a.err = msg.err
			return tea.Quit
		}
		a.loaded(msg.p, msg.compared)
		if msg.compared != nil {
			return nil
		}
		limitMemory(msg.p.Samples())
		if msg.p.Accounting.Growing {
			a.say("the log is still being written; ccview --follow shows it as it grows", false)
		}
		return a.log.watch()
	case exportedMsg:
		a.said = msg.message()
	case stampMsg:
		if note := a.log.changed(msg); note != "" {
			a.say(note, true)
		}
		if msg.extra {
			return nil
		}
		return a.log.watch()
	case reloadMsg:
		a.reloaded(msg)
	case sideMsg:
		a.takeSide(msg)
	case dataMsg:
		if msg.e == a.engine { // otherwise it is of an older state of a log that grew
			a.take(msg.d)
		}
	case feedMsg:
		return a.fed(msg)
	case pollMsg:
		return a.log.poll(a.shown())
	case grownMsg:
		return a.grown(msg)
	case dumpedMsg:
		a.dumped(msg)
	case editedMsg:
		if msg.err != nil {
			a.say(fmt.Sprintf("edit: %v", msg.err), true)
		}
	case tea.KeyPressMsg:
		return tea.Batch(a.log.attended(), a.key(msg))
	case tea.PasteMsg:
		if a.prompt != nil {
			a.prompt.paste(msg.Content)
		}
	case tea.MouseClickMsg, tea.MouseReleaseMsg, tea.MouseWheelMsg, tea.MouseMotionMsg:
		return a.mouse(msg.(tea.MouseMsg))
	}
	return nil
}

// take replaces the data on screen.
func (a *App) take(d *model.Data) {
	a.busy = false
	a.c.Data = d
	a.c.Rebase()
	if d.Problem != "" {
		a.say(d.Problem, true)
	}
}

func (a *App) key(msg tea.KeyPressMsg) tea.Cmd {
	key := msg.String()
	if key == "ctrl+z" {
		return tea.Suspend
	}
	if a.c == nil { // still loading
		if b := keyTable.Lookup(key); b != nil && b.Action == keymap.Quit {
			return tea.Quit
		}
		return nil
	}
	a.said = message{}
	switch {
	case a.prompt != nil:
		over, said, cmd := a.prompt.key(msg)
		if over {
			a.prompt, a.said = nil, said
			a.serve()
		}
		return cmd
	case a.help != nil:
		over, cmd := a.help.key(msg)
		if over {
			if a.help.tour {
				a.tour = &tour{}
			}
			a.help = nil
		}
		return cmd
	case a.tour != nil:
		over, taken := a.tour.key(msg)
		if over {
			a.tour = nil
		}
		if taken {
			return nil
		}
	}
	b := keyTable.Lookup(key)
	if b == nil {
		a.say(fmt.Sprintf("%s: no key does that; ? lists all", safe.String(key)), true)
		return nil
	}
	return a.do(b)
}

// shown returns the profile on screen and what is asked of it; nil while there is none.
func (a *App) shown() (*profile.Profile, model.Query) {
	if a.c == nil {
		return nil, model.Query{}
	}
	return a.c.Profile, a.deck.current().Query()
}

// demand starts the computation of what is on screen, if that is not there yet. There is
// at most one computation at a time: when it ends, demand is called again.
func (a *App) demand() tea.Cmd {
	if a.c == nil || a.busy {
		return nil
	}
	q := a.deck.current().Query()
	if a.c.Data.Summary != nil && q == a.c.Data.Query {
		return nil
	}
	a.busy = true
	e := a.engine
	return func() tea.Msg { return dataMsg{e, e.Compute(q)} }
}

func (a *App) say(text string, warn bool) { a.said = message{text, warn} }

func (a *App) mouse(msg tea.MouseMsg) tea.Cmd {
	if a.c == nil || a.prompt != nil {
		return nil
	}
	m, ok := a.clicks.of(msg)
	if !ok {
		return nil
	}
	if a.help != nil {
		a.help.wheel(m)
		return nil
	}
	if m.Kind == screen.Press {
		a.tour = nil
		if i, ok := a.deck.tabAt(m); ok {
			if i >= 0 {
				return a.do(keyTable.Of(keymap.OpenScreen(i)))
			}
			return nil
		}
		for _, h := range a.out.hints {
			if screen.Inside(h.r, m) {
				return a.do(h.binding)
			}
		}
	}
	a.deck.current().Mouse(m)
	a.serve()
	return nil
}

// View implements tea.Model.
func (a *App) View() tea.View {
	if a.out.fresh {
		a.out.fresh = false
		a.out.idle.wake()
	}
	v := tea.NewView(a.out.frame)
	v.AltScreen = true
	v.MouseMode = tea.MouseModeCellMotion
	v.Cursor = a.out.cursor
	v.WindowTitle = "ccview " + clip(a.log.src.Name, 60)
	return v
}

// draw makes the frame.
func (a *App) draw() {
	o := &a.out
	if o.w == 0 {
		return
	}
	o.painter.Resize(o.w, o.h)
	o.cursor, o.hints = nil, o.hints[:0]
	if a.c == nil {
		drawLoading(o, &a.log)
	} else {
		f := layout.Outer(o.w, o.h)
		a.deck.current().Draw(o.painter, f)
		chrome{Painter: o.painter, w: o.w, h: o.h, c: a.c, log: &a.log, deck: &a.deck, why: a.why}.draw(f)
		if !f.Footer.Empty() {
			a.drawFooter(f.Footer, f.Small && f.Title.Empty())
		}
		if a.help != nil {
			a.help.draw(o.painter, f.Body, a.why)
		}
		if a.tour != nil {
			a.tour.draw(o.painter, f.Body)
		}
	}
	o.frame = o.painter.Render()
}

// drawFooter draws the prompt, what was said, or keys.
func (a *App) drawFooter(r layout.Rect, tiny bool) {
	p, t := a.out.painter, a.out.painter.Theme
	switch {
	case a.prompt != nil:
		a.out.cursor = a.prompt.draw(p, r)
	case a.said.text != "":
		st := t.Text
		if a.said.warn {
			st = t.Warn
		}
		p.Text(r.Min.X+1, r.Min.Y, r.Max.X, a.said.text, st)
	case tiny:
		text, _ := chrome{Painter: p, c: a.c}.counts(true)
		p.Text(r.Min.X, r.Min.Y, r.Max.X, text, t.Dim)
	default:
		x := r.Min.X + 1
		for _, h := range keyTable.Footer(r.Dx()-1, a.deck.kind().Keys.Footer, a.why) {
			from := x
			x = p.Text(x, r.Min.Y, r.Max.X, h.FirstKey(), t.Key) + 1
			x = p.Text(x, r.Min.Y, r.Max.X, h.Word, t.Dim) + 2
			a.out.hints = append(a.out.hints, hint{h.Binding, image.Rect(from, r.Min.Y, x-2, r.Min.Y+1)})
		}
	}
}
