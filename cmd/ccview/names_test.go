package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"ccagent/internal/printable"
)

// Every command names an event that was counted by another in one way.
func TestEventHasOneName(t *testing.T) {
	const title, counted = "cycles (cpu-clock)", "cpu-clock"
	named := 0
	check := func(what, out string) {
		t.Helper()
		if strings.Contains(out, title) {
			named++
		}
		rest := strings.ReplaceAll(out, title, "")
		if i := strings.Index(rest, counted); i >= 0 {
			t.Errorf("%s names the event otherwise: …%s…", what, rest[max(0, i-60):min(len(rest), i+40)])
		}
	}
	runs := map[string][]string{
		"source": {"run.eventlog", "Physics.step"}, "code": {"run.eventlog", "Physics.step"}, "diff": {"run.eventlog", "run.eventlog"}, "ls": {"."},
		"export": {"--to", "folded", "run.eventlog"}, "report": {"-o", "one-name.html", "run.eventlog"},
	}
	discard := printable.NewWriter(io.Discard)
	without := []string{"completion", "help", "manual", "push", "version"} // they show no log
	for _, c := range rootCommand(discard, discard).Commands() {
		args, ok := runs[c.Name()]
		if !ok {
			args = []string{"run.eventlog"}
		}
		if slices.Contains(without, c.Name()) {
			continue
		}
		r := ccview(t, append([]string{c.Name()}, args...)...)
		if r.status != 0 {
			t.Errorf("%s: status %d: %s", c.Name(), r.status, r.stderr)
		}
		check(c.Name(), r.stdout+r.stderr)
	}
	page, err := os.ReadFile(filepath.Join(logs, "one-name.html"))
	if err != nil {
		t.Fatal(err)
	}
	check("the page", string(page))
	for _, to := range []string{"speedscope", "firefox", "perf-script"} {
		out := filepath.Join(t.TempDir(), "out")
		if r := ccview(t, "export", "--to", to, "-o", out, "run.eventlog"); r.status != 0 {
			t.Fatalf("export to %s: %s", to, r.stderr)
		}
		b, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		check("export to "+to, string(b))
	}
	check("stacks --invert", ccview(t, "stacks", "--invert", "run.eventlog").stdout)
	check("diff --stacks", ccview(t, "diff", "--stacks", "run.eventlog", "run.eventlog").stdout)
	if named < 8 {
		t.Errorf("%d outputs name the event; the test looks for a name that is not used", named)
	}
}
