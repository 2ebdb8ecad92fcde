package ui

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ccagent/profile"
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
		if key == "" { // the difference, of one log, and a thread dump, which it has not
			continue
		}
		s.keys(key)
		if s.app.deck.at != i {
			t.Errorf("%s opens screen %d, want %d", key, s.app.deck.at+1, i+1)
		}
		s.has("[" + strings.TrimPrefix(key, "alt+") + kinds[i].Tab + "]")
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
	if len(kinds) > keymap.MaxScreens {
		t.Errorf("%d screens, and keys for %d", len(kinds), keymap.MaxScreens)
	}
	for _, k := range kinds {
		if names[k.Name] || tabs[k.Tab] {
			t.Errorf("two screens are called %s, or have the tab %s", k.Name, k.Tab)
		}
		names[k.Name], tabs[k.Tab] = true, true
		if words := strings.Fields(strings.ToLower(k.Name + " " + k.Keys.Help)); len(k.Tab) > 5 || !slices.ContainsFunc(words, func(w string) bool { return shortFor(strings.ToLower(k.Tab), w) }) {
			t.Errorf("the tab %s is short for none of %q", k.Tab, words)
		}
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

// shortFor reports whether a tab has the first letter of a word, and others of its letters in their order.
func shortFor(tab, word string) bool {
	if tab[0] != word[0] {
		return false
	}
	for i := range len(tab) {
		at := strings.IndexByte(word, tab[i])
		if at < 0 {
			return false
		}
		word = word[at+1:]
	}
	return true
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

// The digit in a tab is the key that opens its screen, with what stands before it held.
func TestTabsShowKeys(t *testing.T) {
	s := start(t, fixture.Profile(t, fixture.Options{Dump: true}), 200, 40, Options{ASCII: true})
	s.keys("alt+0")
	s.has(" 9Chart  alt:[0Thr] 1Dump  2Code")
	s.keys("alt+1")
	s.has(" 9Chart  alt: 0Thr [1Dump] 2Code")
	s.keys("1")
	s.hasNot("10Thr")
	for _, at := range s.app.deck.tabs {
		s.send(clickAt(at.x+1, 0))
		if s.app.deck.at != at.screen {
			t.Errorf("a click on %q opens the screen at place %d, want %d", at.text, s.app.deck.at, at.screen)
		}
	}
}

// The first line says what the log is of, and has all tabs by name, however long the log's name is.
func TestFirstLineSaysWhatOf(t *testing.T) {
	for _, c := range []struct {
		width int
		log   string
		opts  fixture.Options
		want  string
	}{
		{80, "nbody.eventlog", fixture.Options{}, " nbody  cycles"},
		{80, "a-program-with-quite-a-long-name.4242.eventlog", fixture.Options{}, "cycles"},
		{80, "a-program-with-quite-a-long-name.4242.eventlog", fixture.Options{Dump: true}, "cycles"},
		{110, "a-program-with-quite-a-long-name.4242.eventlog", fixture.Options{Dump: true}, " ccview a-program-w"},
		{110, "a-program-with-quite-a-long-name.4242.eventlog", fixture.Options{Dump: true}, "cycles"},
	} {
		s := start(t, fixture.Profile(t, c.opts), c.width, 30, Options{ASCII: true})
		s.app.log.src.Name = c.log
		s.keys("3")
		line, _, _ := strings.Cut(s.screen(), "\n")
		if !strings.Contains(line, c.want) || !strings.Contains(line, " 2Src[3Flame] 4CC") && !strings.Contains(line, " 2Src [3Flame] 4CC") || !strings.Contains(line, "2Code") {
			t.Errorf("at %d columns the first line is %q; it lacks %q, or tabs", c.width, line, c.want)
		}
	}
}

// Of a log without samples, only screens that have something of it can be opened.
func TestScreensOfLogsWithoutSamples(t *testing.T) {
	p, err := profile.Open(filepath.Join("screen", "dump", "testdata", "standstill.eventlog"), nil)
	if err != nil {
		t.Fatal(err)
	}
	s := start(t, p, 80, 24, Options{ASCII: true})
	s.has("thread dump")
	s.has("1Main  alt:[1Dump]")
	for _, key := range strings.Fields("2 3 4 7 9 alt+0 alt+2") {
		s.keys(key)
		s.has("the log has no samples")
	}
	s.keys("5")
	s.has("the log has neither the heap nor collections")
	s.keys(":", "'flame")
	s.has("the log has no samples")
	s.keys("esc", ":", "'threads")
	s.has("alt-1 shows its thread dump")
}
