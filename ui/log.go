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
	stamp    os.FileInfo // of the log's file when it was last looked at
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

// stampEvery is the interval at which a log that is not followed is checked for changes.
const stampEvery = 2 * time.Second

// Messages of a log that was read as a whole.
type (
	stampMsg  struct{ now os.FileInfo } // nil if the name is gone
	reloadMsg grownMsg
)

// watch schedules a check whether the log's file has changed.
func (l *openLog) watch() tea.Cmd {
	path := l.src.Path
	if path == "" || l.noTicks {
		return nil
	}
	return tea.Tick(stampEvery, func(time.Time) tea.Msg {
		st, err := os.Stat(path)
		if err != nil {
			st = nil
		}
		return stampMsg{st}
	})
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
