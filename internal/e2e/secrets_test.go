package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"ccagent/internal/testprog"
)

// What may be secret is in a log, or is not, as docs/security.md says.
func TestSecretsInLogs(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "waits", testprog.Options{})
	const source, label = "module Main (main) where", "worker λ"
	const argument, environment = "argument-of-value-4711", "variable-of-value-4712"
	for _, c := range []struct {
		flags []string
		want  map[string]bool // in the log
	}{
		{nil, map[string]bool{argument: true, source: true}},
		{[]string{"--no-embed-source"}, map[string]bool{argument: true, source: false, label: true}},
		{[]string{"--no-args", "--no-embed-source", "--no-labels"}, map[string]bool{argument: false, source: false, label: false}},
	} {
		log := filepath.Join(t.TempDir(), "run.eventlog")
		argv := append([]string{"record", "-F", "5000", "-e", "cpu-clock,off-cpu,threads", "-o", log}, c.flags...)
		cmd := command(t, ccagent, append(argv, "--", exe, "20", argument)...)
		cmd.Env = append(os.Environ(), "SECRET="+environment)
		if r := run(t, cmd); r.status != 0 && r.status != 1 {
			t.Fatalf("status %d\n%s", r.status, r.stderr)
		}
		raw, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(raw, []byte(environment)) {
			t.Errorf("%q: the log holds the program's environment", c.flags)
		}
		for text, want := range c.want {
			if got := bytes.Contains(raw, []byte(text)); got != want {
				t.Errorf("%q: the log holds %q: %v, want %v", c.flags, text, got, want)
			}
		}
	}
}
