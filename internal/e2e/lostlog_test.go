package e2e

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"ccagent/internal/testprog"
)

// A log that is deleted or truncated while it is written is reported once, and the capture
// fails; the program runs on.
func TestLogLostDuringCapture(t *testing.T) {
	testprog.NeedRoot(t)
	for _, c := range []struct {
		name string
		lose func(log string) error
		says string
	}{
		{"deleted", os.Remove, "was deleted during the capture"},
		{"truncated", func(log string) error { return os.Truncate(log, 0) }, "was truncated during the capture"},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "run.eventlog")
			// The program waits for input, which it gets when ccagent has reported the loss.
			cmd := command(t, ccagent, "record", "-o", log, "--", "sh", "-c", "read go; while read more; do :; done; echo ran on; exit 3")
			program, err := cmd.StdinPipe()
			if err != nil {
				t.Fatal(err)
			}
			said, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
			if err != nil {
				t.Fatal(err)
			}
			defer said.Close()
			var stdout bytes.Buffer
			cmd.Stdout, cmd.Stderr = &stdout, said
			text := func() string {
				b, err := os.ReadFile(said.Name())
				if err != nil {
					t.Fatal(err)
				}
				return string(b)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			eventually(t, "the log has its first blocks", func() bool {
				info, err := os.Stat(log)
				return err == nil && info.Size() > 0
			})
			if err := c.lose(log); err != nil {
				t.Fatal(err)
			}
			eventually(t, "ccagent says that the log is lost", func() bool { return strings.Contains(text(), c.says) })
			program.Close()
			cmd.Wait()
			if got := cmd.ProcessState.ExitCode(); got != 125 {
				t.Errorf("status %d, want 125\n%s", got, text())
			}
			if stdout.String() != "ran on\n" {
				t.Errorf("the program printed %q", stdout.String())
			}
			// Once when it is noticed, once at the end.
			if n := strings.Count(text(), c.says); n != 2 {
				t.Errorf("reported %d times, want 2:\n%s", n, text())
			}
		})
	}
}
