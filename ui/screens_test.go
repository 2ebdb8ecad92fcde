package ui

import (
	"fmt"
	"strings"
	"testing"

	"ccagent/ui/internal/fixture"
	"ccagent/ui/keymap"
	"ccagent/ui/screen/flame"
)

// withScreens registers more screens for a test: copies of the flame graph by other names.
func withScreens(t *testing.T, n int) {
	t.Helper()
	wasKinds, wasKeys := kinds, keyTable
	t.Cleanup(func() { kinds, keyTable = wasKinds, wasKeys })
	kinds = kinds[:len(kinds):len(kinds)]
	for len(kinds) < n {
		k := flame.Kind
		k.Name = fmt.Sprintf("more%d", len(kinds)+1)
		k.Tab = fmt.Sprintf("More%d", len(kinds)+1)
		kinds = append(kinds, k)
	}
	keyTable = keysOf(kinds)
}

// A registered screen has a key, a tab that can be clicked, help and a name for exports,
// beyond the ninth as well.
func TestEveryScreenHasKeyAndTab(t *testing.T) {
	withScreens(t, 13)
	s := start(t, fixture.Profile(t, small), 160, 40, Options{ASCII: true})
	for i, key := range []string{"1", "2", "3", "4", "5", "", "7", "", "9", "alt+0", "", "alt+2", "alt+3"} {
		if key == "" { // the difference, of one log, and a dump of threads, which it has not
			continue
		}
		s.keys(key)
		if s.app.deck.at != i {
			t.Errorf("%s opens screen %d, want %d", key, s.app.deck.at+1, i+1)
		}
		s.has(fmt.Sprintf("[%d%s]", i+1, kinds[i].Tab))
		to := exporter{s.app.log.src.Name, s.app.deck.kind(), s.app.deck.current()}
		if got, want := to.suggested(), "nbody."+kinds[i].Name+".txt"; got != want {
			t.Errorf("screen %d exports to %s, want %s", i+1, got, want)
		}
	}
	s.keys("1")
	for _, tab := range s.app.deck.tabs {
		if tab.screen == 11 {
			s.send(clickAt(tab.x+1, 0))
		}
	}
	if s.app.deck.at != 11 {
		t.Errorf("a click on the twelfth tab opens screen %d", s.app.deck.at+1)
	}
	s.keys("?", "'alt-")
	s.has("alt-0")
	s.has("alt-2")
	for _, size := range [][2]int{{80, 24}, {40, 12}, {20, 5}} {
		s := start(t, fixture.Profile(t, small), size[0], size[1], Options{ASCII: true})
		s.keys("alt+2")
		checkSize(t, s, size[0], size[1])
	}
}

// Every screen can be opened by its name or the beginning of it, and says why not.
func TestScreenByName(t *testing.T) {
	s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true})
	s.keys(":", "'sta", "enter")
	s.has("call tree")
	s.keys(":", "'s")
	s.has("source or stacks?")
	s.keys("esc", ":", "'diff")
	s.has("ccview diff A B compares two")
	s.keys("esc", ":", "'nonsense")
	s.has("no screen is called so")
	s.keys("esc", ":", "enter")
	s.has("[3Flame]")
	s.hasNot("6Diff") // a log alone has none
}

// Names, tabs and own keys of the registered screens are their own, and screens that are
// referred to by name are there.
func TestRegistry(t *testing.T) {
	names, tabs, own := map[string]bool{}, map[string]bool{}, map[keymap.Action]string{}
	for _, k := range kinds {
		if names[k.Name] || tabs[k.Tab] {
			t.Errorf("two screens are called %s, or have the tab %s", k.Name, k.Tab)
		}
		names[k.Name], tabs[k.Tab] = true, true
		for _, b := range k.Keys.Section.Bindings {
			if o := own[b.Action]; o != "" {
				t.Errorf("%s is %s's and %s's", b.Action, o, k.Name)
			}
			own[b.Action] = k.Name
		}
	}
	for _, name := range strings.Fields("hot source stacks ccs heap diff") {
		if screenNamed(name) < 0 || screenKey(name) == "" {
			t.Errorf("no screen %s", name)
		}
	}
}

// Every screen names an event that was counted by another in one way.
func TestEventHasOneName(t *testing.T) {
	const title, counted = "cycles (cpu-clock)", "cpu-clock"
	s := start(t, fixture.Profile(t, small), 200, 60, Options{})
	check := func(what string) {
		t.Helper()
		s.has(title)
		if strings.Contains(strings.ReplaceAll(s.screen(), title, ""), counted) {
			t.Errorf("%s names the event otherwise:\n%s", what, s.screen())
		}
	}
	for i := range kinds {
		if why := s.app.why(keymap.OpenScreen(i)); why == "" {
			s.keys(strings.ReplaceAll(screenKey(kinds[i].Name), "alt-", "alt+"))
			check(kinds[i].Name)
		}
	}
	d := startDiff(t, against(t, 2), 200, 60)
	d.has(title)
	s.keys("1", "t", "t") // the message names the event
	check("the key t")
}
