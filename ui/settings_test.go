package ui

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"
	"testing"

	"ccagent/internal/testprog"
	"ccagent/ui/internal/fixture"
)

func TestSettingsSurvive(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("HOME", dir)
	t.Setenv("SUDO_UID", "")
	t.Setenv("NO_COLOR", "")
	run := func(keys ...string) *session {
		t.Helper()
		var o Options
		m, save := remembered(&o)
		s := start(t, fixture.Profile(t, small), 120, 40, Options{ASCII: true, Theme: o.Theme})
		s.app.kept, s.app.log.src.Path = m, "some.eventlog"
		s.app.loaded(s.app.c.Profile, nil)
		s.send(nil)
		s.keys(keys...)
		s.app.keepBookmarks()
		if err := save(s.app.kept.settings); err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := run()
	first.has(firstHint)
	first.has("a tour")
	run("s", "ctrl+t", "tab", "tab", "l", "l", "l", "b").hasNot(firstHint)
	again := run("B")
	again.hasNot("a tour")
	again.has("hot  by only")
	again.has("bookmark at 0.42s")
	run("tab", "tab", "B", "b")
	run("B").has("no bookmark yet") // those that were taken off are gone
	if name := again.app.out.painter.Theme.Name; name == "plain" {
		t.Errorf("the theme is %s again", name)
	}
}

// A broken file is said, and left for its owner to mend.
func TestBrokenSettings(t *testing.T) {
	dir := t.TempDir()
	at := store{path: settingsIn(dir)}
	if err := os.MkdirAll(filepath.Dir(at.path), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][2]string{{strings.Repeat(" ", maxSettings+1), "more than"}, {`{"theme": 7}`, "is broken"}, {"{", "is broken"}} {
		text, want := c[0], c[1]
		if err := os.WriteFile(at.path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := at.load()
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), at.path) || !reflect.DeepEqual(got, settings{}) {
			t.Errorf("%.20q: %+v, %v", text, got, err)
		}
	}
	t.Setenv("XDG_CONFIG_HOME", dir)
	t.Setenv("SUDO_UID", "")
	var o Options
	m, save := remembered(&o)
	if !m.warns || !strings.Contains(m.hint, "is broken") {
		t.Errorf("said: %q", m.hint)
	}
	before, _ := os.ReadFile(at.path)
	if err := save(settings{Theme: "light"}); err != nil {
		t.Fatal(err)
	}
	if after, _ := os.ReadFile(at.path); string(after) != string(before) {
		t.Error("a broken file was overwritten")
	}
	// What this version does not know is the default.
	if err := os.WriteFile(at.path, []byte(`{"theme": "sepia", "sort": "mass", "more": [1]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if got, err := at.load(); err != nil || !reflect.DeepEqual(got, settings{}) {
		t.Errorf("%+v, %v", got, err)
	}
}

// Under sudo the settings are the calling user's, and written with no more
// rights than theirs.
func TestSettingsUnderSudo(t *testing.T) {
	if os.Geteuid() != 0 {
		testprog.Skip(t, &testprog.UnsupportedError{Need: "root, who alone can act for another user"})
	}
	const uid, gid = 12345, 12345
	dir := t.TempDir()
	for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
		if err := os.Chmod(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	home := filepath.Join(dir, "home")
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chown(home, uid, gid); err != nil {
		t.Fatal(err)
	}
	at := store{path: settingsIn(filepath.Join(home, ".config")), uid: uid, gid: gid, as: true}
	if err := at.save(settings{Sort: "only"}); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{at.path, filepath.Dir(at.path), filepath.Join(home, ".config")} {
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if sys := st.Sys().(*syscall.Stat_t); sys.Uid != uid || sys.Gid != gid {
			t.Errorf("%s belongs to %d:%d", path, sys.Uid, sys.Gid)
		}
	}
	if got, err := at.load(); err != nil || got.Sort != "only" {
		t.Errorf("%+v, %v", got, err)
	}
	// A planted link leads nowhere that the user may not write.
	secret := filepath.Join(dir, "secret")
	if err := os.Mkdir(secret, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Dir(at.path)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, filepath.Dir(at.path)); err != nil {
		t.Fatal(err)
	}
	if err := at.save(settings{Sort: "name"}); err == nil {
		t.Error("settings were written where the user may not")
	}
	if uid := os.Geteuid(); uid != 0 {
		t.Errorf("the process has become %d", uid)
	}
}

// Bookmarks are a log's own, and what is remembered of all logs is bounded.
func TestBookmarksOfLogs(t *testing.T) {
	var s settings
	for i := range uint64(maxMarkedLogs + 5) {
		s.mark(fmt.Sprint("log ", i), []uint64{i, 100 + i})
	}
	if len(s.Bookmarks) != maxMarkedLogs || s.bookmarks("log 1", 1000) != nil {
		t.Errorf("%d logs are remembered", len(s.Bookmarks))
	}
	if got := s.bookmarks("log 30", 120); !slices.Equal(got, []uint64{30}) {
		t.Errorf("within 120 ns the bookmarks are %v", got)
	}
	s.mark("log 30", make([]uint64, 1000))
	s.mark("log 31", nil)
	s.mark("", []uint64{1})
	if got := s.bookmarks("log 30", 120); len(got) != maxMarks || s.bookmarks("log 31", 1000) != nil || len(s.Bookmarks) != maxMarkedLogs-1 {
		t.Errorf("%d bookmarks of the log, %d logs", len(got), len(s.Bookmarks))
	}
}
