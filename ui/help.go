package ui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"ccagent/ui/keymap"
	"ccagent/ui/layout"
	"ccagent/ui/screen"
	"ccagent/ui/widget"
)

// help is the overlay of all keys.
type help struct {
	filter string
	top    int
	lines  int // of the last drawing
	height int
	tour   bool // it was asked for
}

// key takes a key, and reports whether help is over.
func (h *help) key(msg tea.KeyPressMsg) (over bool, cmd tea.Cmd) {
	switch key := msg.String(); key {
	case "ctrl+c":
		return false, tea.Quit
	case "esc":
		if h.filter != "" {
			h.filter = ""
			return false, nil
		}
		return true, nil
	case "enter", "?":
		return true, nil
	case "backspace":
		if r := []rune(h.filter); len(r) > 0 {
			h.filter = string(r[:len(r)-1])
		}
	case "up":
		h.top--
	case "down":
		h.top++
	case "pgup", "ctrl+u":
		h.top -= h.height
	case "pgdown", "ctrl+d":
		h.top += h.height
	case "t":
		if h.filter == "" { // a search for what begins with t begins with a space
			h.tour = true
			return true, nil
		}
		h.filter += "t"
		h.top = 0
	default:
		if text := msg.Key().Text; text != "" && len(h.filter) < 40 {
			h.filter += text
			h.top = 0
		}
	}
	return false, nil
}

func (h *help) wheel(m screen.Mouse) {
	switch m.Kind {
	case screen.WheelUp:
		h.top -= 3
	case screen.WheelDown:
		h.top += 3
	}
}

func (h *help) draw(p *widget.Painter, body layout.Rect, why func(keymap.Action) string) {
	word := strings.ToLower(strings.TrimSpace(h.filter))
	sections := keyTable.Matching(func(b *keymap.Binding) bool {
		return word == "" || strings.Contains(strings.ToLower(b.Show+" "+b.Help+" "+string(b.Action)), word)
	})
	type row struct {
		key, text, head string
		off             bool
	}
	var rows []row
	width := min(104, body.Dx()) - 2 - 15
	for _, s := range sections {
		rows = append(rows, row{head: s.Group})
		for i := range s.Bindings {
			b := &s.Bindings[i]
			text, off := b.Help, why(b.Action)
			if off != "" {
				text += ". Off here: " + off
			}
			for j, l := range screen.Wrap(p, text, max(16, width)) {
				next := row{text: l, off: off != ""}
				if j == 0 {
					next.key = b.Show
				}
				rows = append(rows, next)
			}
		}
	}
	r := layout.Dialog(body, 104, len(rows)+3)
	p.Fill(r, p.Theme.Text)
	title := "keys"
	if h.filter != "" {
		title = "keys  / " + h.filter
	}
	p.Box(r, title, "t: the tour   type to search, esc closes", true)
	in := r.Inset(1)
	if in.Empty() {
		return
	}
	h.height, h.lines = in.Dy(), len(rows)
	h.top = max(0, min(h.top, h.lines-h.height))
	if len(rows) == 0 {
		p.Text(in.Min.X+1, in.Min.Y, in.Max.X, "no key does that", p.Theme.Dim)
	}
	for i := range in.Dy() {
		if h.top+i >= len(rows) {
			break
		}
		y := in.Min.Y + i
		switch row := rows[h.top+i]; {
		case row.head != "":
			p.Text(in.Min.X+1, y, in.Max.X, row.head, p.Theme.Title)
		default:
			ks, ts := p.Theme.Key, p.Theme.Text
			if row.off {
				ks, ts = p.Theme.Dim, p.Theme.Dim
			}
			p.Text(in.Min.X+2, y, in.Min.X+14, row.key, ks)
			p.Text(in.Min.X+14, y, in.Max.X-1, row.text, ts)
		}
	}
	if h.lines > h.height {
		note := fmt.Sprintf(" %d of %d ", min(h.top+h.height, h.lines), h.lines)
		p.Text(r.Max.X-2-len(note), r.Max.Y-1, r.Max.X-1, note, p.Theme.Dim)
	}
}
