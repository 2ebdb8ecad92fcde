package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"ccagent/internal/testprog"
)

// owned is what a program's name and arguments may hold: a terminal's title, a cleared
// screen, line ends that begin a message of their own, C1 controls as a character and as
// a byte, a bidirectional override, and a byte that is no UTF-8.
const owned = "-a\x1b]0;owned\x07\x1b[2J\rb\nccagent: all is well\u009b31m\x9b\u202ec\x7f\xff"

// Nothing that a program's file name, directory or arguments hold reaches the terminal as
// it is: not in what ccagent prints while it records, attaches, examines or fails, and not
// in what ccview prints of the log. The log's default name is printable too.
func TestNamesCannotReachTheTerminal(t *testing.T) {
	testprog.NeedRoot(t)
	dir := filepath.Join(t.TempDir(), owned)
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(testprog.Build(t, "spin31", testprog.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	exe := filepath.Join(dir, owned)
	if err := os.WriteFile(exe, data, 0o755); err != nil {
		t.Fatal(err)
	}
	// printed runs a command in the directory and looks at all that it prints.
	printed := func(name string, args ...string) result {
		t.Helper()
		cmd := command(t, name, args...)
		cmd.Dir = dir
		r := run(t, cmd)
		wantPrintable(t, strings.Join(args, " "), r.stdout+r.stderr)
		return r
	}

	if r := printed(ccagent, "record", "--", exe, "3000", owned); r.status != 0 {
		t.Fatalf("record: status %d\n%q", r.status, r.stderr)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Fatalf("beside the program there are %q, %v", entries, err)
	}
	log := filepath.Join(dir, owned+".eventlog")
	for _, e := range entries {
		name := e.Name()
		if name == owned {
			continue
		}
		if wantPrintable(t, "the log's name", name); strings.HasPrefix(name, "-") || strings.Contains(name, "\n") {
			t.Errorf("the log is named %q", name)
		}
		if err := os.Rename(filepath.Join(dir, name), log); err != nil {
			t.Fatal(err)
		}
	}

	target := command(t, exe, endless, owned)
	wait := begin(t, target)
	if r := printed(ccagent, "attach", "--duration", "1s", pidOf(target)); r.status != 0 {
		t.Errorf("attach: status %d\n%q", r.status, r.stderr)
	}
	target.Process.Kill()
	wait()

	for _, args := range [][]string{
		{"doctor", exe}, {"doctor", "--format", "json", exe}, {"symbolize", log},
		{"record", "--", filepath.Join(dir, "no", owned)}, {"record", "--", dir}, {"record", "-o", filepath.Join(dir, "no", owned), "--", exe, "1"},
		{"record", "-e", owned, "--", exe}, {"record", "--" + strings.ReplaceAll(owned, "\n", ""), "--", exe}, {"attach", owned}, {owned}, {"doctor", owned}, {"symbolize", dir},
		{"record", "--compat", owned, "--", exe}, {"record", "--user", owned, "--", exe},
	} {
		printed(ccagent, args...)
	}
	for _, args := range [][]string{
		{log}, {"hot", log}, {"info", log}, {"doctor", log}, {"timeline", log}, {"stacks", log}, {"stacks", "--folded", log}, {"ccs", log}, {"heap", log}, {"gc", log},
		{"diff", log, log}, {"source", log, "Main.three"}, {"source", log, owned}, {"hot", "--event", owned, log}, {"hot", "--focus", owned + "(", log},
		{"hot", filepath.Join(dir, "no", owned)}, {"hot", exe}, {"hot", dir}, {"hot", "--" + owned, log}, {owned},
	} {
		printed(ccview, args...)
		if args[0] != "stacks" && args[0] != log && len(args) == 2 {
			r := printed(ccview, append(args, "--format", "json")...)
			if r.status == 0 && !json.Valid([]byte(r.stdout)) {
				t.Errorf("ccview %q: no JSON: %.300q", args, r.stdout)
			}
		}
	}
}

// wantPrintable fails if a terminal would obey anything in a text, or if a line of it is
// a message that only a name holds.
func wantPrintable(t *testing.T, what, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%q prints what is no UTF-8: %.600q", what, text)
	}
	for i, r := range text {
		if r != '\n' && r != '\t' && !unicode.IsPrint(r) && !unicode.Is(unicode.Zs, r) {
			t.Errorf("%q prints %U: %.200q", what, r, text[max(0, i-100):])
			break
		}
	}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "ccagent: all is well") {
			t.Errorf("%q prints a forged message: %.600q", what, text)
		}
	}
}
