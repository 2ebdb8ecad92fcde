package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"ccagent/internal/testprog"
)

// A descriptor that ccagent's caller left open is the program's where it runs as the same
// user, as without ccagent, and is not where it runs as another.
func TestCallersDescriptors(t *testing.T) {
	testprog.NeedRoot(t)
	secret := filepath.Join(t.TempDir(), "secret")
	if err := os.WriteFile(secret, []byte("the caller's\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		user, want string
	}{{"", "the caller's"}, {"nobody", "none"}} {
		f, err := os.Open(secret)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		argv := []string{"record", "-o", filepath.Join(sharedDir(t, 0o777), "log")}
		if c.user != "" {
			argv = append(argv, "--user", c.user)
		}
		cmd := command(t, ccagent, append(argv, "--", "sh", "-c", "if [ -e /proc/self/fd/3 ]; then cat <&3; else echo none; fi")...)
		cmd.ExtraFiles = []*os.File{f}
		r := run(t, cmd)
		if got := strings.TrimSpace(r.stdout); got != c.want {
			t.Errorf("as %q: the program reads %q, want %q\n%s", c.user, got, c.want, r.stderr)
		}
	}
}

// SIGQUIT ends a capture as SIGTERM does, and prints no goroutines.
func TestQuit(t *testing.T) {
	testprog.NeedRoot(t)
	target := command(t, "sleep", "1000")
	begin(t, target)
	log := filepath.Join(t.TempDir(), "run.eventlog")
	cmd := command(t, ccagent, "attach", "-o", log, pidOf(target))
	wait := background(t, cmd)
	eventually(t, "the capture runs", func() bool {
		info, err := os.Stat(log)
		return err == nil && info.Size() > 0
	})
	if err := cmd.Process.Signal(unix.SIGQUIT); err != nil {
		t.Fatal(err)
	}
	r := wait()
	if strings.Contains(r.stderr, "goroutine") {
		t.Errorf("prints goroutines:\n%s", r.stderr)
	}
	wantLine(t, r.stderr, log)
	if l := readLog(t, log); l.end == nil {
		t.Errorf("the log has no end; status %d\n%s", r.status, r.stderr)
	}
}
