package e2e

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"ccagent/eventlog"
	"ccagent/internal/testprog"

	"golang.org/x/sys/unix"
)

// The exit status is the program's own, or says why it did not run.
func TestExitStatus(t *testing.T) {
	testprog.NeedRoot(t)
	dir := t.TempDir()
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte("not a program\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	garbage := filepath.Join(dir, "garbage")
	if err := os.WriteFile(garbage, []byte("\x7fELF, but no more"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		argv   []string
		status int
		says   string
	}{
		{"success", []string{"true"}, 0, ""},
		{"own status", []string{"sh", "-c", "exit 7"}, 7, ""},
		{"own status that is also ours", []string{"sh", "-c", "exit 125"}, 125, ""},
		{"killed by SIGTERM", []string{"sh", "-c", "kill -TERM $$"}, 128 + 15, ""},
		{"killed by SIGKILL", []string{"sh", "-c", "kill -KILL $$"}, 128 + 9, ""},
		{"not executable", []string{text}, 126, "permission denied"},
		{"not a program", []string{garbage}, 126, "exec format error"},
		{"a folder", []string{dir}, 126, dir},
		{"not found", []string{"no-such-program-here"}, 127, "not found"},
		{"path not found", []string{"/no/such/program"}, 127, "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			log := filepath.Join(t.TempDir(), "run.eventlog")
			r := run(t, command(t, ccagent, append([]string{"record", "-o", log, "--"}, c.argv...)...))
			if r.status != c.status {
				t.Errorf("status %d, want %d\n%s", r.status, c.status, r.stderr)
			}
			if c.says != "" {
				wantLine(t, r.stderr, c.says)
				if _, err := os.Stat(log); err == nil {
					t.Error("a log was left although nothing ran")
				}
			}
		})
	}
}

// A Haskell program's status and output are passed on, however soon it ends; a capture
// without samples is reported.
func TestQuickProgram(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "quick", testprog.Options{})
	log := filepath.Join(t.TempDir(), "run.eventlog")
	r := run(t, command(t, ccagent, "record", "-e", "cpu-clock", "-F", "1", "-o", log, "--", exe, "3"))
	if r.status != 3 || r.stdout != "quick 3\n" {
		t.Errorf("status %d, output %q\n%s", r.status, r.stdout, r.stderr)
	}
	l := readLog(t, log)
	l.wantWhole(t)
	if len(l.samples) == 0 {
		wantLine(t, r.stderr, "no sample", "-F")
	}
	if l.end != nil && (!l.end.HaveStatus || l.end.ExitStatus != 3) {
		t.Errorf("the log says of the end: %+v", l.end)
	}
	if v := run(t, command(t, ccview, "hot", log)); v.status != 0 || len(l.samples) == 0 && !strings.Contains(v.stdout+v.stderr, "no sample") {
		t.Errorf("ccview hot: status %d, %q %q", v.status, v.stdout, v.stderr)
	}
}

func TestStandardStreamsPassThrough(t *testing.T) {
	testprog.NeedRoot(t)
	input := bytes.Repeat([]byte("0123456789abcdef"), 1<<18) // more than any pipe holds
	cmd := command(t, ccagent, "record", "--quiet", "-o", filepath.Join(t.TempDir(), "l"), "--", "sh", "-c", "cat; echo to stderr >&2")
	cmd.Stdin = bytes.NewReader(input)
	r := run(t, cmd)
	if r.status != 0 || sha256.Sum256([]byte(r.stdout)) != sha256.Sum256(input) {
		t.Errorf("status %d, %d bytes came through of %d", r.status, len(r.stdout), len(input))
	}
	wantLine(t, r.stderr, "to stderr")

	// A closed standard input is closed for the program too.
	cmd = command(t, ccagent, "record", "--quiet", "-o", filepath.Join(t.TempDir(), "l"), "--", "wc", "-c")
	if r := run(t, cmd); strings.TrimSpace(r.stdout) != "0" {
		t.Errorf("wc -c of nothing printed %q", r.stdout)
	}
}

func TestArgumentsDirectoryAndEnvironmentPassThrough(t *testing.T) {
	testprog.NeedRoot(t)
	script := `printf '%s|' "$#" "$@"; pwd -P; echo "$MARK"; umask; ulimit -n`
	dir := t.TempDir()
	cmd := command(t, ccagent, "record", "--quiet", "-o", filepath.Join(t.TempDir(), "l"), "--",
		"sh", "-c", script, "sh", "--duration", "a b", "", "*")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "MARK=still here")
	bare := exec.Command("sh", "-c", script, "sh", "--duration", "a b", "", "*")
	bare.Dir, bare.Env = dir, cmd.Env
	want, err := bare.Output()
	if err != nil {
		t.Fatal(err)
	}
	if r := run(t, cmd); r.stdout != string(want) {
		t.Errorf("under ccagent the program sees\n%s\nwithout\n%s", r.stdout, want)
	}
}

// ccagent forwards signals to the program.
func TestSignalsAreForwarded(t *testing.T) {
	testprog.NeedRoot(t)
	for _, sig := range []syscall.Signal{unix.SIGTERM, unix.SIGHUP, unix.SIGUSR1, unix.SIGINT} {
		t.Run(unix.SignalName(sig), func(t *testing.T) {
			name := strings.TrimPrefix(unix.SignalName(sig), "SIG")
			// The shell waits in read, which a trapped signal ends, but for one that comes before read
			// has begun to wait.
			script := fmt.Sprintf(`trap 'echo got %[1]s; exit 9' %[1]s; echo ready; while :; do read -t 0.2 x <&3; done`, name)
			log := filepath.Join(t.TempDir(), "run.eventlog")
			cmd := command(t, ccagent, "record", "-o", log, "--", "bash", "-c", script)
			hold, feed, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer hold.Close()
			defer feed.Close()
			cmd.ExtraFiles = []*os.File{hold}
			out, lines := linePipe(t)
			cmd.Stdout = out
			wait := background(t, cmd)
			out.Close()
			lines.want(t, "ready")
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			lines.want(t, "got "+name)
			if r := wait(); r.status != 9 {
				t.Errorf("status %d, want the program's 9\n%s", r.status, r.stderr)
			}
			readLog(t, log).wantWhole(t)
		})
	}
}

// Samples of a child process are attributed to that process.
func TestChildrenAreFollowed(t *testing.T) {
	exe := testprog.Build(t, "fork", testprog.Options{})
	log, r := record(t, []string{"--max-overhead", "0", "-F", "997"}, exe, "2", "400000000")
	l := readLog(t, log)
	l.wantWhole(t)
	var parent, forked, started uint32
	if _, err := fmt.Sscanf(r.stdout, "parent %d\nforked %d\nstarted %d", &parent, &forked, &started); err != nil {
		t.Fatalf("the program printed %q: %v", r.stdout, err)
	}
	spinning := map[uint32]int{}
	for _, s := range l.samples {
		if frames := l.frames(s); len(frames) > 0 && l.source(frames[0]) == "spin" {
			spinning[s.PID]++
		}
	}
	for name, pid := range map[string]uint32{"parent": parent, "forked": forked, "started": started} {
		if spinning[pid] < 25 {
			t.Errorf("%s %d has %d samples in spin; all: %v", name, pid, spinning[pid], spinning)
		}
	}
}

// A user without privileges reads what to do, and the program is not run.
func TestWithoutPrivilege(t *testing.T) {
	testprog.NeedRoot(t)
	dir := sharedDir(t, 0o777)
	ran := filepath.Join(dir, "ran")
	cmd := command(t, ccagent, "record", "-o", filepath.Join(dir, "run.eventlog"), "--", "touch", ran)
	cmd.Dir = dir
	cmd.SysProcAttr = nobody()
	r := run(t, cmd)
	if r.status != 125 {
		t.Errorf("status %d, want 125", r.status)
	}
	wantLine(t, r.stderr, "root")
	if n := strings.Count(strings.TrimSpace(r.stderr), "\n"); n > 0 {
		t.Errorf("%d lines, want one:\n%s", n+1, r.stderr)
	}
	if _, err := os.Stat(ran); err == nil {
		t.Error("the program ran")
	}
	if _, err := os.Stat(filepath.Join(dir, "run.eventlog")); err == nil {
		t.Error("a log was left")
	}
}

func TestUnknownEvent(t *testing.T) {
	testprog.NeedRoot(t)
	r := run(t, command(t, ccagent, "record", "-e", "no-such-event", "--", "true"))
	if r.status != 125 {
		t.Errorf("status %d, want 125", r.status)
	}
	wantLine(t, r.stderr, "no-such-event", "ccagent events")
}

func TestWrongFlags(t *testing.T) {
	testprog.NeedRoot(t)
	for _, args := range [][]string{
		{"record"},
		{"record", "--no-such-flag", "--", "true"},
		{"record", "-F", "0", "--", "true"},
		{"record", "-F", "10", "-c", "10", "--", "true"},
		{"record", "--duration", "-1s", "--", "true"},
		{"record", "--max-frames", "0", "--", "true"},
		{"record", "--user", "no-such-user", "--", "true"},
		{"attach"},
		{"attach", "-5"},
		{"attach", "1", "2"},
		{"attach", "self"},
		{"no-such-command"},
	} {
		r := run(t, command(t, ccagent, args...))
		if r.status != 125 || len(strings.TrimSpace(r.stderr)) == 0 || r.stdout != "" {
			t.Errorf("ccagent %v: status %d, stdout %q, stderr %q; want status 125 and a line", args, r.status, r.stdout, r.stderr)
		}
	}
}

// Programs without symbols or debug information are profiled, and one line says what would
// restore the missing names.
func TestPoorBinaries(t *testing.T) {
	for _, c := range []struct {
		name string
		opts testprog.Options
		says []string
	}{
		{"stripped", testprog.Options{NoDebug: true, Strip: true}, []string{"stripped"}},
		{"no -g", testprog.Options{NoDebug: true}, []string{"-g3"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			log, r := record(t, nil, testprog.Build(t, "spin31", c.opts), "10000")
			wantLine(t, r.stderr, c.says...)
			l := readLog(t, log)
			l.wantWhole(t)
			var haskell, rooted int
			for _, s := range l.samples {
				if inHaskell(s) && s.Stop != eventlog.StopTopAmbiguous {
					haskell++
					if s.Stop.Complete() {
						rooted++
					}
				}
			}
			// The walk needs no symbols.
			wantShareAbove(t, "stacks that reach their root", rooted, haskell, 0.95)
			var hot struct{ Rows []hotRow }
			view(t, &hot, "hot", log)
			if len(hot.Rows) == 0 {
				t.Error("hot is empty")
			}
			if strings.Contains(c.name, "no -g") {
				hotOf(t, log).element(t, "Main.three")
			}
		})
	}
}

// In a stripped program the collector is (GC), and hardly any time is in code that is not known.
func TestStrippedCollector(t *testing.T) {
	log, _ := record(t, nil, testprog.Build(t, "maps", testprog.Options{NoDebug: true, Strip: true}), "100000", "4")
	var h hotView
	view(t, &h, "hot", log)
	gc, unresolved := h.share("(GC)"), h.share("(unresolved)")
	t.Logf("collector %.3f, unresolved %.3f", gc, unresolved)
	if gc < 0.15 || unresolved > gc/4 {
		t.Errorf("collector %.3f, unresolved %.3f of the time; want most of the run-time system's in the collector", gc, unresolved)
	}
}

// A program that is not Haskell is reported as such, and profiled.
func TestNotHaskell(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.CompileC(t, `#include <stdlib.h>
volatile unsigned long sink;
__attribute__((noinline)) void spin_in_c(unsigned long n) { unsigned long x = n; while (n--) x = x * 2862933555777941757ul + 3037000493ul; sink = x; }
int main(int argc, char **argv) { spin_in_c(strtoul(argv[1], 0, 10)); return 4; }
`, "-O1", "-g")
	log := filepath.Join(t.TempDir(), "run.eventlog")
	r := run(t, command(t, ccagent, "record", "-o", log, "--", exe, "700000000"))
	if r.status != 4 {
		t.Errorf("status %d, want the program's 4\n%s", r.status, r.stderr)
	}
	wantLine(t, r.stderr, "not", "Haskell")
	var hot struct{ Rows []hotRow }
	view(t, &hot, "hot", log)
	if len(hot.Rows) == 0 || hot.Rows[0].Share < 0.8 {
		t.Errorf("hot: %+v, want one row with nearly all", hot.Rows)
	}
	var st stacksJSON
	view(t, &st, "stacks", log)
	if st.Root.through("spin_in_c") < 0.8*st.Total {
		t.Errorf("stacks do not show spin_in_c: %+v", st.Root)
	}
}

func TestEventsAndDoctor(t *testing.T) {
	testprog.NeedRoot(t)
	exe := testprog.Build(t, "spin31", testprog.Options{})
	for _, args := range [][]string{{"events"}, {"doctor"}, {"doctor", exe}} {
		text := run(t, command(t, ccagent, args...))
		if text.status != 0 || strings.TrimSpace(text.stdout) == "" {
			t.Errorf("ccagent %v: status %d, %q\n%s", args, text.status, text.stdout, text.stderr)
		}
		js := run(t, command(t, ccagent, append(args, "--format", "json")...))
		if js.status != 0 || !strings.HasPrefix(strings.TrimSpace(js.stdout), "{") {
			t.Errorf("ccagent %v --format json: status %d, %.200q\n%s", args, js.status, js.stdout, js.stderr)
		}
	}
	// Fits a terminal; what is lacking has a reason and what would help.
	events := run(t, command(t, ccagent, "events")).stdout
	for line := range strings.Lines(events) {
		if n := utf8.RuneCountInString(line); n > 80 {
			t.Errorf("a line of %d columns: %s", n, line)
		}
	}
	lacking := strings.Count(events, "not available:")
	if why, help := strings.Count(events, "    why   "), strings.Count(events, "    help  "); why != lacking || help != lacking {
		t.Errorf("%d times something is not available, with %d reasons and %d that would help\n%s", lacking, why, help, events)
	}
	stripped := testprog.Build(t, "spin31", testprog.Options{NoDebug: true, Strip: true})
	r := run(t, command(t, ccagent, "doctor", stripped))
	wantLine(t, r.stdout+r.stderr, "-g3")
}

// nobody is a process of a user without rights.
func nobody() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobodyID, Gid: nobodyID}}
}

const nobodyID = 65534

// linePipe gives the end of a pipe for a command to write to, and what it writes.
func linePipe(t *testing.T) (w *os.File, lines *lineReader) {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return w, newLineReader(r)
}

type lineReader struct {
	lines chan string
	seen  []string
}

func newLineReader(r io.Reader) *lineReader {
	l := &lineReader{lines: make(chan string, 1024)}
	go func() {
		defer close(l.lines)
		for s := bufio.NewScanner(r); s.Scan(); {
			l.lines <- s.Text()
		}
	}()
	return l
}

// want reads until a line that begins so.
func (l *lineReader) want(t *testing.T, prefix string) string {
	t.Helper()
	over := time.After(limit)
	for {
		select {
		case line, more := <-l.lines:
			if !more {
				t.Fatalf("no line %q in %q", prefix, l.seen)
			}
			l.seen = append(l.seen, line)
			if strings.HasPrefix(line, prefix) {
				return line
			}
		case <-over:
			t.Fatalf("no line %q in %v, after %q", prefix, limit, l.seen)
		}
	}
}
