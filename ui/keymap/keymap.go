// Package keymap ties keys to actions: the common ones, and those that each screen adds. What
// a key does, the footer, the help overlay and the manual's table all come from it.
package keymap

import (
	"slices"
	"strconv"
	"strings"
)

// Binding ties keys to an action.
type Binding struct {
	Action Action
	Keys   []string // as Bubble Tea names them
	Show   string   // the keys as shown, separated by spaces
	Short  string   // in the footer; empty keeps it out
	Help   string
}

// Section is a group of bindings under a heading.
type Section struct {
	Group    string
	Bindings []Binding
}

// Screen is what a screen adds to the common keys.
type Screen struct {
	Name    string   // typed after the key that opens a screen by its name
	Help    string   // of the key that opens it
	Section Section  // the screen's own keys; no Group if it has none
	Does    []Action // actions that it carries out itself, its section's besides
	Notes   []Note   // what keys do on it that mean something else elsewhere
	Footer  []Note   // keys that the footer has on this screen alone, with a word for each
	Steps   bool     // the next match is also to be had without a search
}

// Note adds to the help of an action.
type Note struct {
	Action Action
	Help   string
}

// Own reports whether the action is of the screen's own keys.
func (s *Screen) Own(a Action) bool {
	return slices.ContainsFunc(s.Section.Bindings, func(b Binding) bool { return b.Action == a })
}

// Handles reports whether the screen carries out the action itself, in place of what it does
// everywhere.
func (s *Screen) Handles(a Action) bool { return slices.Contains(s.Does, a) || s.Own(a) }

const openPrefix = "screen-"

// Map is all bindings.
type Map struct {
	Sections []Section // in the order in which help and manual show them
	footer   []Action
	byKey    map[string]*Binding
	byAction map[Action]*Binding
}

// footerFirst, the screens' own keys with a short text, and footerThen are the order of the
// footer. footerLast always ends it.
var (
	footerFirst = []Action{NextPane, Pause, Down, Open, Metric, Search, Filter, Focus, Drop, Undo, Mode}
	footerThen  = []Action{RangeFrom, Sort, Code, Copy, Zoom}
	footerLast  = []Action{Help, Quit}
)

// MaxScreens is how many screens can have keys.
const MaxScreens = 19

// New makes the map of the common keys and those of at most MaxScreens screens. A common key that
// a screen has among its own is listed there.
func New(screens []Screen) *Map {
	m := &Map{byKey: make(map[string]*Binding), byAction: make(map[Action]*Binding), footer: slices.Clone(footerFirst)}
	for _, s := range common {
		s.Bindings = slices.DeleteFunc(slices.Clone(s.Bindings), func(b Binding) bool {
			return slices.ContainsFunc(screens, func(s Screen) bool { return s.Own(b.Action) })
		})
		if s.Group == screensGroup {
			at := slices.IndexFunc(s.Bindings, func(b Binding) bool { return b.Action == PrevScreen })
			for i := range screens {
				held, digit := ScreenKey(i)
				key, show := digit, digit
				if held != "" {
					key, show = held+"+"+digit, held+"-"+digit
				}
				help := screens[i].Help
				if name := screens[i].Name; name != "" {
					help += " (:" + name + ")"
				}
				s.Bindings = slices.Insert(s.Bindings, at+i, Binding{OpenScreen(i), []string{key}, show, "", help})
			}
		}
		if s.Group == timelineGroup {
			for i := range screens {
				own := screens[i].Section
				if own.Group == "" {
					continue
				}
				own.Bindings = slices.Clone(own.Bindings)
				m.Sections = append(m.Sections, own)
				for _, b := range own.Bindings {
					if b.Short != "" {
						m.footer = append(m.footer, b.Action)
					}
				}
			}
		}
		m.Sections = append(m.Sections, s)
	}
	m.footer = append(m.footer, footerThen...)
	for i := range m.Sections {
		for j := range m.Sections[i].Bindings {
			b := &m.Sections[i].Bindings[j]
			m.byAction[b.Action] = b
			for _, k := range b.Keys {
				m.byKey[k] = b
			}
		}
	}
	for _, s := range screens {
		for _, n := range s.Notes {
			m.byAction[n.Action].Help += "; " + n.Help
		}
	}
	return m
}

// ScreenKey is the digit that opens a screen, by its place from 0, and the key that is held meanwhile;
// empty for none. The first nine screens have the digits 1 to 9, the next ten 0 to 9 with alt.
func ScreenKey(i int) (held, digit string) {
	if i < 9 {
		return "", strconv.Itoa(i + 1)
	}
	return "alt", strconv.Itoa(i - 9)
}

// OpenScreen is the action that opens a screen, by its place from 0.
func OpenScreen(i int) Action { return Action(openPrefix + strconv.Itoa(i+1)) }

// ScreenOf gives the place of the screen that an action opens; false if it opens none.
func ScreenOf(a Action) (int, bool) {
	n, ok := strings.CutPrefix(string(a), openPrefix)
	i, err := strconv.Atoi(n)
	return i - 1, ok && err == nil
}

// Lookup finds what a key is bound to, or nil.
func (m *Map) Lookup(key string) *Binding { return m.byKey[key] }

// Of finds an action's binding, or nil.
func (m *Map) Of(a Action) *Binding { return m.byAction[a] }

// FirstKey is the first of the keys as shown.
func (b *Binding) FirstKey() string {
	k, _, _ := strings.Cut(b.Show, " ")
	return k
}

// Hint is an entry of the footer.
type Hint struct {
	*Binding
	Word string
}

// Footer picks what fits into width columns: entries are "key word", two
// columns apart. Actions that are off, for which why gives a reason, are left out. What the screen has
// of its own stands before the search.
func (m *Map) Footer(width int, here []Note, why func(Action) string) []Hint {
	size := func(h Hint) int { return len(h.FirstKey()) + 1 + len(h.Word) + 2 }
	var out, last []Hint
	for _, a := range footerLast {
		h := Hint{m.Of(a), m.Of(a).Short}
		if width >= size(h) {
			last = append(last, h)
			width -= size(h)
		}
	}
	var all []Hint
	for _, a := range m.footer {
		if a == Search {
			for _, n := range here {
				all = append(all, Hint{m.Of(n.Action), n.Help})
			}
		}
		all = append(all, Hint{m.Of(a), m.Of(a).Short})
	}
	for _, h := range all {
		if why(h.Action) != "" {
			continue
		}
		if width < size(h) {
			break
		}
		out = append(out, h)
		width -= size(h)
	}
	return append(out, last...)
}

// Matching gives the bindings that match, by section.
func (m *Map) Matching(match func(*Binding) bool) []Section {
	var out []Section
	for _, s := range m.Sections {
		t := Section{Group: s.Group}
		for _, b := range s.Bindings {
			if match(&b) {
				t.Bindings = append(t.Bindings, b)
			}
		}
		if len(t.Bindings) > 0 {
			out = append(out, t)
		}
	}
	return out
}

// Markdown is the manual's table of keys.
func (m *Map) Markdown() string {
	var b strings.Builder
	b.WriteString("| Key | Does |\n|---|---|\n")
	for _, s := range m.Sections {
		b.WriteString("| **" + s.Group + "** | |\n")
		for _, k := range s.Bindings {
			keys := strings.Fields(k.Show)
			for i, f := range keys {
				keys[i] = "`" + f + "`"
				if f == "`" {
					keys[i] = "backtick"
				}
			}
			b.WriteString("| " + strings.Join(keys, " ") + " | " + k.Help + " |\n")
		}
	}
	return b.String()
}
