package e2e

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"ccagent/internal/testprog"
)

// When root attaches to a user's program, the log gets only those of the program's sources
// that the user may read and that are not behind links; a source newer than the program is
// marked.
func TestSourcesAreWhatTheProgramsUserReads(t *testing.T) {
	testprog.NeedRoot(t)
	setpriv := testprog.NeedTool(t, "setpriv", "util-linux")
	exe := testprog.CopyTo(t, testprog.Build(t, "spin31", testprog.Options{}), sharedDir(t, 0o755))
	src := testprog.Source(t, "spin31")
	text, err := os.ReadFile(filepath.Join(src, "Main.hs"))
	if err != nil {
		t.Fatal(err)
	}
	const mark = "-- what only root may read"
	marked := append(text, mark+"\n"...)
	for _, c := range []struct {
		name     string
		plant    func(main, secret string) error
		embedded bool
		problem  string
	}{
		{"a link", func(main, secret string) error {
			if err := os.WriteFile(secret, marked, 0o644); err != nil {
				return err
			}
			return os.Symlink(secret, main)
		}, false, ""},
		{"root's file", func(main, _ string) error { return os.WriteFile(main, marked, 0o600) }, false, ""},
		{"the user's file", func(main, _ string) error {
			if err := os.WriteFile(main, marked, 0o600); err != nil {
				return err
			}
			return os.Chown(main, attackerID, attackerID)
		}, true, ""},
		{"a newer file", func(main, _ string) error {
			if err := os.WriteFile(main, marked, 0o644); err != nil {
				return err
			}
			later := time.Now().Add(time.Hour)
			return os.Chtimes(main, later, later)
		}, true, "may differ"},
	} {
		t.Run(c.name, func(t *testing.T) {
			shown := sharedDir(t, 0o755) // what the program sees in place of src
			main := filepath.Join(shown, "Main.hs")
			if err := c.plant(main, filepath.Join(shown, "Secret.hs")); err != nil {
				t.Fatal(err)
			}
			target := command(t, "unshare", "--mount", "sh", "-c", `mount --bind "$1" "$2" && shift 2 && exec "$@"`, "sh",
				shown, src, setpriv, "--reuid", "1234567", "--regid", "1234567", "--clear-groups", exe, endless)
			wait := background(t, target)
			eventually(t, "the program runs", func() bool {
				path, err := os.Readlink("/proc/" + pidOf(target) + "/exe")
				return err == nil && path == exe
			})
			testprog.WaitExecuted(t, target.Process.Pid)
			log := filepath.Join(t.TempDir(), "run.eventlog")
			r := run(t, command(t, ccagent, "attach", "-F", "997", "--duration", "1s", "-o", log, pidOf(target)))
			target.Process.Kill()
			wait()
			if r.status != 0 {
				t.Fatalf("status %d\n%s", r.status, r.stderr)
			}
			whole, err := os.ReadFile(log)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Contains(string(whole), mark); got != c.embedded {
				t.Errorf("the text is in the log: %v, want %v", got, c.embedded)
			}
			if c.problem != "" {
				var doc struct{ Problem string }
				view(t, &doc, "source", log, "Main.hs")
				if !strings.Contains(doc.Problem, c.problem) {
					t.Errorf("the viewer says %q, want %q", doc.Problem, c.problem)
				}
				text := run(t, command(t, ccview, "source", log, "Main.hs"))
				wantLine(t, text.stdout+text.stderr, c.problem)
			}
		})
	}
}

// Methods are named with their instance without the program's sources as well, whether their symbols
// name them or, as those of a newtype, their instance alone.
func TestMethodsWithoutSources(t *testing.T) {
	testprog.NeedRoot(t)
	log, _ := record(t, []string{"-e", "cpu-clock", "-F", "4999", "--max-overhead", "0"}, olderThanSources(t, testprog.Build(t, "rewriter", testprog.Options{})))
	elements := hotOf(t, log)
	elements.element(t, "Main.>>= (instance Monad Action)")
	elements.element(t, "Main.pure (instance Applicative Action)")
}

// olderThanSources gives a copy of a program that was built long ago, so that its sources' texts are not gone by: they may
// differ from what was compiled.
func olderThanSources(t *testing.T, program string) string {
	t.Helper()
	program = testprog.CopyTo(t, program, t.TempDir())
	then := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	if err := os.Chtimes(program, then, then); err != nil {
		t.Fatal(err)
	}
	return program
}

// A program built with -g1 has no source notes, but lines: its bindings are shown where their code is, and with their text.
func TestLinesWithoutNotes(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "rev", testprog.Options{NoDebug: true, Flags: []string{"-g1"}})
	log, _ := record(t, []string{"-e", "cpu-clock", "-F", "997", "--max-overhead", "0"}, exe, "220", "4000")
	rev := hotOf(t, log).element(t, "Main.rev")
	line, err := strconv.Atoi(rev.Span)
	if err != nil || filepath.Base(rev.File) != "Main.hs" {
		t.Fatalf("Main.rev is in %q at %q, want a line of Main.hs", rev.File, rev.Span)
	}
	r := run(t, command(t, ccview, "source", log, "Main.rev"))
	if r.status != 0 {
		t.Fatalf("source: status %d\n%s", r.status, r.stderr)
	}
	text, err := os.ReadFile("../../testdata/programs/rev/Main.hs")
	if err != nil {
		t.Fatal(err)
	}
	before, _, _ := strings.Cut(string(text), "\nrev l = ")
	body, _, _ := strings.Cut(string(text)[len(before)+1:], "\n\n")
	first := strings.Count(before, "\n") + 2
	if last := first + strings.Count(body, "\n"); line < first || line > last {
		t.Errorf("Main.rev is at line %d, not from %d to %d", line, first, last)
	}
	at := strings.Split(string(text), "\n")[line-1]
	wantLine(t, r.stdout, strconv.Itoa(line), strings.TrimSpace(at))
}
