package ui

import (
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	tea "charm.land/bubbletea/v2"

	"ccagent/profile"
	"ccagent/profile/columns"
	"ccagent/ui/keymap"
	"ccagent/ui/model"
	"ccagent/ui/screen"
)

// Follow is the source that shows a log while it is written.
func Follow(path string) Source {
	return Source{Name: filepath.Base(path), Follow: func() (*columns.Follower, error) { return columns.Follow(path) }}
}

const (
	// liveEvery is the shortest interval between two polls of a growing log.
	liveEvery = time.Second
	// liveShare bounds the CPU time of following: the next poll comes this many times
	// later than reading and computing took, but at the latest after liveRest.
	liveShare = 10
	liveRest  = 10 * time.Second
)

// live is a log that is followed.
type live struct {
	feed   *columns.Follower // nil until the log exists
	state  columns.FollowState
	path   string // of the log that a rotated capture goes on in; empty for the source's own
	paused bool
	took   time.Duration // reading and computing, the last time
	dump   dumpState
	dumps  int // there were when a dump was asked for
}

// dumpState is how far a thread dump has come that was asked for.
type dumpState uint8

const (
	dumpNone    dumpState = iota
	dumpAsked             // it is being written
	dumpWritten           // and is to be read from the log yet
)

// Messages of a log that is followed.
type (
	pollMsg struct{} // it is time to look
	feedMsg struct {
		feed *columns.Follower
		err  error
	}
	dumpedMsg struct{ err error } // a thread dump was written into the log
	grownMsg  struct {
		feed  *columns.Follower
		state columns.FollowState
		err   error
		took  time.Duration
		// The following fields are nil if the log has not grown.
		p *profile.Profile
		e *model.Engine
		d *model.Data
	}
)

// openFeed opens the log, or the next one of a rotated capture.
func (l *openLog) openFeed() tea.Cmd {
	open, next := l.src.Follow, l.live.path
	return func() tea.Msg {
		var m feedMsg
		if next != "" {
			m.feed, m.err = columns.Follow(next)
		} else {
			m.feed, m.err = open()
		}
		return m
	}
}

// wait schedules the next pollMsg.
func (l *openLog) wait() tea.Cmd {
	if l.noTicks {
		return nil
	}
	d := max(liveEvery, min(liveShare*l.live.took, liveRest))
	return tea.Tick(d, func(time.Time) tea.Msg { return pollMsg{} })
}

// poll reads what was appended and computes what is on screen, beside the event loop. old is the
// profile on screen, nil if there is none yet, and q what is asked of it.
func (l *openLog) poll(old *profile.Profile, q model.Query) tea.Cmd {
	feed := l.live.feed
	if feed == nil {
		return l.openFeed()
	}
	if l.live.paused {
		return l.wait()
	}
	feed.Progress = func(int64, int64) {}
	if old == nil {
		feed.Progress = l.report
	}
	return func() tea.Msg {
		begun := time.Now()
		changed, err := feed.Poll()
		m := grownMsg{feed: feed, state: feed.State(), err: err}
		if err == nil && changed {
			if p := profile.New(feed.Log()); p.HaveCapture || p.Samples() > 0 || m.state != columns.FollowGrowing {
				m.p, m.e = p, model.NewEngine(p)
				if old != nil {
					m.d = m.e.Compute(moved(q, old, p))
				}
			}
		}
		m.took = time.Since(begun)
		return m
	}
}

// moved translates a query to another profile of the same log, in which names are
// the same and ids may differ.
func moved(q model.Query, old, p *profile.Profile) model.Query {
	q.Event = movedEvent(q.Event, old, p)
	q.Selected, q.File = movedKey(q.Selected, old, p), movedFile(q.File, old, p)
	if p.Symbolised && !old.Symbolised { // the first names: what was selected had none
		q.Selected, q.File = model.NoKey, 0
	}
	if w := &q.Window; w.Cols > 0 && w.From == 0 && w.To >= old.Duration {
		w.To = p.Duration
	}
	return q
}

func movedEvent(event int, old, p *profile.Profile) int {
	if event >= 0 && event < len(old.Events) {
		if i, ok := p.EventNamed(old.Events[event].Name()); ok && old.Events[event].Samples > 0 {
			return i
		}
	}
	return p.DefaultEvent()
}

func movedKey(k model.Key, old, p *profile.Profile) model.Key {
	if k == model.NoKey {
		return k
	}
	was := old.Elements(k.Level)
	if k.ID < 0 || int(k.ID) >= len(was) {
		return model.NoKey
	}
	x := &was[k.ID]
	now := p.Elements(k.Level)
	for i := range now {
		y := &now[i]
		if y.Name == x.Name && y.Kind == x.Kind && y.Package == x.Package && y.File == x.File && y.Module == x.Module {
			return model.Key{Level: k.Level, ID: y.ID}
		}
	}
	// The element may have got a name since.
	return model.NoKey
}

func movedFile(f columns.FileID, old, p *profile.Profile) columns.FileID {
	if f == 0 || int(f) >= old.Files() {
		return 0
	}
	path := old.File(f).Path
	for i := 1; i < p.Files(); i++ {
		if p.File(columns.FileID(i)).Path == path {
			return columns.FileID(i)
		}
	}
	return 0
}

// fed starts to follow a log that was opened.
func (a *App) fed(m feedMsg) tea.Cmd {
	switch {
	case errors.Is(m.err, fs.ErrNotExist) && (a.c != nil || a.log.live.path != ""):
		return a.log.wait() // the next log does not exist yet
	case m.err != nil && a.c == nil:
		a.err = m.err
		return tea.Quit
	case m.err != nil:
		a.say(m.err.Error(), true)
		return nil
	}
	if a.log.live.feed != nil {
		a.log.live.feed.Close()
	}
	a.log.live.feed, a.log.live.state = m.feed, columns.FollowGrowing
	return a.log.poll(a.shown())
}

// grown shows what was appended.
func (a *App) grown(m grownMsg) tea.Cmd {
	if m.feed != a.log.live.feed {
		return nil
	}
	a.log.live.took, a.log.live.state = m.took, m.state
	if m.err != nil {
		if a.c == nil {
			a.err = m.err
			return tea.Quit
		}
		a.say("the log can be followed no further: "+m.err.Error(), true)
		return nil
	}
	if m.p != nil {
		if a.c == nil {
			a.loaded(m.p, nil)
		} else {
			a.swap(m)
		}
	}
	switch m.state {
	case columns.FollowGrowing:
		return a.log.wait()
	case columns.FollowReplaced:
		a.log.live.feed.Close()
		a.log.live.feed = nil
		a.say("the log was replaced by another; this is the new one", true)
		return a.log.wait()
	case columns.FollowRotated:
		a.log.live.path = a.log.live.feed.Next()
		a.log.live.feed.Close()
		a.log.live.feed = nil
		a.say("the capture goes on in "+filepath.Base(a.log.live.path), false)
		return a.log.wait()
	case columns.FollowEnded:
		a.say("the capture has ended; this is all of it", false)
	default:
		a.say("the log is "+m.state.String()+"; what was read until then is shown", true)
	}
	return nil
}

// swap replaces the profile by a newer one of the same log and keeps all choices.
func (a *App) swap(m grownMsg) {
	c, old := a.c, a.c.Profile
	q := moved(a.deck.current().Query(), old, m.p)
	for _, s := range a.deck.screens {
		if s, ok := s.(screen.Rekeyer); ok {
			s.Rekey(func(k model.Key) model.Key { return movedKey(k, old, m.p) })
		}
	}
	if w := &c.Window; w.From == 0 && w.To >= old.Duration {
		w.To = m.p.Duration
	}
	c.Profile, c.Event, c.Selected = m.p, q.Event, q.Selected
	if q.File != c.File {
		c.File = q.File
	}
	a.engine, a.busy = m.e, false
	a.take(m.d)
	a.deck.refill(c)
	a.showDump()
}

// whyNoDump says why what threads do cannot be read now.
func (l *openLog) whyNoDump() string {
	switch {
	case l.src.Dump == nil:
		return "threads are read by ccagent top, and ccagent threads PID"
	case l.live.feed == nil || l.live.state != columns.FollowGrowing:
		return "the capture has ended"
	case l.live.paused:
		return "P goes on following the capture"
	case l.live.dump != dumpNone:
		return "the threads are being read"
	}
	return ""
}

// dump has the threads read, beside the event loop; the log has so many dumps already.
func (l *openLog) dump(already int) tea.Cmd {
	l.live.dump, l.live.dumps = dumpAsked, already
	ask := l.src.Dump
	return func() tea.Msg { return dumpedMsg{ask()} }
}

// dumped notes that a dump is in the log, or says why it is not.
func (a *App) dumped(m dumpedMsg) {
	if m.err != nil {
		a.log.live.dump = dumpNone
		a.say(m.err.Error(), true)
		return
	}
	a.log.live.dump = dumpWritten
	a.showDump()
}

// showDump shows the dump that was asked for when it has been read from the log.
func (a *App) showDump() {
	if l := &a.log.live; l.dump == dumpWritten && len(a.c.Profile.Dumps) > l.dumps {
		l.dump = dumpNone
		a.deck.show(screenNamed(screen.Dump))
		a.say("the threads as they were when "+keyTable.Of(keymap.Threads).FirstKey()+" was pressed; "+keyTable.Of(keymap.Threads).FirstKey()+" reads them again", false)
	}
}

func (a *App) reloaded(m reloadMsg) {
	if m.err != nil {
		a.say("read the log again: "+m.err.Error(), true)
		return
	}
	a.swap(grownMsg(m))
	a.say("the log was read again", false)
}
