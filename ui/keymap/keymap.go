// Package keymap is the one table of the viewer's keys. What a key does, the
// footer, the help overlay and the manual's table all come from it.
package keymap

import (
	"strings"
)

// Binding ties keys to an action.
type Binding struct {
	Action Action
	Keys   []string // as Bubble Tea names them
	Show   string   // the keys as shown, separated by spaces
	Short  string   // in the footer; empty keeps it out
	Help   string
	// Planned says why nothing in this version does it; empty if something does.
	Planned string
}

// Section is a group of bindings under a heading.
type Section struct {
	Group    string
	Bindings []Binding
}

// footerFirst is the order of the footer; Help and Quit always end it.
var footerFirst = []Action{NextPane, Pause, Down, Open, Search, Filter, Focus, Drop, Undo, Mode, Choose, RangeFrom, Sort, Copy, Zoom}
var footerLast = []Action{Help, Quit}

var byKey, byAction = func() (map[string]*Binding, map[Action]*Binding) {
	keys, actions := make(map[string]*Binding), make(map[Action]*Binding)
	for i := range Table {
		for j := range Table[i].Bindings {
			b := &Table[i].Bindings[j]
			actions[b.Action] = b
			for _, k := range b.Keys {
				keys[k] = b
			}
		}
	}
	return keys, actions
}()

// Lookup finds what a key is bound to, or nil.
func Lookup(key string) *Binding { return byKey[key] }

// Of finds an action's binding.
func Of(a Action) *Binding { return byAction[a] }

// FirstKey is the first of the keys as shown.
func (b *Binding) FirstKey() string {
	k, _, _ := strings.Cut(b.Show, " ")
	return k
}

// Footer picks what fits into width columns: entries are "key short", two
// columns apart. why tells of an action that is off; such are left out.
func Footer(width int, why func(Action) string) []*Binding {
	size := func(b *Binding) int { return len(b.FirstKey()) + 1 + len(b.Short) + 2 }
	var out, last []*Binding
	for _, a := range footerLast {
		if b := Of(a); width >= size(b) {
			last = append(last, b)
			width -= size(b)
		}
	}
	for _, a := range footerFirst {
		b := Of(a)
		if why(a) != "" {
			continue
		}
		if width < size(b) {
			break
		}
		out = append(out, b)
		width -= size(b)
	}
	return append(out, last...)
}

// Matching gives the table's bindings that match, by section.
func Matching(match func(*Binding) bool) []Section {
	var out []Section
	for _, s := range Table {
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
func Markdown() string {
	var b strings.Builder
	b.WriteString("| Key | Does |\n|---|---|\n")
	for _, s := range Table {
		b.WriteString("| **" + s.Group + "** | |\n")
		for _, k := range s.Bindings {
			keys := strings.Fields(k.Show)
			for i, f := range keys {
				keys[i] = "`" + f + "`"
				if f == "`" {
					keys[i] = "backtick"
				}
			}
			text := k.Help
			if k.Planned != "" {
				text += " (" + k.Planned + ")"
			}
			b.WriteString("| " + strings.Join(keys, " ") + " | " + text + " |\n")
		}
	}
	return b.String()
}
