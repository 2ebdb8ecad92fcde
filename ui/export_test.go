package ui

import (
	"os"
	"strings"
	"testing"

	"ccagent/ui/internal/fixture"
)

func TestExport(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	t.Chdir(t.TempDir())
	s.keys("/", "'force", "enter", "f", "o")
	s.has("export to nbody.hot.txt")
	s.keys("enter")
	s.has("nbody.hot.txt: ")
	read := func(path, want string) {
		t.Helper()
		b, err := os.ReadFile(path)
		if err != nil || !strings.Contains(string(b), want) {
			t.Errorf("%s: %v, no %q in\n%.600s", path, err, want, b)
		}
	}
	read("nbody.hot.txt", "Physics.force")
	to := func(name string) {
		t.Helper()
		s.keys("o", "ctrl+u", "'"+name)
		s.keys("enter")
		s.has(name + ": ")
		s.has(" written")
	}
	to("a.json")
	read("a.json", `"rows"`)
	to("a.folded")
	read("a.folded", "Main.simulate;Physics.step")
	to("a.speedscope.json")
	read("a.speedscope.json", "speedscope")
	s.keys("3")
	to("t.txt")
	read("t.txt", "Physics.pairwise")
	s.keys("2")
	to("s.txt")
	read("s.txt", "pairwise p qs")
	s.keys("4")
	to("c.txt")
	read("c.txt", "cost centre")
	to("c.prof")
	read("c.prof", "COST CENTRE")
	s.keys("o", "ctrl+u", "'c.prof", "enter")
	s.has("c.prof is there already")
	s.keys("1", "o", "ctrl+u", "'x.prof")
	s.has(".prof files are of cost centres")
	s.keys("ctrl+u", "'x.doc")
	s.has("the ending chooses the format")
	s.keys("enter", "esc")
	if _, err := os.Stat("x.doc"); err == nil {
		t.Error("x.doc was written")
	}
}

// Where the viewer may have more rights than its user, it writes and starts nothing.
func TestSealed(t *testing.T) {
	t.Chdir(t.TempDir())
	t.Setenv("EDITOR", "true")
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true, Sealed: "not here"})
	for _, k := range []string{"o", "e"} {
		s.keys(k)
		s.has(k + ": not here")
	}
	s.keys("4", "w")
	s.has("w: not here")
}

func TestBookmarks(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	s.keys("B")
	s.has("no bookmark yet")
	s.keys("tab", "tab", "l", "l", "l", "b")
	s.has("bookmark at 0.42s")
	for range 40 {
		s.keys("l")
	}
	s.keys("b")
	s.has("bookmark at 6.07s")
	s.line("|0s*") // on the axis
	s.keys("B")
	s.has("bookmark at 0.42s") // the first after the last
	s.keys("+", "+", "+", "B")
	s.has("bookmark at 6.0")
	if w := s.app.c.Window; w.From > 6.07e9 || w.To < 6.07e9 {
		t.Errorf("the window is %v", w)
	}
	s.keys("b")
	s.has("bookmark taken off")
}
