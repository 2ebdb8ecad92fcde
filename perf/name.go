package perf

import (
	"fmt"
	"strconv"
	"strings"

	goperf "github.com/elastic/go-perf"
	"golang.org/x/sys/unix"
)

func eventType(t uint32) goperf.EventType { return goperf.EventType(t) }

// SplitNames splits a list of events at its commas, except for commas between the slashes of
// PMU/term,term/.
func SplitNames(text string) []string {
	var names []string
	inside, start := false, 0
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '/':
			inside = !inside
		case text[i] == ',' && !inside:
			names = append(names, strings.TrimSpace(text[start:i]))
			start = i + 1
		}
	}
	return append(names, strings.TrimSpace(text[start:]))
}

// ModifierError is returned for a modifier that an event cannot have.
type ModifierError struct{ Event, Modifiers, Why string }

func (e *ModifierError) Error() string {
	return fmt.Sprintf("event %s: modifier %q %s", e.Event, e.Modifiers, e.Why)
}

// Lookup finds an event by perf's name for it: a generic event, rXXXX, or PMU/terms/, each
// with optional modifiers: u and k for user space and kernel only, p to ppp for precise
// addresses, P for the most precise. The error is an *UnknownEventError, a *ModifierError,
// or says what is wrong with the terms.
func Lookup(name string) (Event, error) { return here.lookup(name) }

func (s system) lookup(name string) (Event, error) {
	base, modifiers := name, ""
	if end := strings.LastIndexByte(name, '/'); end >= 0 {
		base, modifiers = name[:end+1], strings.TrimPrefix(name[end+1:], ":")
	} else if b, m, has := strings.Cut(name, ":"); has {
		if m == "" {
			return Event{}, &ModifierError{b, m, "is empty"}
		}
		base, modifiers = b, m
	}
	e, err := s.plain(base)
	if err != nil {
		return Event{}, err
	}
	return e.modified(modifiers)
}

func (s system) plain(name string) (Event, error) {
	if pmu, terms, is := strings.Cut(name, "/"); is {
		terms, closed := strings.CutSuffix(terms, "/")
		if !closed || strings.Contains(terms, "/") {
			return Event{}, fmt.Errorf("event %q: write it as PMU/term,term=value/", name)
		}
		e, err := s.event(pmu, terms)
		if err != nil {
			return Event{}, fmt.Errorf("event %q: %w", name, err)
		}
		return e, nil
	}
	events := Events()
	for _, e := range events {
		if e.is(name) {
			// On a hybrid CPU each kind of core counts separately.
			if e.Type == unix.PERF_TYPE_HARDWARE || e.Type == unix.PERF_TYPE_HW_CACHE {
				e.Cores = s.corePMUs()
			}
			return e, nil
		}
	}
	if raw, ok := strings.CutPrefix(name, "r"); ok {
		if config, err := strconv.ParseUint(raw, 16, 64); err == nil {
			return Event{Name: name, Type: unix.PERF_TYPE_RAW, Config: config, Unit: "events", Kind: "raw"}, nil
		}
	}
	return Event{}, &UnknownEventError{Name: name, Nearest: nearest(name, events)}
}

// maxPrecise is the kernel's highest precise_ip.
const maxPrecise = 3

func (e Event) modified(modifiers string) (Event, error) {
	if modifiers == "" {
		return e, nil
	}
	bad := func(why string) (Event, error) { return Event{}, &ModifierError{e.Name, modifiers, why} }
	user, kernel := false, false
	for _, m := range modifiers {
		switch m {
		case 'u':
			user = true
		case 'k':
			kernel = true
		case 'p':
			e.Precise++
		case 'P':
			e.Precise = maxPrecise
		default:
			return bad(fmt.Sprintf("has %q; known are u, k, p to ppp and P", m))
		}
	}
	if e.Precise > maxPrecise {
		return bad("asks for more than ppp")
	}
	if e.Precise > 0 && e.Kind == "software" {
		return bad("asks for precise addresses, which only hardware events have")
	}
	e.OnlyUser, e.OnlyKernel = user && !kernel, kernel && !user
	return e, nil
}

// String returns the event's name with its modifiers.
func (e Event) String() string {
	m := strings.Repeat("p", e.Precise)
	switch {
	case e.OnlyUser:
		m = "u" + m
	case e.OnlyKernel:
		m = "k" + m
	}
	if m != "" && !strings.HasSuffix(e.Name, "/") {
		m = ":" + m
	}
	return e.Name + m
}
