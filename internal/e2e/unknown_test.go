package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// A program of an unknown GHC version is walked with the newest layout, and that is reported
// immediately, in the log and by ccview.
func TestUnknownVersion(t *testing.T) {
	_, version := testprog.GHC(t, "")
	unknown := "8" + version[1:]
	if minor := strings.Split(version, ".")[1]; len(minor) == 2 {
		unknown = strings.Replace(version, minor, "99", 1)
	}
	program, err := os.ReadFile(testprog.Build(t, "rev", testprog.Options{NoDebug: true}))
	if err != nil {
		t.Fatal(err)
	}
	program = bytes.ReplaceAll(program, []byte(version), []byte(unknown))
	exe := filepath.Join(sharedDir(t, 0o755), "rev")
	if err := os.WriteFile(exe, program, 0o755); err != nil {
		t.Fatal(err)
	}
	compileCalls(t, exe, "3", "3")
	log, r := record(t, []string{"-e", "cpu-clock", "-F", "1999", "--max-overhead", "0"}, exe, "300", "300")
	wantLine(t, r.stderr, unknown, "newest known layout")
	l := readLog(t, log)
	l.wantWhole(t)
	if c := l.capture; c == nil || !c.LayoutAssumed || c.GHCVersion != unknown {
		t.Errorf("the capture in the log is %+v", c)
	}
	haskell, rooted := 0, 0
	for _, s := range l.samples {
		if inHaskell(s) {
			haskell++
			if s.Stop.Complete() {
				rooted++
			}
		}
	}
	wantShareAbove(t, "complete stacks", rooted, haskell, 0.999)
	text := run(t, command(t, ccview, "info", log))
	wantLine(t, text.stdout, unknown, "heap layout assumed")
}
