// Package screentest opens screens without the event loop, and checks what all of them hold.
package screentest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"ccagent/profile"
	"ccagent/ui/keymap"
	"ccagent/ui/layout"
	"ccagent/ui/model"
	"ccagent/ui/printer"
	"ccagent/ui/screen"
	"ccagent/ui/theme"
	"ccagent/ui/widget"
)

// Session is a screen with its context.
type Session struct {
	C      *screen.Context
	Screen screen.Screen
	t      testing.TB
	engine *model.Engine
}

// Open opens a screen on a profile. Nothing is computed yet.
func Open(t testing.TB, k screen.Kind, p *profile.Profile, compared *screen.Compared) *Session {
	t.Helper()
	c := &screen.Context{
		Profile: p, Data: &model.Data{}, Event: p.DefaultEvent(), Base: 1, Selected: model.NoKey, Compared: compared,
		Window: screen.Window{Window: model.Window{To: p.Duration, Cols: 40}},
		Key:    func(name string) string { return "key of " + name },
	}
	return &Session{C: c, Screen: k.New(c), t: t, engine: model.NewEngine(p)}
}

// Answer computes what the screen asks, until it asks for nothing else.
func (s *Session) Answer() {
	s.t.Helper()
	for range 10 {
		q := s.Screen.Query()
		if s.C.Data.Summary != nil && s.C.Data.Query == q {
			return
		}
		s.C.Data = s.engine.Compute(q)
		s.draw(120, 40)
	}
	s.t.Errorf("the screen asks something new after each answer: %+v", s.Screen.Query())
}

// Do carries out actions that are on, and answers what the screen asks then.
func (s *Session) Do(actions ...keymap.Action) {
	s.t.Helper()
	for _, a := range actions {
		if why := s.Screen.Why(a); why != "" {
			s.t.Errorf("%s is off: %s", a, why)
		}
		s.Screen.Do(a)
		s.Answer()
	}
}

func (s *Session) draw(w, h int) []string {
	th, err := theme.New("plain")
	if err != nil {
		s.t.Fatal(err)
	}
	p := widget.NewPainter(w, h, th, widget.ASCII())
	s.Screen.Draw(p, layout.Outer(w, h))
	return strings.Split(ansi.Strip(p.Render()), "\n")
}

// Draw gives what the screen shows on a terminal of w×h, in ASCII and without styles.
func (s *Session) Draw(w, h int) string {
	s.t.Helper()
	s.Answer()
	return strings.Join(s.draw(w, h), "\n")
}

// Conforms checks what all screens hold. open gives a new session of the kind.
func Conforms(t *testing.T, k screen.Kind, open func() *Session) {
	t.Run("registration", func(t *testing.T) { registered(t, k) })
	t.Run("query", func(t *testing.T) { comparable(t, open) })
	t.Run("drawing", func(t *testing.T) { fits(t, open) })
	t.Run("keys", func(t *testing.T) { explains(t, k, open) })
	t.Run("return", func(t *testing.T) { returns(t, open) })
	t.Run("report", func(t *testing.T) { reports(t, open()) })
}

// A kind has names, its own keys are complete, and none of them is a common key's.
func registered(t *testing.T, k screen.Kind) {
	if k.Name == "" || k.Tab == "" || k.Keys.Help == "" || k.New == nil {
		t.Errorf("incomplete: %+v", k)
	}
	common := keymap.New(nil)
	for _, b := range k.Keys.Section.Bindings {
		if b.Action == "" || b.Show == "" || b.Help == "" || len(b.Keys) == 0 {
			t.Errorf("incomplete binding: %+v", b)
		}
		for _, key := range b.Keys {
			if o := common.Lookup(key); o != nil && o.Action != b.Action {
				t.Errorf("key %q is bound to %s already", key, o.Action)
			}
		}
	}
	for _, n := range k.Keys.Notes {
		if common.Of(n.Action) == nil {
			t.Errorf("the note %q is of %s, which is no common action", n.Help, n.Action)
		}
	}
	for _, a := range k.Keys.Does {
		if common.Of(a) == nil && !k.Keys.Own(a) {
			t.Errorf("no key gives %s", a)
		}
	}
}

// Queries of the same state are equal, those of another differ, and all can be map keys.
func comparable(t *testing.T, open func() *Session) {
	a, b := open(), open()
	if a.Screen.Query() != b.Screen.Query() {
		t.Errorf("two new screens ask differently: %+v and %+v", a.Screen.Query(), b.Screen.Query())
	}
	seen := map[model.Query]bool{a.Screen.Query(): true}
	a.C.Applied.Push(model.Transform{Op: model.OpFocus, Name: "f"})
	b.C.Applied.Push(model.Transform{Op: model.OpFocus, Name: "f"})
	if seen[a.Screen.Query()] {
		t.Error("a transform changes nothing of the query")
	}
	if a.Screen.Query() != b.Screen.Query() {
		t.Error("equal transforms give queries that differ")
	}
	a.C.Applied.Undo()
	if !seen[a.Screen.Query()] {
		t.Error("the query is another after undo")
	}
}

// A screen draws into any terminal, within its body, before and after the first answer.
func fits(t *testing.T, open func() *Session) {
	for _, size := range [][2]int{{120, 40}, {80, 24}, {200, 60}, {60, 12}, {20, 5}, {1, 1}, {3, 100}, {300, 3}} {
		w, h := size[0], size[1]
		s := open()
		for _, state := range []string{"nothing computed", "answered"} {
			lines := s.draw(w, h)
			if len(lines) != h {
				t.Errorf("%dx%d, %s: %d lines", w, h, state, len(lines))
			}
			body := layout.Outer(w, h).Body
			for y, l := range lines {
				if ansi.StringWidth(l) > w {
					t.Errorf("%dx%d, %s: line %d has %d columns", w, h, state, y, ansi.StringWidth(l))
				}
				if (y < body.Min.Y || y >= body.Max.Y) && strings.TrimSpace(l) != "" {
					t.Errorf("%dx%d, %s: line %d is outside of the body: %q", w, h, state, y, l)
				}
			}
			s.Answer()
		}
	}
}

// Every action is carried out, or the screen says why not; a reason ends without a stop.
func explains(t *testing.T, k screen.Kind, open func() *Session) {
	for _, section := range keymap.New([]keymap.Screen{k.Keys}).Sections {
		for _, b := range section.Bindings {
			s := open()
			s.Answer()
			if why := s.Screen.Why(b.Action); why != "" {
				if strings.HasSuffix(why, ".") {
					t.Errorf("%s is off for %q", b.Action, why)
				}
				continue
			}
			s.Screen.Do(b.Action)
			s.Answer()
		}
	}
}

// A screen shows the same when one comes back to it from another, whose answer it was drawn with at
// least once: answers are kept, so that the one after the return is the one before it. That holds
// after what moves the cursor, opens or sorts, too.
func returns(t *testing.T, open func() *Session) {
	for _, a := range []keymap.Action{"", keymap.Down, keymap.Bottom, keymap.Right, keymap.Sort, keymap.Open} {
		s := open()
		s.Answer()
		if a != "" {
			if s.Screen.Why(a) != "" {
				continue
			}
			s.Screen.Do(a)
		}
		before := s.Draw(120, 40)
		s.C.Data = s.engine.Compute(s.C.Query(nil)) // another screen's, without this one's part
		s.draw(120, 40)
		if after := s.Draw(120, 40); after != before {
			t.Errorf("after %q, away and back:\n%s\nwant\n%s", a, after, before)
		}
	}
}

// A screen's report is text and one JSON document, or there is a reason for none.
func reports(t *testing.T, s *Session) {
	s.Answer()
	of, err := s.Screen.Report()
	if err != nil {
		return
	}
	sel, err := s.engine.Select(s.C.Samples())
	if err != nil {
		t.Fatal(err)
	}
	r, err := of(sel)
	if err != nil {
		t.Fatal(err)
	}
	var text, doc bytes.Buffer
	if err := r.Text(&text, printer.Options{File: "x.eventlog"}); err != nil || !strings.Contains(text.String(), "x.eventlog") {
		t.Errorf("text: %v\n%s", err, &text)
	}
	if err := r.JSON(&doc, printer.Options{}); err != nil || !json.Valid(doc.Bytes()) {
		t.Errorf("JSON: %v\n%s", err, &doc)
	}
}
