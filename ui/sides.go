package ui

import (
	"fmt"

	tea "charm.land/bubbletea/v2"

	"ccagent/ui/model"
	"ccagent/ui/screen"
)

// sideMsg is the other side of a comparison, ready to be shown.
type sideMsg struct {
	side screen.Side
	grownMsg
}

// whyOneSide says why there is no other side to show; empty if there is.
func whyOneSide(c *screen.Context) string {
	if c.Compared == nil {
		return "one log is open; ccview diff A B compares two"
	}
	return ""
}

// otherSide computes what is on screen for the other side's log. It gets an engine of its own:
// the one before may still be computing.
func (a *App) otherSide() tea.Cmd {
	old, q := a.shown()
	to := a.c.Compared.Shown.Other()
	p, _ := a.c.Compared.First(to)
	return func() tea.Msg {
		e := model.NewEngine(p)
		return sideMsg{to, grownMsg{p: p, e: e, d: e.Compute(moved(q, old, p))}}
	}
}

// takeSide shows the other side with all choices that hold for both.
func (a *App) takeSide(m sideMsg) {
	c := a.c
	if c.Compared.Shown == m.side {
		return // the key was pressed again before this was computed
	}
	a.keepBookmarks()
	w := &c.Window
	a.swap(m.grownMsg)
	if w.From >= m.p.Duration {
		w.From = 0
	}
	w.To = min(w.To, m.p.Duration)
	c.Compared.Shown = m.side
	a.log.src = a.log.against.first(m.side)
	c.Bookmarks = a.kept.bookmarks(logName(m.p, a.log.src.Path), m.p.Duration)
	a.say(fmt.Sprintf("all screens show %s: %s", m.side, a.log.src.Name), false)
}

// first is the log of a side that the screens show.
func (g *Against) first(s screen.Side) Source {
	if s == screen.SideA {
		return g.A[0]
	}
	return g.B[0]
}
