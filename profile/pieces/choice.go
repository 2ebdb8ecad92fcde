package pieces

import (
	"path/filepath"
	"slices"
	"strings"
	"time"

	"ccagent/profile"
)

// Choice chooses pieces. Empty fields choose all.
type Choice struct {
	Services []string
	Hosts    []string
	Programs []string // names or paths of executables
	Builds   []string // beginnings of build ids
	PIDs     []uint32
	Span     Span
}

// Span is a stretch of wall-clock time; a zero time is an open end.
type Span struct{ From, To time.Time }

// Open reports whether the span is of all time.
func (s Span) Open() bool { return s.From.IsZero() && s.To.IsZero() }

// Of returns the pieces that are chosen, in their order.
func (c *Choice) Of(all []Piece) []Piece {
	var of []Piece
	for i := range all {
		if c.takes(&all[i]) {
			of = append(of, all[i])
		}
	}
	return of
}

// Misses returns the files that might have been chosen and cannot be read, but for those that have just begun.
func (c *Choice) Misses(problems []Problem) []Problem {
	return slices.DeleteFunc(slices.Clone(problems), func(p Problem) bool {
		return p.Begun || len(c.Services) > 0 && p.Service != "" && !slices.Contains(c.Services, p.Service)
	})
}

func (c *Choice) takes(p *Piece) bool {
	in := func(list []string, any func(s string) bool) bool {
		return len(list) == 0 || slices.ContainsFunc(list, any)
	}
	return in(c.Services, func(s string) bool { return s == p.Service }) &&
		in(c.Hosts, func(s string) bool { return s == p.Host }) &&
		in(c.Programs, func(s string) bool { return s == p.Program || s == filepath.Base(p.Program) }) &&
		in(c.Builds, func(s string) bool { return s != "" && strings.HasPrefix(p.BuildID, strings.ToLower(s)) }) &&
		(len(c.PIDs) == 0 || slices.Contains(c.PIDs, p.PID)) &&
		(c.Span.From.IsZero() || !p.End.Before(c.Span.From)) && (c.Span.To.IsZero() || p.Start.Before(c.Span.To))
}

// In returns the span as times of a log that begins at a time. ok is false if the span ends before
// the log begins.
func (s Span) In(start time.Time) (r profile.Range, ok bool) {
	if !s.From.IsZero() && s.From.After(start) {
		r.From = uint64(s.From.Sub(start))
	}
	if !s.To.IsZero() {
		if !s.To.After(start) {
			return r, false
		}
		r.To = uint64(s.To.Sub(start))
	}
	return r, true
}

// Start is the time at which the log that is merged of some pieces begins.
func Start(ps []Piece) time.Time {
	start := ps[0].Start
	for i := range ps {
		if ps[i].Start.Before(start) {
			start = ps[i].Start
		}
	}
	return start
}
