package agent

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"ccagent/internal/testprog"
)

// A mistake in the agent ends the capture, not the program that waits to be let run: that
// runs, and its end is waited for.
func TestProgramSurvivesAPanic(t *testing.T) {
	testprog.NeedRoot(t)
	dir := t.TempDir()
	ran := filepath.Join(dir, "ran")
	_, err := Run(t.Context(), make(chan struct{}), Options{
		Program: []string{"sh", "-c", `echo yes > "$0"`, ran},
		Events:  []string{"cpu-clock"}, MaxFrames: 16,
		Output:  filepath.Join(dir, "log.eventlog"),
		Warn:    func(line string) { t.Log(line) },
		Started: func(*os.File, int) error { panic("as the test asks") },
	})
	if p := (*PanicError)(nil); !errors.As(err, &p) || p.Value != "as the test asks" {
		t.Errorf("the capture ended with %v", err)
	}
	if got, err := os.ReadFile(ran); err != nil || string(got) != "yes\n" {
		t.Errorf("the program has written %q: %v", got, err)
	}
}
