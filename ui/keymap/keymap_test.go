package keymap

import (
	"slices"
	"testing"
)

// screens are a dozen: one has keys of its own, and changes what a common one does.
func screens() []Screen {
	out := make([]Screen, 12)
	for i := range out {
		out[i].Help = "screen"
	}
	out[3].Section = Section{"Own", []Binding{{Action: "own", Keys: []string{"O"}, Show: "O", Short: "own", Help: "does it"}}}
	out[4].Section = Section{"Other", []Binding{{Action: Mode, Keys: []string{"M"}, Show: "M", Short: "mode", Help: "its mode"}}}
	out[3].Does = []Action{Undo}
	out[3].Notes = []Note{{Mark, "here: choose"}}
	return out
}

// No key has two actions and no action two bindings, however many screens there are.
func TestTableIsConsistent(t *testing.T) {
	m := New(screens())
	keys, actions := map[string]Action{}, map[Action]bool{}
	for _, s := range m.Sections {
		for _, b := range s.Bindings {
			if actions[b.Action] {
				t.Errorf("%s is bound twice", b.Action)
			}
			actions[b.Action] = true
			if b.Help == "" || b.Show == "" || len(b.Keys) == 0 {
				t.Errorf("%s: %+v", b.Action, b)
			}
			for _, k := range b.Keys {
				if other, ok := keys[k]; ok {
					t.Errorf("key %q: %s and %s", k, other, b.Action)
				}
				keys[k] = b.Action
			}
		}
	}
	for _, a := range slices.Concat(m.footer, footerLast) {
		if b := m.Of(a); b == nil || b.Short == "" {
			t.Errorf("the footer names %s, which has no short text", a)
		}
	}
}

// A screen's key follows from its place alone: 1 to 9, then alt and a digit.
func TestScreenKeys(t *testing.T) {
	m := New(screens())
	for i, want := range []string{0: "1", 8: "9", 9: "alt+0", 10: "alt+1", 11: "alt+2"} {
		if want == "" {
			continue
		}
		b := m.Lookup(want)
		if b == nil || b.Action != OpenScreen(i) || m.Of(OpenScreen(i)) != b {
			t.Errorf("%s is bound to %+v, want the screen at place %d", want, b, i)
			continue
		}
		if at, ok := ScreenOf(b.Action); !ok || at != i {
			t.Errorf("%s opens the screen at place %d, want %d", b.Action, at, i)
		}
	}
	for _, a := range []Action{Open, "screen-", "screen-x", ""} {
		if i, ok := ScreenOf(a); ok {
			t.Errorf("%q opens the screen at place %d", a, i)
		}
	}
}

// What a screen adds is in the table, and only in that of a map that has the screen.
func TestScreensAdd(t *testing.T) {
	s := screens()
	m, without := New(s), New(nil)
	if b := m.Lookup("O"); b == nil || b.Action != "own" || without.Lookup("O") != nil {
		t.Errorf("the screen's own key is bound to %+v, without the screen to %+v", b, without.Lookup("O"))
	}
	if got, want := m.Of(Mark).Help, without.Of(Mark).Help+"; here: choose"; got != want {
		t.Errorf("help is %q, want %q", got, want)
	}
	for a, want := range map[Action]bool{"own": true, Undo: true, Mark: false, Redo: false} {
		if got := s[3].Handles(a); got != want {
			t.Errorf("handles %s: %v, want %v", a, got, want)
		}
	}
}

func TestFooterFits(t *testing.T) {
	m := New(screens())
	on := func(Action) string { return "" }
	for width := range 220 {
		used := 0
		for _, h := range m.Footer(width, []Note{{Collapse, "group"}}, on) {
			used += len(h.FirstKey()) + len(h.Word) + 3
		}
		if used > width {
			t.Errorf("width %d: the footer needs %d", width, used)
		}
	}
	f := m.Footer(80, nil, on)
	if f[len(f)-1].Action != Quit || f[len(f)-2].Action != Help {
		t.Error("help and quit must end the footer")
	}
	off := m.Footer(200, nil, func(a Action) string {
		if a == Focus {
			return "nothing is selected"
		}
		return ""
	})
	if slices.ContainsFunc(off, func(h Hint) bool { return h.Action == Focus || h.Action == Collapse }) {
		t.Error("the footer offers a key that is off, or of another screen")
	}
	own := m.Footer(200, []Note{{Collapse, "group"}}, on)
	at := slices.IndexFunc(own, func(h Hint) bool { return h.Action == Collapse && h.Word == "group" })
	if at < 0 || own[at+1].Action != Search {
		t.Error("what the screen adds does not stand before the search")
	}
}
