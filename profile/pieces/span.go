package pieces

import (
	"fmt"
	"strings"
	"time"
)

// layouts are the ways to write a time with its day, and dayless those without.
var (
	layouts = []string{time.RFC3339Nano, "2006-01-02 15:04:05", "2006-01-02T15:04:05", "2006-01-02 15:04", "2006-01-02T15:04"}
	dayless = []string{"15:04:05", "15:04"}
)

// ParseSpan parses a stretch of wall-clock time: FROM-TO, either of which may be left out, or a day:
// 14:30-14:35, 2026-11-21 23:50-00:10, yesterday, 2026-11-21. Times are local if they do not say
// otherwise. A time without its day is the last one before now, or as TO the first one after FROM.
func ParseSpan(s string, now time.Time) (Span, error) {
	if from, ok := parseDay(s, now); ok {
		return Span{from, from.AddDate(0, 0, 1)}, nil
	}
	for i := range s {
		if s[i] != '-' {
			continue
		}
		if span, ok := parseBoth(s[:i], s[i+1:], now); ok {
			if !span.To.IsZero() && !span.From.Before(span.To) {
				return Span{}, fmt.Errorf("%q ends before it begins", s)
			}
			return span, nil
		}
	}
	return Span{}, fmt.Errorf("%q is neither seconds of a log (3.1-5.42) nor times of a day (14:30-14:35, 2026-11-21 23:50-00:10, yesterday)", s)
}

func parseBoth(from, to string, now time.Time) (s Span, ok bool) {
	if from == "" && to == "" {
		return s, false
	}
	if s.From, ok = parseEnd(from, func(t time.Time) time.Time { return before(t, now) }, now.Location()); !ok {
		return s, false
	}
	s.To, ok = parseEnd(to, func(t time.Time) time.Time {
		if s.From.IsZero() {
			return before(t, now)
		}
		day := onDay(t, s.From)
		if !day.After(s.From) {
			day = day.AddDate(0, 0, 1)
		}
		return day
	}, now.Location())
	return s, ok
}

// parseEnd parses a time; place gives the day of one that has none.
func parseEnd(s string, place func(time.Time) time.Time, in *time.Location) (time.Time, bool) {
	if s = strings.TrimSpace(s); s == "" {
		return time.Time{}, true
	}
	for _, layout := range layouts {
		if t, err := time.ParseInLocation(layout, s, in); err == nil {
			return t, true
		}
	}
	for _, layout := range dayless {
		if t, err := time.ParseInLocation(layout, s, in); err == nil {
			return place(t), true
		}
	}
	return time.Time{}, false
}

func parseDay(s string, now time.Time) (time.Time, bool) {
	today := time.Date(now.Year(), now.Month(), now.Day(), 0, 0, 0, 0, now.Location())
	switch s {
	case "today":
		return today, true
	case "yesterday":
		return today.AddDate(0, 0, -1), true
	}
	t, err := time.ParseInLocation("2006-01-02", s, now.Location())
	return t, err == nil
}

// onDay is the clock of t on the day of d.
func onDay(t, d time.Time) time.Time {
	return time.Date(d.Year(), d.Month(), d.Day(), t.Hour(), t.Minute(), t.Second(), 0, d.Location())
}

// before is the last time before now at which clocks show what t has.
func before(t, now time.Time) time.Time {
	day := onDay(t, now)
	if day.After(now) {
		day = day.AddDate(0, 0, -1)
	}
	return day
}
