package ui

import (
	"fmt"
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"ccagent/profile"
	"ccagent/ui/keymap"
	"ccagent/ui/layout"
	"ccagent/ui/model"
	"ccagent/ui/screen"
	"ccagent/ui/theme"
	"ccagent/ui/widget"
)

// App is the event loop's state, a Bubble Tea model.
type App struct {
	src     Source
	opts    Options
	painter *widget.Painter
	w, h    int

	c       *screen.Context // nil until the log is loaded
	screens []screen.Screen // by their place among kinds; nil where there is none
	screen  int
	before  int // the screen before this one

	live      live
	kept      settings // remembered from one run to the next
	hint      string   // shown once the log is loaded
	hintWarns bool
	stamp     os.FileInfo // of the log's file when it was last looked at
	noTicks   bool        // no timers: for tests

	engine *model.Engine
	busy   bool // a computation is under way; there is never more than one

	loading  progress
	progress chan progress
	err      error // of loading; ends the program

	prompt  *prompt
	help    *help
	message string
	warn    bool

	click struct {
		at   time.Time
		x, y int
	}
	now func() time.Time

	tabs   []tab // as drawn
	frame  string
	cursor *tea.Cursor
}

type progress struct{ done, total int64 }

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
	return &App{src: src, opts: o, painter: widget.NewPainter(1, 1, th, g), progress: make(chan progress, 1), now: time.Now}, nil
}

// Init implements tea.Model: it begins to load.
func (a *App) Init() tea.Cmd {
	cmds := []tea.Cmd{a.load, a.awaitProgress}
	if a.src.Follow != nil {
		cmds = []tea.Cmd{a.openFeed(), a.awaitProgress}
	}
	if a.opts.Theme == "" {
		cmds = append(cmds, tea.RequestBackgroundColor)
	}
	return tea.Batch(cmds...)
}

func (a *App) load() tea.Msg {
	defer close(a.progress)
	report := func(done, total int64) {
		select {
		case a.progress <- progress{done, total}:
		default: // the event loop has not read the last one yet; drop this one
		}
	}
	if a.opts.Against != nil {
		c, err := a.opts.Against.load(report)
		if err != nil {
			return loadedMsg{err: err}
		}
		return loadedMsg{p: c.B[0], compared: c}
	}
	p, err := a.src.Load(report)
	return loadedMsg{p: p, err: err}
}

func (a *App) awaitProgress() tea.Msg {
	p, ok := <-a.progress
	if !ok {
		return nil
	}
	return progressMsg(p)
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
	a.c.Bookmarks = a.kept.bookmarks(logName(p, a.src.Path), p.Duration)
	if a.hint != "" {
		a.say(a.hint, a.hintWarns)
	}
	for _, t := range model.Split(a.opts.Filter) {
		if t.Op == model.OpRange && t.To == 0 {
			t.To = p.Duration
		}
		a.c.Applied.Push(t)
	}
	a.screens = make([]screen.Screen, len(kinds))
	for i, k := range kinds {
		if k.Off == nil || k.Off(a.c) == "" {
			a.screens[i] = k.New(a.c)
		}
	}
	for i, k := range kinds {
		if k.First != nil && k.First(a.c) {
			a.show(i)
		}
	}
}

// Update implements tea.Model.
func (a *App) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	cmd := a.handle(msg)
	a.draw()
	return a, tea.Batch(cmd, a.demand())
}

func (a *App) handle(msg tea.Msg) tea.Cmd {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		a.w, a.h = max(1, msg.Width), max(1, msg.Height)
	case tea.BackgroundColorMsg:
		if a.opts.Theme == "" && !msg.IsDark() {
			if th, err := theme.New("light"); err == nil {
				a.painter.Theme = th
			}
		}
	case progressMsg:
		a.loading = progress(msg)
		return a.awaitProgress
	case loadedMsg:
		if msg.err != nil {
			a.err = msg.err
			return tea.Quit
		}
		a.loaded(msg.p, msg.compared)
		if msg.compared != nil {
			return nil
		}
		if msg.p.Accounting.Growing {
			a.say("the log is still being written; ccview --follow shows it as it grows", false)
		}
		if a.src.Path != "" {
			if st, err := os.Stat(a.src.Path); err == nil {
				a.stamp = st
			}
		}
		return a.watch()
	case exportedMsg:
		a.exported(msg)
	case stampMsg:
		return a.stamped(msg)
	case reloadMsg:
		a.reloaded(msg)
	case dataMsg:
		if msg.e == a.engine { // otherwise it is of an older state of a log that grew
			a.take(msg.d)
		}
	case feedMsg:
		return a.fed(msg)
	case pollMsg:
		return a.poll()
	case grownMsg:
		return a.grown(msg)
	case editedMsg:
		if msg.err != nil {
			a.say(fmt.Sprintf("edit: %v", msg.err), true)
		}
	case tea.KeyPressMsg:
		return a.key(msg)
	case tea.PasteMsg:
		if a.prompt != nil {
			a.prompt.input.SetValue(a.prompt.input.Value() + msg.Content)
			a.typed()
		}
	case tea.MouseClickMsg, tea.MouseReleaseMsg, tea.MouseWheelMsg, tea.MouseMotionMsg:
		a.mouse(msg.(tea.MouseMsg))
	}
	return nil
}

// take replaces the data on screen.
func (a *App) take(d *model.Data) {
	a.busy = false
	a.c.Data = d
	a.c.Base = 1
	if s := d.Summary; a.c.Whole && s != nil && s.AllWeight > 0 {
		a.c.Base = float64(s.Weight) / float64(s.AllWeight)
	}
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
	a.message = ""
	switch {
	case a.prompt != nil:
		return a.promptKey(msg)
	case a.help != nil:
		return a.helpKey(msg)
	}
	b := keyTable.Lookup(key)
	if b == nil {
		return nil
	}
	return a.do(b)
}

// query is all that is on screen now.
func (a *App) query() model.Query { return a.screens[a.screen].Query() }

// demand starts the computation of what is on screen, if that is not there yet. There is
// at most one computation at a time: when it ends, demand is called again.
func (a *App) demand() tea.Cmd {
	if a.c == nil || a.busy {
		return nil
	}
	q := a.query()
	if a.c.Data.Summary != nil && q == a.c.Data.Query {
		return nil
	}
	a.busy = true
	e := a.engine
	return func() tea.Msg { return dataMsg{e, e.Compute(q)} }
}

func (a *App) say(text string, warn bool) { a.message, a.warn = text, warn }

// doubleClick is the time within which two clicks are one.
const doubleClick = 400 * time.Millisecond

func (a *App) mouse(msg tea.MouseMsg) {
	if a.c == nil || a.prompt != nil {
		return
	}
	e := msg.Mouse()
	m := screen.Mouse{X: e.X, Y: e.Y}
	switch msg := msg.(type) {
	case tea.MouseClickMsg:
		if msg.Button != tea.MouseLeft {
			return
		}
		m.Kind = screen.Press
		now := a.now()
		m.Double = a.click.x == m.X && a.click.y == m.Y && now.Sub(a.click.at) < doubleClick
		a.click.at, a.click.x, a.click.y = now, m.X, m.Y
	case tea.MouseReleaseMsg:
		m.Kind = screen.Release
	case tea.MouseMotionMsg:
		if msg.Button != tea.MouseLeft {
			return
		}
		m.Kind = screen.Drag
	case tea.MouseWheelMsg:
		switch msg.Button {
		case tea.MouseWheelUp:
			m.Kind = screen.WheelUp
		case tea.MouseWheelDown:
			m.Kind = screen.WheelDown
		default:
			return
		}
	}
	if a.help != nil {
		a.help.wheel(m)
		return
	}
	if m.Kind == screen.Press && a.pressTab(m) {
		return
	}
	a.screens[a.screen].Mouse(m)
	a.serve()
}

// View implements tea.Model.
func (a *App) View() tea.View {
	v := tea.NewView(a.frame)
	v.AltScreen = true
	v.MouseMode = tea.MouseModeCellMotion
	v.Cursor = a.cursor
	v.WindowTitle = "ccview " + clip(a.src.Name, 60)
	return v
}

// draw makes the frame.
func (a *App) draw() {
	if a.w == 0 {
		return
	}
	a.painter.Resize(a.w, a.h)
	a.cursor = nil
	if a.c == nil {
		a.drawLoading()
	} else {
		f := layout.Outer(a.w, a.h)
		a.screens[a.screen].Draw(a.painter, f)
		a.drawChrome(f)
		if a.help != nil {
			a.help.draw(a.painter, f.Body, a.why)
		}
	}
	a.frame = a.painter.Render()
}
