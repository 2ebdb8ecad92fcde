package config

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"ccagent/internal/testprog"

	"golang.org/x/sys/unix"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want map[string][]string
		line int    // of the error, 0 for none
		says string // in the error
	}{
		{"", nil, 0, ""},
		{"# nothing\n", nil, 0, ""},
		{"allow:\n  alice: [svc-api, svc-web]\n", map[string][]string{"alice": {"svc-api", "svc-web"}}, 0, ""},
		{"allow: {alice: [svc-api]}", map[string][]string{"alice": {"svc-api"}}, 0, ""},
		{"allow: {alice: [svc-api]}\nalow: {}\n", nil, 2, `"alow"`},
		{"allow:\n  alice: svc-api\n", nil, 2, "sequence"},
		{"allow:\n  alice: [a]\n  alice: [b]\n", nil, 3, `"alice"`},
		{"allow: [", nil, 1, ""},
		{"daemon:\n  keep:\n    age: soon\n", nil, 3, "daemon.keep.age"},
		{"daemon:\n  piece: {age: 1m, size: 8XB}\n", nil, 2, "daemon.piece.size"},
		{"# so often\ndaemon:\n  frequency: 100\n", nil, 3, "daemon.frequency"},
		{"daemon:\n  rules:\n  - executable: /bin/a\n    profile: true\n  - unit: '['\n    profile: false\n", nil, 5, "daemon.rules[1].unit"},
		{"daemon:\n  rules:\n  - executable: /bin/a\n", nil, 3, "profile"},
		{"daemon:\n  events: []\n", nil, 2, "daemon.events"},
		{"daemon:\n  process-overhead: 101\n", nil, 2, "daemon.process-overhead"},
		{"daemon:\n  rules:\n  - profile: true\n    without: [gc, cpu-clock]\n", nil, 4, "daemon.rules[0].without[1]"},
		{"daemon:\n  rules:\n  - profile: true\n    labels: {team: '['}\n", nil, 4, "daemon.rules[0].labels"},
		{"daemon:\n  rules:\n  - profile: true\n    overhead: -1\n", nil, 4, "daemon.rules[0].overhead"},
		{"daemon:\n  evnts: [cpu-clock]\n", nil, 2, "evnts"},
		{"allow: {}\n---\nallow: {alice: [root]}\n", nil, -1, "document"},
	} {
		got, err := Parse([]byte(c.text))
		if c.line == 0 {
			if err != nil || !reflect.DeepEqual(got.Allow, c.want) {
				t.Errorf("%q: %v, %v", c.text, got, err)
			}
			continue
		}
		var at *Error
		switch {
		case err == nil:
			t.Errorf("%q: no error", c.text)
		case c.line > 0 && (!errors.As(err, &at) || at.Line != c.line), !strings.Contains(err.Error(), c.says):
			t.Errorf("%q: %v; want line %d and %q", c.text, err, c.line, c.says)
		}
	}
}

// What a file leaves out is as in Default.
func TestDaemonDefaults(t *testing.T) {
	c, err := Parse([]byte("daemon:\n  keep:\n    age: 2h\n  rules:\n  - {user: nobody, profile: false}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Keep.Age, want.Keep.AgeText = 2*time.Hour, "2h"
	c.Daemon.Rules = nil
	if !reflect.DeepEqual(c.Daemon, want) {
		t.Errorf("%+v, want %+v", c.Daemon, want)
	}
}

// What others than root may have written is not believed.
func TestLoadTrustsRootAlone(t *testing.T) {
	testprog.NeedRoot(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "ccagent.yaml")
	if c, err := Load(path); err != nil || len(c.Allow) != 0 {
		t.Errorf("a missing file: %v, %v", c, err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.WriteFile(path, []byte("allow: {alice: [svc]}\n"), 0o644))
	if c, err := Load(path); err != nil || len(c.Allow["alice"]) != 1 {
		t.Errorf("root's file: %v, %v", c, err)
	}
	for _, c := range []struct {
		name       string
		spoil, fix func() error
	}{
		{"another owner", func() error { return os.Chown(path, 1234567, 0) }, func() error { return os.Chown(path, 0, 0) }},
		{"group may write", func() error { return os.Chmod(path, 0o664) }, func() error { return os.Chmod(path, 0o644) }},
		{"all may write", func() error { return os.Chmod(path, 0o646) }, func() error { return os.Chmod(path, 0o644) }},
		{"all may write the folder", func() error { return os.Chmod(dir, 0o777) }, func() error { return os.Chmod(dir, 0o755) }},
		{"a fifo", func() error { return errors.Join(os.Remove(path), unix.Mkfifo(path, 0o600)) }, func() error { return nil }},
	} {
		must(c.spoil())
		if got, err := Load(path); err == nil {
			t.Errorf("%s: %v", c.name, got)
		}
		must(c.fix())
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "allow: {alice: [svc]}", "allow:\n  a: [b, c]\nx: 1\n", "a: &a [*a]", "allow: [", "---\n---\n", "? [a]\n: b"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if c, err := Parse(text); (c == nil) == (err == nil) {
			t.Errorf("%v and %v", c, err)
		}
	})
}

// Engines and the address of metrics are checked, without showing what may be secret.
func TestEnginesAreChecked(t *testing.T) {
	for text, key := range map[string]string{
		"  push:\n  - {engine: x, url: 'http://a:1'}\n":                                "push[0].engine",
		"  push:\n  - {engine: parca}\n":                                               "push[0].url",
		"  push:\n  - {engine: otlp, url: 'ftp://a'}\n":                                "push[0].url",
		"  push:\n  - {engine: otlp, headers: {A: \"secret\\r\"}}\n":                   "push[0].headers",
		"  push:\n  - {engine: otlp, url: 'http://a:1', cert: /c}\n":                   "push[0]",
		"  metrics: 0.0.0.0:9466\n":                                                    "metrics",
		"  metrics: localhost:9466\n":                                                  "metrics",
		"  metrics: '[::1]:9466'\n  push: [{engine: otlp}]\n":                          "",
		"  push: [{engine: pyroscope, url: 'https://a', cert: /c, key: /k, ca: /a}]\n": "",
	} {
		_, err := Parse([]byte("daemon:\n" + text))
		if key == "" && err != nil || key != "" && (err == nil || !strings.Contains(err.Error(), "daemon."+key+":") || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// The documented file is that of the defaults.
func TestDocumentedDefaults(t *testing.T) {
	text, err := os.ReadFile("../../docs/ccagent.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	want.Rules, want.Push = []Rule{}, []Push{}
	if !reflect.DeepEqual(c.Daemon, want) {
		t.Errorf("docs/ccagent.yaml has %+v, the defaults are %+v", c.Daemon, want)
	}
}
