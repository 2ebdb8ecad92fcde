package ui

import (
	"os"
	"time"

	tea "charm.land/bubbletea/v2"

	"ccagent/profile"
	"ccagent/ui/model"
)

// openLog is the log that is viewed: where it comes from, and how far it is read.
type openLog struct {
	src      Source
	against  *Against // what is compared in place of one log; nil for one log
	live     live
	stamp    os.FileInfo   // of the log's file when it was last looked at
	every    time.Duration // until it is looked at again
	loading  progress
	progress chan progress // from the goroutine that reads
	noTicks  bool          // no timers: for tests
}

type progress struct{ done, total int64 }

// report notes how much is read.
func (l *openLog) report(done, total int64) {
	select {
	case l.progress <- progress{done, total}:
	default: // the event loop has not read the last one yet; drop this one
	}
}

// load reads the log, or all that are compared.
func (l *openLog) load() tea.Msg {
	defer close(l.progress)
	if l.against != nil {
		c, err := l.against.load(l.report)
		if err != nil {
			return loadedMsg{err: err}
		}
		return loadedMsg{p: c.B[0], compared: c}
	}
	p, err := l.src.Load(l.report)
	if st, err := os.Stat(l.src.Path); err == nil {
		l.stamp = st
	}
	return loadedMsg{p: p, err: err}
}

func (l *openLog) awaitProgress() tea.Msg {
	p, ok := <-l.progress
	if !ok {
		return nil
	}
	return progressMsg(p)
}

// A log that is not followed is checked for changes every stampEvery, and less often, up to
// stampRarely, while no key is pressed, so that a viewer that is left alone takes no CPU time.
const (
	stampEvery  = 2 * time.Second
	stampRarely = 2 * time.Minute
)

// Messages of a log that was read as a whole.
type (
	stampMsg struct {
		now   os.FileInfo // nil if the name is gone
		extra bool        // out of turn: the next check is scheduled already
	}
	reloadMsg grownMsg
)

// watch schedules a check whether the log's file has changed.
func (l *openLog) watch() tea.Cmd {
	if l.src.Path == "" || l.noTicks {
		return nil
	}
	l.every = min(max(2*l.every, stampEvery), stampRarely)
	return tea.Tick(l.every, func(time.Time) tea.Msg { return stampMsg{now: l.look()} })
}

// look looks at the log's file; nil if the name is gone.
func (l *openLog) look() os.FileInfo {
	st, err := os.Stat(l.src.Path)
	if err != nil {
		return nil
	}
	return st
}

// attended has the log checked at once, and often again, if it was not for long.
func (l *openLog) attended() tea.Cmd {
	if l.every <= stampEvery {
		return nil
	}
	l.every = 0
	return func() tea.Msg { return stampMsg{now: l.look(), extra: true} }
}

// changed says, once, that the log's file has changed; empty if it has not.
func (l *openLog) changed(m stampMsg) string {
	was := l.stamp
	l.stamp = m.now
	switch {
	case was == nil || m.now == nil:
	case !os.SameFile(was, m.now):
		return "the log was replaced by another since it was read; ctrl-l reads it again"
	case was.Size() != m.now.Size() || !was.ModTime().Equal(m.now.ModTime()):
		return "the log has changed since it was read; ctrl-l reads it again"
	}
	return ""
}

// reload reads the log again and computes what is on screen.
func (l *openLog) reload(old *profile.Profile, q model.Query) tea.Cmd {
	load := l.src.Load
	return func() tea.Msg {
		p, err := load(func(int64, int64) {})
		if err != nil {
			return reloadMsg{err: err}
		}
		e := model.NewEngine(p)
		return reloadMsg{p: p, e: e, d: e.Compute(moved(q, old, p))}
	}
}
